"""PersonaMem's files into instances, and what a broken file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.personamem.config import PersonaMemConfig
from flexmem.benchmarks.personamem.loader import Census, make_instances
from flexmem.benchmarks.personamem.options import parse_letter, parse_options
from flexmem.benchmarks.personamem.schema import QuestionRecord, parse_contexts, parse_questions
from flexmem.benchmarks.protocol import DataError, Instance

FIXTURES = Path(__file__).parents[1] / "fixtures" / "personamem"
QUESTIONS = (FIXTURES / "questions_32k.csv").read_bytes()
CONTEXTS = (FIXTURES / "shared_contexts_32k.jsonl").read_bytes()
MARA = "a" * 63 + "1"


def records(raw: bytes = QUESTIONS) -> list[QuestionRecord]:
    return parse_questions(raw, "q.csv")


def load(asked: list[QuestionRecord] | None = None, census: Census | None = None, **options: Any) -> list[Instance]:
    asked = records() if asked is None else asked
    contexts = parse_contexts([CONTEXTS], "c.jsonl", {record.context_id for record in asked})
    return list(make_instances(asked, contexts, PersonaMemConfig(**options), census or Census()))


# ---------------------------------------------------------------- histories


def test_questions_with_an_equal_history_share_an_instance() -> None:
    asked = [[question.question_id for question in instance.questions] for instance in load()]
    assert asked == [["q-rye"], ["q-boat", "q-idea"], ["q-oil", "q-same"]]
    assert len({instance.instance_id for instance in load()}) == 3


def test_a_history_ends_before_the_question_and_begins_sessions_at_system_messages() -> None:
    rye, boat, oil = load()
    assert [[turn.role for turn in session.turns] for session in boat.sessions] == [
        ["system", "user", "assistant", "user", "user"],
        ["system", "user", "assistant", "user"],
    ]
    assert [len(session.turns) for session in rye.sessions] == [5]  # 5 of 9 messages: before the second persona
    assert [[turn.role for turn in session.turns] for session in oil.sessions] == [
        ["user", "assistant"],
        ["system", "user"],
    ]
    assert [session.session_id for session in boat.sessions] == ["1", "2"]
    assert all(session.date is None for session in boat.sessions)


def test_labels_that_repeat_the_role_go_and_others_stay() -> None:
    first, second = load()[1].sessions
    assert [turn.text for turn in first.turns] == [
        "Current user persona: Name: Mara Lind. A baker of 41 who likes to sail.",
        "I bake rye bread every Sunday.",
        "Sunday baking is a fine habit.",
        "[Original_Sentence]: Bread is warm.",
        "I do not care for sweet bread.",
    ]
    assert second.turns[3].text == "Assistant: is what my phone calls you."
    assert "user: I bake rye bread every Sunday.\n" in load()[1].units[0].text


def test_histories_keep_their_newest_sessions_where_they_are_to_be_shorter() -> None:
    census = Census()
    rye, boat, _ = load(max_history_tokens=50, census=census)
    assert [session.turns[0].text[-9:] for session in boat.sessions] == ["her boat."]
    assert [session.session_id for session in boat.sessions] == ["1"]
    assert len(rye.sessions) == 1  # its only one stays, long as it is
    assert (census.sessions, census.sessions_left_out) == (5, 1)


def test_a_context_that_is_not_asked_about_is_not_kept() -> None:
    assert list(parse_contexts([CONTEXTS], "c.jsonl", {MARA})) == [MARA]


# ---------------------------------------------------------------- questions


def test_questions_have_their_options_and_key_but_no_evidence() -> None:
    questions = {q.question_id: q for instance in load() for q in instance.questions}
    rye = questions["q-rye"]
    assert (rye.text, rye.answer) == ("What should I bake?", "(c)")
    assert rye.details["options"] == ["A sweet cake.", "Rolls.", "Rye bread, as you do every Sunday.", "Nothing."]
    assert questions["q-boat"].details["options"][0].startswith("It's been a week")  # a Python literal
    assert [q.details["length_rule"] for q in questions.values()] == [
        "longest",
        "longest",
        "shortest",
        "longest",
        "longest",
    ]
    assert not any(q.evidence or q.scored_by_evidence or q.scored_by_recall for q in questions.values())


def test_identical_options_are_told() -> None:
    defects = {q.question_id: q.evidence_defects for instance in load() for q in instance.questions}
    assert defects["q-boat"] == defects["q-same"] == ("identical: options b and d have the same words",)
    assert defects["q-rye"] == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "neither JSON nor a Python list"),
        ("['(a) x', __import__('os')]", "neither JSON nor a Python list"),
        ('{"a": 1}', "not a list of four texts"),
        ('["(a) x", "(b) y", "(c) z"]', "not a list of four texts"),
        ('["(a) x", "(b) y", "(c) z", 4]', "not a list of four texts"),
        ('["(a) x", "(c) y", "(b) z", "(d) w"]', r"option '\(c\) y' does not begin with '\(b\) '"),
    ],
)
def test_options_that_are_none_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_options(text)


def test_keys_are_letters() -> None:
    assert [parse_letter(text) for text in ("(a)", "b", " (C) ", "(d)")] == [0, 1, 2, 3]
    for text in ("", "(e)", "(ab)", "3"):
        with pytest.raises(ValueError, match=r"none of \(a\) to \(d\)"):
            parse_letter(text)


# ---------------------------------------------------------------- broken files


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b"topic,", b"theme,"), r"q\.csv: line 1: lacks the columns topic$"),
        ((b",(c),", b",(e),"), r"q\.csv: row 1 \(line 2\): correct_answer: '\(e\)' is none"),
        ((b'""(b) Rolls."", ', b""), r"row 1 \(line 2\): all_options: not a list of four texts"),
        ((b"a1,5\n", b"a1,five\n"), r"row 1 \(line 2\): end_index_in_shared_context: .*integer"),
        ((b"a1,5\n", b"a1,0\n"), r"row 1 \(line 2\): end_index_in_shared_context: .*greater than or equal to 1"),
        ((b"a1,5\n", b"a1\n"), r"row 1 \(line 2\): end_index_in_shared_context: .*integer"),
        ((b"q-boat", b"q-rye"), r"row 2 \(line 3\): question_id: 'q-rye' stands twice"),
        ((b"q-boat", b""), r"row 2 \(line 3\): question_id: .*at least 1"),
        ((b"Mara", b"\xff"), None),
    ],
)
def test_a_malformed_table_names_row_and_column(change: tuple[bytes, bytes], message: str | None) -> None:
    raw = QUESTIONS.replace(*change, 1) if message else b"\xff" + QUESTIONS
    with pytest.raises(DataError, match=message or r"q\.csv: not text in UTF-8"):
        records(raw)


def test_a_broken_quotation_is_named() -> None:
    with pytest.raises(DataError, match=r"q\.csv: after line 2: broken CSV \(field larger than field limit"):
        records(QUESTIONS.replace(b"q-boat", b'"' + b"x" * 200_000))


def test_a_history_that_is_not_there_is_named() -> None:
    (first, *_) = records(QUESTIONS.replace(b"a1,5\n", b"a1,10\n"))
    with pytest.raises(
        DataError, match=r"q\.csv: row 1 \(line 2\): end_index_in_shared_context: 10, and context a+1 has 9"
    ):
        load([first])
    (first, *_) = records(QUESTIONS.replace(b"a1,5\n", b"a2,5\n"))
    with pytest.raises(DataError, match=r"row 1 \(line 2\): shared_context_id: no context a+2 in the contexts' file"):
        load([first])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"x": [], "y": []}, r"c\.jsonl: line 1: 2 keys where one context is expected"),
        ({"x": [{"role": "tool", "content": ""}]}, r"line 1: messages\[0\]\.role: .*'system', 'user' or 'assistant'"),
        ({"x": [{"role": "user"}]}, r"line 1: messages\[0\]\.content: missing"),
        ({"x": "hello"}, r"line 1: messages: .*list"),
    ],
)
def test_a_malformed_context_names_its_line(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_contexts([json.dumps(entry).encode()], "c.jsonl", {"x"})


def test_a_context_stands_once() -> None:
    with pytest.raises(DataError, match=r"c\.jsonl: line 2: context x stands twice"):
        parse_contexts([b'{"x": []}\n{"x": []}'], "c.jsonl", {"x"})
