"""Days that a history's units and a question name, as day numbers (`datetime.date.toordinal`); English only."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name} | {
    name.lower(): number for number, name in enumerate(calendar.month_abbr) if name
}
_MONTHS["sept"] = 9
_WEEKDAYS = {name.lower(): number for number, name in enumerate(calendar.day_name)}
_NUMBERS = {
    word: number
    for number, words in enumerate(
        ("", "a an one", "two couple", "three few", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
    for word in words.split()
}

_MONTH = r"(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_ABSOLUTE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_YEAR}[-/.](?P<number>[01]?\d)[-/.]{_DAY}(?!\d)",
        rf"\b{_DAY}(?: of)? {_MONTH},? ?{_YEAR}\b",
        rf"\b{_MONTH} {_DAY},? {_YEAR}\b",
    )
)
_WITHOUT_YEAR = tuple(
    re.compile(pattern, re.IGNORECASE) for pattern in (rf"\b{_DAY}(?: of)? {_MONTH}\b", rf"\b{_MONTH} {_DAY}\b(?!\d)")
)
_MONTH_OF_YEAR = re.compile(rf"\b{_MONTH},? (?:of )?{_YEAR}\b", re.IGNORECASE)
_YEAR_ALONE = re.compile(rf"\b{_YEAR}\b")
# "May", "march" and the short names are words as well: alone, a month counts where it is written as a name and a word
# before it says that a time is meant.
_MONTH_ALONE = re.compile(
    r"\b(?i:in|of|since|during|until|till|by|early|late|mid|last|this|around|before|after|from|between|and)[ -]"
    r"(?P<month>" + "|".join(name for name in calendar.month_name if name) + r")\b"
)
_AGO = re.compile(
    r"\b(?P<count>\d{1,3}|" + "|".join(_NUMBERS) + r")(?: of)? (?P<unit>day|week|month|year)s? ago\b", re.IGNORECASE
)
_SPAN = re.compile(
    r"\b(?:last|past|previous) (?:(?P<count>\d{1,3}|" + "|".join(_NUMBERS) + r") )(?P<unit>day|week|month|year)s?\b",
    re.IGNORECASE,
)
_LAST = re.compile(r"\b(?P<which>last|this) (?P<unit>weekend|week|month|year)\b", re.IGNORECASE)
_LAST_DAY = re.compile(r"\b(?:last|past) (?P<weekday>" + "|".join(_WEEKDAYS) + r")\b", re.IGNORECASE)
_NEAR = re.compile(r"\b(?P<near>day before yesterday|yesterday|today)\b", re.IGNORECASE)
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365, "weekend": 7}
_NEAR_DAYS = {"day before yesterday": 2, "yesterday": 1, "today": 0}

Window = tuple[int, int]
"""First and last day, both inclusive."""


@dataclass(frozen=True)
class Slack:
    """Days that a window reaches beyond what is named: ``before`` it, and after a ``day``, ``month`` or ``year``."""

    before: int
    day: int
    month: int
    year: int


def day_of(text: str | None) -> int | None:
    """The day of a session's date (``2023/05/20 (Sat) 02:21``, ``1:56 pm on 8 May, 2023``, ISO); None for none."""
    for pattern in _ABSOLUTE:
        found = pattern.search(text or "")
        if found is not None and (day := _day(found, int(found["year"]))) is not None:
            return day
    return None


def named_windows(question: str, asked: int | None, years: range, slack: Slack) -> list[Window]:
    """The days that a question names, with slack; empty where it names none.

    Args:
        question: its text.
        asked: the day on which it is asked; without it, relative dates ("two weeks ago") name nothing.
        years: those of the history, for a day or month without a year.
        slack: what is told of a day is mostly told a little later.
    """
    windows: list[Window] = []
    rest = question
    for pattern in _ABSOLUTE:
        for found in pattern.finditer(rest):
            day = _day(found, int(found["year"]))
            if day is not None:
                windows.append((day - slack.before, day + slack.day))
        rest = pattern.sub(" ", rest)
    for pattern in _WITHOUT_YEAR:
        for found in pattern.finditer(rest):
            days = [day for year in years if (day := _day(found, year)) is not None]
            windows += [(day - slack.before, day + slack.day) for day in days]
        rest = pattern.sub(" ", rest)
    for found in _MONTH_OF_YEAR.finditer(rest):
        windows.append(_month_window(int(found["year"]), _MONTHS[found["month"].lower()], slack))
    rest = _MONTH_OF_YEAR.sub(" ", rest)
    for found in _MONTH_ALONE.finditer(rest):
        windows += [_month_window(year, _MONTHS[found["month"].lower()], slack) for year in years]
    for found in _YEAR_ALONE.finditer(rest):
        year = int(found["year"])
        windows.append((date(year, 1, 1).toordinal() - slack.before, date(year, 12, 31).toordinal() + slack.year))
    return windows + (list(_relative(question, date.fromordinal(asked))) if asked is not None else [])


def _relative(question: str, asked: date) -> Iterator[Window]:
    today = asked.toordinal()
    for found in _NEAR.finditer(question):
        if found["near"].lower() == "yesterday" and question[: found.start()].lower().endswith("day before "):
            continue
        day = today - _NEAR_DAYS[found["near"].lower()]
        yield day - 1, day + 1
    for found in _AGO.finditer(question):
        length = _UNIT_DAYS[found["unit"].lower()]
        day = today - _count(found) * length
        around = max(1, (length + 1) // 2)  # "two weeks ago" is any day nearer to two weeks than to one or three
        yield day - around, day + around
    for found in _SPAN.finditer(question):
        yield today - _count(found) * _UNIT_DAYS[found["unit"].lower()], today
    for found in _LAST.finditer(question):
        length = _UNIT_DAYS[found["unit"].lower()]
        # In talk, last week is one to two weeks back or the days behind; so it reaches over both.
        yield (today - 2 * length, today) if found["which"].lower() == "last" else (today - length, today)
    for found in _LAST_DAY.finditer(question):
        back = (asked.weekday() - _WEEKDAYS[found["weekday"].lower()] - 1) % 7 + 1
        day = (asked - timedelta(days=back)).toordinal()
        yield day - 1, day + 1


def _count(found: re.Match[str]) -> int:
    word = found["count"].lower()
    return int(word) if word.isdigit() else _NUMBERS[word]


def _day(found: re.Match[str], year: int) -> int | None:
    groups = found.groupdict()
    month = int(groups["number"]) if groups.get("number") else _MONTHS[groups["month"].lower()]
    try:
        return date(year, month, int(groups["day"])).toordinal()
    except ValueError:  # the 31st of June
        return None


def _month_window(year: int, month: int, slack: Slack) -> Window:
    last = calendar.monthrange(year, month)[1]
    return date(year, month, 1).toordinal() - slack.before, date(year, month, last).toordinal() + slack.month
