"""Days that sessions and questions name."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmem.memory.fused.dates import Slack, day_of, named_windows

SLACK = Slack(before=1, day=7, month=14, year=31)
YEARS = range(2022, 2024)
ASKED = date(2023, 5, 20)  # a Saturday


def days(question: str, asked: date | None = None) -> list[tuple[date, date]]:
    windows = named_windows(question, asked.toordinal() if asked else None, YEARS, SLACK)
    return [(date.fromordinal(first), date.fromordinal(last)) for first, last in windows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023/05/20 (Sat) 02:21", date(2023, 5, 20)),
        ("1:56 pm on 8 May, 2023", date(2023, 5, 8)),
        ("2023-05-20T02:21:00", date(2023, 5, 20)),
        ("May 8th, 2023", date(2023, 5, 8)),
        ("8 May 2023", date(2023, 5, 8)),
        ("Sept. 3, 2021", date(2021, 9, 3)),
        ("31 June 2023", None),
        ("session 3", None),
        ("", None),
        (None, None),
    ],
)
def test_a_sessions_day(text: str | None, expected: date | None) -> None:
    assert day_of(text) == (expected.toordinal() if expected else None)


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_every_day_is_read_back_in_every_form(day: date) -> None:
    for text in (f"{day:%Y/%m/%d}", f"{day:%d} {day:%B}, {day.year}", f"{day:%b} {day.day}, {day.year}"):
        assert day_of(text) == day.toordinal()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What happened on 8 May 2023?", [(date(2023, 5, 7), date(2023, 5, 15))]),
        ("What happened on May 8, 2023?", [(date(2023, 5, 7), date(2023, 5, 15))]),
        ("And on 8 May?", [(date(2022, 5, 7), date(2022, 5, 15)), (date(2023, 5, 7), date(2023, 5, 15))]),
        ("What did she do in June 2023?", [(date(2023, 5, 31), date(2023, 7, 14))]),
        ("In May?", [(date(2022, 4, 30), date(2022, 6, 14)), (date(2023, 4, 30), date(2023, 6, 14))]),
        ("What was new in 2022?", [(date(2021, 12, 31), date(2023, 1, 31))]),
        ("May I march on, or may it be?", []),
        (
            "How many of the 20 May-bugs?",
            [(date(2022, 5, 19), date(2022, 5, 27)), (date(2023, 5, 19), date(2023, 5, 27))],
        ),
        ("What did she say two weeks ago?", []),  # the day of the question is not known
        ("Who is Ann?", []),
    ],
)
def test_what_a_question_names(question: str, expected: list[tuple[date, date]]) -> None:
    assert days(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("two weeks ago", (date(2023, 5, 2), date(2023, 5, 10))),
        ("a couple of days ago", (date(2023, 5, 17), date(2023, 5, 19))),
        ("a month ago", (date(2023, 4, 5), date(2023, 5, 5))),
        ("yesterday", (date(2023, 5, 18), date(2023, 5, 20))),
        ("the day before yesterday", (date(2023, 5, 17), date(2023, 5, 19))),
        ("today", (date(2023, 5, 19), date(2023, 5, 21))),
        ("last Monday", (date(2023, 5, 14), date(2023, 5, 16))),
        ("last Saturday", (date(2023, 5, 12), date(2023, 5, 14))),
        ("in the past two months", (date(2023, 3, 21), date(2023, 5, 20))),
        ("last week", (date(2023, 5, 6), date(2023, 5, 20))),
        ("this month", (date(2023, 4, 20), date(2023, 5, 20))),
    ],
)
def test_relative_days_count_from_the_day_of_the_question(question: str, expected: tuple[date, date]) -> None:
    assert days(question, ASKED) == [expected]
    assert days(question) == []


@given(st.text(max_size=80), st.dates(date(1990, 1, 1), date(2090, 1, 1)))
def test_any_text_is_read_without_failing(text: str, asked: date) -> None:
    for first, last in named_windows(text, asked.toordinal(), YEARS, SLACK):
        assert first <= last
    day_of(text)
