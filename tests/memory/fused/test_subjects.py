"""Who says a piece, and whom a question is about."""

from __future__ import annotations

import pytest

from flexmem.history import Session, Turn, split_sessions
from flexmem.memory.fused.subjects import block_speakers, subjects

from ..examples import history

SPEAKERS = ("Ann", "Bo Li", "user", "assistant")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What does Ann like?", {"Ann"}),
        ("What did Bo tell Ann?", {"Ann", "Bo Li"}),
        ("What is Bo Li's cat called?", {"Bo Li"}),
        ("Is the annual fee due?", set()),
        ("is ann there?", set()),  # a name is written as one
        ("What did I say of Ann?", {"Ann"}),
        ("What is my dog called?", {"user"}),
        ("What did you tell me?", set()),
        ("Who is the user?", set()),
        ("Where is it?", set()),
    ],
)
def test_whom_a_question_is_about(question: str, expected: set[str]) -> None:
    assert subjects(question, SPEAKERS) == expected


def test_a_history_without_a_user_has_none_to_ask_about() -> None:
    assert subjects("What is my dog called?", ("Ann", "Bo Li")) == frozenset()


def test_the_speaker_of_every_block() -> None:
    turns = (Turn("a", "user", "Hello: there"), Turn("b", "assistant", "Hi"), Turn("c", "user", "x: y", "Bo Li"))
    (unit,) = split_sessions([Session("1", turns)], history="h")
    assert block_speakers(unit) == ["user", "assistant", "Bo Li"]
    assert set(block_speakers(history(1, "agent", 3)[0])) == {""}
