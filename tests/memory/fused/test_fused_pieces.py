"""``fused_pieces`` (docs/methods.md A.12)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from flexmem.history import Session, Turn, Unit, split_sessions
from flexmem.memory.protocol import Query

from ..examples import CompassEmbedder, shown, written

# Four units of one piece each, asked "Did Bo sing on 8 May 2023?", the question's vector pointing north.
#
#        date         turn              cosine   words of the question that it has
#   p0   1 May 2023   Ann: red north    1        -
#   p1   8 May 2023   Bo: sing east     0        bo, sing
#   p2   8 May 2023   Ann: north east   0.707    -
#   p3   20 June 2023 Bo: blue          0        bo
#
# Ranks by words (ties by cosine): p1 p3 p0 p2. By cosine, and by the records' (which hold the same words): p0 p2 p1 p3.
#   x(p0) = 1/63 + 2/61 = 0.04866    x(p1) = 1/61 + 2/63 = 0.04814
#   x(p2) = 1/64 + 2/62 = 0.04788    x(p3) = 1/62 + 2/64 = 0.04738
# Without cues: p0 p1 p2 p3.
# The question names Bo, so what Ann says keeps 0.7: p0 0.03406, p2 0.03352, after p1 and p3.
# It names 8 May; 7 to 15 May are near enough, so u0 and u3 keep 0.7: p0 0.03406, p3 0.03317, after p1 and p2.
# With both: p1 0.04814, p2 0.03352, p3 0.03317, p0 0.02384.
QUESTION = "Did Bo sing on 8 May 2023?"
TURNS = (
    ("1 May 2023", "Ann", "red north"),
    ("8 May 2023", "Bo", "sing east"),
    ("8 May 2023", "Ann", "north east"),
    ("20 June 2023", "Bo", "blue"),
)


def units(turns: Sequence[tuple[str, str | None, str]] = TURNS) -> list[Unit]:
    sessions = [
        Session(
            str(number),
            (Turn(f"t{number}", "user" if speaker is None or speaker == "Ann" else "assistant", text, speaker),),
            date,
        )
        for number, (date, speaker, text) in enumerate(turns)
    ]
    return split_sessions(sessions, history="h")


def order(question: str, turns: Sequence[tuple[str, str | None, str]] = TURNS, **options: object) -> list[int]:
    build = written("fused_pieces", units(turns), **options)
    return list(shown(build, Query.question(question, CompassEmbedder.vector("north")), 1_000).ranking)


def test_the_order_worked_by_hand() -> None:
    assert order(QUESTION) == [1, 2, 3, 0]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param({"speaker_cue": False, "date_cue": False}, [0, 1, 2, 3], id="no cues"),
        pytest.param({"date_cue": False}, [1, 3, 0, 2], id="the speaker's alone"),
        pytest.param({"speaker_cue": False}, [1, 2, 0, 3], id="the date's alone"),
        pytest.param({"cue_factor": 1.0}, [0, 1, 2, 3], id="cues that cost nothing"),
        pytest.param({"slack_day": 60}, [1, 3, 2, 0], id="too much slack"),
    ],
)
def test_the_example_tells_wrong_variants(wrong: dict[str, object], expected: list[int]) -> None:
    assert order(QUESTION, **wrong) == expected != order(QUESTION)


def test_the_registered_variants_are_those_switches() -> None:
    for name, expected in (
        ("fused_pieces.no_cues", [0, 1, 2, 3]),
        ("fused_pieces.no_date_cue", [1, 3, 0, 2]),
        ("fused_pieces.no_speaker_cue", [1, 2, 0, 3]),
    ):
        build = written(name, units())
        ranking = shown(build, Query.question(QUESTION, CompassEmbedder.vector("north")), 1_000).ranking
        assert list(ranking) == expected


def test_a_relative_date_needs_the_day_of_the_question() -> None:
    question, vector = "Who sang two weeks ago?", CompassEmbedder.vector("north")
    build = written("fused_pieces", units())
    undated = shown(build, Query.question(question, vector), 1_000).ranking
    dated = shown(build, Query.question(question, vector, "2023/05/20 (Sat) 02:21"), 1_000).ranking
    assert list(undated) == [0, 2, 1, 3]
    assert list(dated) == [2, 1, 0, 3]  # 6 May and four days around it hold u1 and u2


def test_units_without_a_date_are_not_pushed_back() -> None:
    turns = (("1 May 2023", "Ann", "red north"), ("", "Ann", "north east"), ("8 May 2023", "Ann", "blue"))
    # By cosine p0 p1 p2; of the two dated ones p0 is pushed back: 0.7 * 3/61 is less than 3/63.
    assert order("What happened on 8 May 2023?", turns) == [1, 2, 0]


def test_the_users_own_words_answer_a_question_of_the_user() -> None:
    sessions = [Session("1", (Turn("a", "assistant", "red north"), Turn("b", "user", "green north")), None)]
    build = written("fused_pieces", split_sessions(sessions, history="h"))
    for question, first in (("What did I like?", 1), ("What did you tell me?", 0)):
        ranking = shown(build, Query.question(question, CompassEmbedder.vector("north")), 1_000).ranking
        assert ranking[0] == first
