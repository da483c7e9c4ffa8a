"""LongMemEval's file into instances: every defect the official file has, and what a broken file says."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.longmemeval.config import LongMemEvalConfig
from flexmem.benchmarks.longmemeval.loader import Census, make_instance
from flexmem.benchmarks.longmemeval.schema import parse, raw_records
from flexmem.benchmarks.protocol import DataError, Instance, Question

FIXTURES = Path(__file__).parents[1] / "fixtures" / "longmemeval"
RAW = (FIXTURES / "small.json").read_bytes()


def load(raw: bytes = RAW, census: Census | None = None, **options: Any) -> dict[str, Instance]:
    """Instances by question id."""
    made = (
        make_instance(parse(record, place), LongMemEvalConfig(**options), census or Census())
        for place, record in raw_records([raw], "small.json")
    )
    return {instance.questions[0].question_id: instance for instance in made}


def question(instance: Instance) -> Question:
    (asked,) = instance.questions
    return asked


# ---------------------------------------------------------------- histories


def test_sessions_come_by_date_and_equal_dates_in_the_files_order() -> None:
    sessions = load()["bike_01"].sessions
    assert [(session.session_id, session.date) for session in sessions] == [
        ("1", "2024/03/01 (Fri) 09:15"),
        ("2", "2024/03/01 (Fri) 18:30"),
        ("3", "2024/03/04 (Mon) 12:00"),
        ("4", "2024/03/04 (Mon) 12:00"),
    ]
    assert [session.turns[0].text[:10] for session in sessions] == [
        "Shall we g",
        "I keep two",
        "Which lock",
        "I like rai",
    ]


def test_sessions_after_the_question_stay() -> None:
    mass = load()["gpt4_mass"]
    assert question(mass).asked_at == "2024/06/10 (Mon) 12:00"
    assert mass.sessions[-1].date == "2024/06/11 (Tue) 09:00"
    assert "3:1" in question(mass).evidence


def test_turns_are_taken_as_they_are() -> None:
    first = load()["bike_01"].sessions[0]
    assert [(turn.turn_id, turn.role, turn.text) for turn in first.turns] == [
        ("1:1", "assistant", "Shall we go on with the recipe?"),
        ("1:2", "user", "Yes: how long does the dough rest?"),
        ("1:3", "assistant", "An hour."),
        ("1:4", "user", ""),
    ]


def test_nothing_a_method_sees_tells_where_the_evidence_is_or_that_there_is_none() -> None:
    for instance in load().values():
        seen = repr((instance.units, instance.sessions, instance.instance_id))
        for hidden in ("answer_", "_abs", "filler_", "has_answer", question(instance).question_id):
            assert hidden not in seen


def test_instances_of_a_question_and_its_abstention_twin_differ() -> None:
    instances = load()
    assert len({instance.instance_id for instance in instances.values()}) == len(instances) == 5


def test_histories_can_be_shortened_and_keep_their_evidence_sessions() -> None:
    census = Census()
    short = load(max_history_tokens=1, census=census)
    texts = [session.turns[0].text[:10] for session in short["bike_01"].sessions]
    assert texts == ["I keep two", "Which lock"]  # listed as evidence, both
    assert [session.session_id for session in short["bike_01"].sessions] == ["1", "2"]
    assert question(short["bike_01"]).evidence == ("1:1",)
    # A session with a stray mark stays too; of the two histories that have other ones, three sessions are left out.
    assert len(short["gpt4_mass"].sessions) == 3
    assert (census.sessions, census.sessions_left_out) == (13, 3)
    assert [len(instance.sessions) for instance in load(max_history_tokens=10_000).values()] == [4, 2, 2, 3, 2]


# ---------------------------------------------------------------- questions


def test_answers_types_and_dates() -> None:
    asked = [question(instance) for instance in load().values()]
    assert [(q.question_type, q.answer) for q in asked[:2]] == [
        ("multi-session", "3"),
        ("knowledge-update", "In the attic"),
    ]
    assert [q.details["abstention"] for q in asked] == [False, False, True, False, False]
    assert asked[0].asked_at == "2024/03/09 (Sat) 10:00"


def test_evidence_with_every_defect() -> None:
    asked = {name: question(instance) for name, instance in load().items()}

    def seen(name: str) -> tuple[tuple[str, ...], tuple[str, ...], bool, bool]:
        q = asked[name]
        return q.evidence, q.evidence_defects, q.scored_by_evidence, q.scored_by_recall

    unmarked = "unmarked: session {} is listed as evidence, and none of its turns is marked"
    assert seen("bike_01") == (("2:1",), (unmarked.format(3),), True, True)
    assert seen("lamp_02") == (("1:1", "2:1", "2:3"), (), True, True)
    assert seen("lamp_02_abs") == (
        (),
        (
            unmarked.format(1),
            "repeated: session 1 has its id in common with another one",
            unmarked.format(2),
            "repeated: session 2 has its id in common with another one",
            "absent: 1 sessions listed as evidence are not in the history",
        ),
        False,
        False,
    )
    stray = "stray: 2:2 marked in a session that is not listed as evidence"
    assert seen("gpt4_mass") == (("1:1", "2:2", "3:1"), (stray,), True, True)
    assert seen("hike_04") == ((), (unmarked.format(2),), False, True)


def test_evidence_names_turns_that_exist() -> None:
    for instance in load(max_history_tokens=20).values():
        turn_ids = {turn.turn_id for session in instance.sessions for turn in session.turns}
        assert turn_ids.issuperset(question(instance).evidence)
        assert {block.source for unit in instance.units for block in unit.blocks} == turn_ids


def test_the_census_counts_what_notes_tell() -> None:
    census = Census()
    load(census=census)
    assert (census.sessions, census.unsorted, census.with_later_sessions) == (13, 2, 1)
    assert (census.repeated_ids, census.assistant_first_sessions, census.blank_turns) == (1, 1, 1)


def test_evidence_sessions_alone_have_no_dates_and_no_marks() -> None:
    ((place, record),) = raw_records([(FIXTURES / "evidence_only.json").read_bytes()], "only.json")
    made = make_instance(parse(record, place, evidence_only=True), LongMemEvalConfig(), Census())
    assert [(session.session_id, session.date, len(session.turns)) for session in made.sessions] == [("1", None, 2)]
    assert (question(made).asked_at, question(made).evidence, question(made).scored_by_evidence) == (
        "2024-08-01",
        (),
        False,
    )


# ---------------------------------------------------------------- broken files


def broken(change: Callable[[list[Any]], object]) -> bytes:
    records = copy.deepcopy(json.loads(RAW))
    change(records)
    return json.dumps(records).encode()


def _set(path: list[Any], value: Any) -> Callable[[Any], None]:
    def change(records: Any) -> None:
        for key in path[:-1]:
            records = records[key]
        records[path[-1]] = value

    return change


def _drop(path: list[Any]) -> Callable[[Any], None]:
    def change(records: Any) -> None:
        for key in path[:-1]:
            records = records[key]
        del records[path[-1]]

    return change


TURN = [1, "haystack_sessions", 0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_drop([1, "question_id"]), r"small\.json: record 1: question_id: missing"),
        (_set([1, "question_id"], 7), r"record 1: question_id: missing or no text"),
        (_set([1, "question_id"], "bike_01"), r"record 1: question_id: 'bike_01' stands twice"),
        (_set([1, "question_type"], "multi"), r"record 1 \(lamp_02\): question_type: .*'single-session-user'"),
        (_drop([1, "question"]), r"record 1 \(lamp_02\): question: missing"),
        (_set([1, "answer"], None), r"record 1 \(lamp_02\): answer: .*string"),
        (_set([1, "answer"], True), r"record 1 \(lamp_02\): answer: .*string"),
        (_drop([1, "question_date"]), r"\(lamp_02\): question_date: missing"),
        (_set([1, "question_date"], "May 2"), r"\(lamp_02\): question_date: 'May 2' is no date such as '2023/05/20"),
        (
            _set([1, "haystack_dates", 1], "2024/02/30 (Fri) 10:00"),
            r"\(lamp_02\): haystack_dates\[1\]: '2024/02/30 .*no date",
        ),
        (_set([1, "haystack_dates"], []), r"haystack_sessions has 2 entries, haystack_dates has 0 entries"),
        (_set([1, "haystack_session_ids"], ["a"]), r"haystack_session_ids has 1 entries"),
        (_drop([1, "answer_session_ids"]), r"\(lamp_02\): answer_session_ids: missing"),
        (_set([*TURN, "role"], "system"), r"\(lamp_02\): haystack_sessions\[0\]\[1\]\.role: .*'user' or 'assistant'"),
        (_drop([*TURN, "content"]), r"haystack_sessions\[0\]\[1\]\.content: missing"),
        (_set([*TURN, "has_answer"], "yes"), r"haystack_sessions\[0\]\[1\]\.has_answer: .*boolean"),
        (_set([1, "haystack_sessions"], [[], []]), r"\(lamp_02\): haystack_sessions: no session with a turn"),
    ],
)
def test_a_malformed_file_names_record_and_field(change: Callable[[Any], None], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(broken(change))
