"""LoCoMo's file into instances: every defect the official file has, and what a broken file says."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.locomo.audit import wrong_keys
from flexmem.benchmarks.locomo.config import LocomoConfig
from flexmem.benchmarks.locomo.evidence import kinds, repair
from flexmem.benchmarks.locomo.loader import make_instances, speakers
from flexmem.benchmarks.locomo.schema import ConversationRecord, parse_audit, parse_conversations
from flexmem.benchmarks.protocol import DataError, Instance

FIXTURES = Path(__file__).parents[1] / "fixtures" / "locomo"
RAW = (FIXTURES / "small.json").read_bytes()


@pytest.fixture
def records() -> list[ConversationRecord]:
    return parse_conversations(RAW, "small.json")


def load(records: list[ConversationRecord], **options: Any) -> tuple[Instance, ...]:
    return make_instances(records, LocomoConfig(**options))


# ---------------------------------------------------------------- conversations


def test_sessions_keep_their_numbers_and_dates_in_numeric_order(records: list[ConversationRecord]) -> None:
    talk = load(records)[0]
    assert [(session.session_id, session.date) for session in talk.sessions] == [
        ("1", "9:05 am on 3 March, 2021"),
        ("2", "6:30 pm on 11 April, 2021"),
        ("10", "8:00 pm on 20 June, 2021"),
    ]  # 3 has no turn, 11 is only a date


def test_the_first_speaker_is_the_user_in_every_session(records: list[ConversationRecord]) -> None:
    talk = load(records)[0]
    roles = {(turn.speaker, turn.role) for session in talk.sessions for turn in session.turns}
    assert roles == {("Ines", "user"), ("Tomas", "assistant")}
    assert talk.sessions[2].turns[0].role == "assistant"
    assert speakers(talk) == ("Ines", "Tomas")


def test_captions_are_a_line_of_their_own_and_search_words_are_never_shown(records: list[ConversationRecord]) -> None:
    talk = load(records)[0]
    texts = {turn.turn_id: turn.text for session in talk.sessions for turn in session.turns}
    assert texts["D1:2"] == (
        "Finally! Is it the corner shop with the green door?\n[image: a photo of a green wooden door]"
    )
    assert texts["D1:3"] == ("That one. Rye bread first, then plum cake.\n[image: a photo of two loaves on a table]")
    assert texts["D1:4"] == "[image: a drawing of a cake]"
    shown = "".join(unit.text for unit in talk.units)
    assert "Ines: Morning, Tomas!" in shown
    for hidden in ("images.example", "green shop door", "user:", "assistant:"):
        assert hidden not in shown


def test_units_are_of_the_configured_size(records: list[ConversationRecord]) -> None:
    # Rounds begin at Ines' turns: two in session 1; Tomas' opening and Ines' reply in sessions 2 and 10.
    assert len(load(records)[0].units) == 3
    assert len(load(records, unit_tokens=1)[0].units) == 6


# ---------------------------------------------------------------- questions


def test_questions_with_every_defect(records: list[ConversationRecord]) -> None:
    questions = {question.question_id: question for question in load(records)[0].questions}
    assert list(questions) == [f"talk-1/q{index:03d}" for index in range(13)]

    def seen(index: int) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        question = questions[f"talk-1/q{index:03d}"]
        return question.evidence, question.evidence_defects, question.scored_by_evidence

    assert seen(0) == (("D1:3", "D2:2"), ("repaired: 'D1:3; D2:2' read as D1:3, D2:2",), True)
    assert seen(1) == (("D1:1",), (), True)
    assert questions["talk-1/q001"].answer == "2021"
    assert seen(2) == ((), ("empty: no evidence given",), False)
    assert seen(3) == (("D2:2",), ("repaired: 'D:2:2' read as D2:2",), True)
    assert seen(4) == (("D10:1",), ("repaired: 'D10:01' read as D10:1",), True)
    assert seen(5) == (
        ("D1:1", "D10:2"),
        ("repaired: 'D1:1 D10:2 D4:4' read as D1:1, D10:2, D4:4", "absent: 'D4:4' dropped"),
        True,
    )
    assert seen(6) == (("D1:2",), ("absent: 'D1:9' dropped",), True)
    assert seen(7) == (("D2:2",), ("malformed: 'D' dropped",), True)
    assert seen(8) == ((), ("absent: 'D7:7' dropped",), False)
    assert seen(9) == (("D10:2",), (), False)
    assert seen(10) == (("D2:2",), (), False)
    assert seen(12) == (("D1:2",), ("repeated: 'D1:2' kept once",), True)


def test_category_5_keeps_its_trap_as_a_detail(records: list[ConversationRecord]) -> None:
    bare, both = load(records, categories=(5,))[0].questions
    assert (bare.answer, bare.details["adversarial_answer"]) == (None, "an oven")
    assert (both.answer, both.details["adversarial_answer"]) == ("No", "Yes")


def test_types_are_named_and_can_be_renamed(records: list[ConversationRecord]) -> None:
    def types(**options: Any) -> list[str]:
        return [question.question_type for question in load(records, **options)[0].questions[:4]]

    assert types() == ["multi_hop", "temporal", "open_domain", "single_hop"]
    names = {1: "single-hop", 3: "multi-hop", 4: "open-domain"}
    assert types(category_names=names) == ["single-hop", "temporal", "multi-hop", "open-domain"]


def test_selection_keeps_ids_and_takes_the_first_n_after_filtering(records: list[ConversationRecord]) -> None:
    talks = load(records, categories=(4,), questions_per_conversation=2)
    assert [[question.question_id for question in talk.questions] for talk in talks] == [
        ["talk-1/q003", "talk-1/q004"],
        ["talk-2/q001"],
    ]
    assert [talk.instance_id for talk in load(records, conversations=["talk-2"])] == ["talk-2"]
    assert [talk.instance_id for talk in load(records, categories=(3,))] == ["talk-1"]


def test_shorter_histories_keep_the_newest_sessions_and_the_questions_about_them(
    records: list[ConversationRecord],
) -> None:
    talk = load(records, max_history_tokens=1)[0]
    assert [session.session_id for session in talk.sessions] == ["10"]
    # q000 and others have evidence in sessions 1 and 2; q002 and q008 have none that could be cut.
    asked = [question.question_id.removeprefix("talk-1/") for question in talk.questions]
    assert asked == ["q002", "q004", "q008", "q009"]
    assert [len(talk.sessions) for talk in load(records, max_history_tokens=10_000)] == [3, 1]
    assert load(records, max_history_tokens=10_000)[0].questions == load(records)[0].questions


def test_an_unknown_conversation_names_the_nearest(records: list[ConversationRecord]) -> None:
    with pytest.raises(DataError, match=r"no conversation 'talk2' .*there are talk-1, talk-2.*did you mean talk-2\?"):
        load(records, conversations=["talk2"])


def test_an_empty_selection_is_an_error(records: list[ConversationRecord]) -> None:
    with pytest.raises(DataError, match="select no question"):
        load(records, conversations=["talk-2"], categories=(5,))


# ---------------------------------------------------------------- evidence


def test_labels_that_name_turns_as_they_are_need_no_pattern() -> None:
    assert repair(["turn 7", "D1:1"], {"turn 7", "D1:1"}).turn_ids == ("turn 7", "D1:1")


def test_a_repaired_label_may_repeat_another() -> None:
    evidence = repair(["D8:6; D9:17", "D9:17"], {"D8:6", "D9:17"})
    assert evidence.turn_ids == ("D8:6", "D9:17")
    assert kinds(evidence.defects) == ["repaired", "repeated"]


def test_order_is_the_files() -> None:
    assert repair(["D2:1", "D1:1"], ["D1:1", "D2:1"]).turn_ids == ("D2:1", "D1:1")


# ---------------------------------------------------------------- the audit


def test_the_audit_names_wrong_keys_and_not_wrong_citations(records: list[ConversationRecord]) -> None:
    findings = parse_audit((FIXTURES / "audit.json").read_bytes(), "audit.json")
    masked = wrong_keys(findings, records)
    assert masked == {("talk-1", 1), ("talk-2", 1)}
    talks = make_instances(records, LocomoConfig(categories=(2, 4)), masked)
    ids = [question.question_id for talk in talks for question in talk.questions]
    assert "talk-1/q001" not in ids
    assert "talk-1/q006" in ids
    assert ids[-1] == "talk-2/q000"


@pytest.mark.parametrize("question_id", ["locomo_0_qa2", "locomo_9_qa0", "locomo_0_qa99", "talk-1/q001"])
def test_an_audit_of_another_file_is_refused(records: list[ConversationRecord], question_id: str) -> None:
    finding = parse_audit((FIXTURES / "audit.json").read_bytes(), "audit.json")[0]
    with pytest.raises(DataError, match=rf"{question_id}: .*official file: switch mask_audited off"):
        wrong_keys([finding.model_copy(update={"question_id": question_id})], records)


# ---------------------------------------------------------------- broken files


def test_truncated_json_names_line_and_column() -> None:
    with pytest.raises(DataError, match=r"truncated\.json: not valid JSON at line 4 column 56 \(.*\): cut short"):
        parse_conversations((FIXTURES / "truncated.json").read_bytes(), "truncated.json")


def test_a_file_that_is_not_text_is_called_that() -> None:
    with pytest.raises(DataError, match=r"x\.json: not text in UTF-8"):
        parse_conversations(b'["\xff\xfe"]', "x.json")


def broken(change: Callable[[list[Any]], object]) -> bytes:
    samples = copy.deepcopy(json.loads(RAW))
    change(samples)
    return json.dumps(samples).encode()


def _set(path: list[Any], value: Any) -> Callable[[Any], None]:
    def change(samples: Any) -> None:
        for key in path[:-1]:
            samples = samples[key]
        samples[path[-1]] = value

    return change


def _drop(path: list[Any]) -> Callable[[Any], None]:
    def change(samples: Any) -> None:
        for key in path[:-1]:
            samples = samples[key]
        del samples[path[-1]]

    return change


TURN = [0, "conversation", "session_1", 1]
QA = [0, "qa", 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set([0], "talk"), r"conversation 0: top level: .*dictionary"),
        (_drop([1, "sample_id"]), r"conversation 1: sample_id: missing"),
        (_set([1, "sample_id"], 7), r"conversation 1: sample_id: .*string"),
        (_set([1, "sample_id"], "talk-1"), r"conversation talk-1: sample_id: used by more than one"),
        (_drop([0, "conversation"]), r"conversation talk-1: conversation: missing"),
        (_set([0, "conversation"], []), r"conversation talk-1: conversation: .*dictionary"),
        (_set([0, "conversation"], {"speaker_a": "Bo"}), r"talk-1: conversation: no session_<n> with a turn"),
        (_set([1, "conversation", "session_1"], []), r"talk-2: conversation: no session_<n> with a turn"),
        (_set([1, "conversation", "session_1"], "hi"), r"talk-2: session_1: .*list"),
        (_drop([1, "conversation", "session_1_date_time"]), r"talk-2: session_1_date_time: missing"),
        (_set([1, "conversation", "session_1_date_time"], 5), r"talk-2: session_1_date_time: .*string"),
        (_drop([*TURN, "dia_id"]), r"talk-1: session_1\[1\]\.dia_id: missing"),
        (_drop([*TURN, "speaker"]), r"talk-1: session_1\[1\]\.speaker: missing"),
        (_set([*TURN, "speaker"], ""), r"talk-1: session_1\[1\]\.speaker: .*at least 1"),
        (_drop([*TURN, "text"]), r"talk-1: session_1\[1\]\.text: missing"),
        (_set([*TURN, "text"], None), r"talk-1: session_1\[1\]\.text: .*string"),
        (_set([*TURN, "blip_caption"], ["a"]), r"talk-1: session_1\[1\]\.blip_caption: .*string"),
        (_set([*TURN, "dia_id"], "D1:1"), r"talk-1: dia_id: 'D1:1' is used by more than one turn"),
        (_drop([0, "qa"]), r"talk-1: qa: missing"),
        (_set([0, "qa"], {}), r"talk-1: qa: .*list"),
        (_drop([*QA, "question"]), r"talk-1: qa\[3\]\.question: missing"),
        (_drop([*QA, "evidence"]), r"talk-1: qa\[3\]\.evidence: missing"),
        (_set([*QA, "evidence"], "D1:1"), r"talk-1: qa\[3\]\.evidence: .*list"),
        (_set([*QA, "evidence"], [1]), r"talk-1: qa\[3\]\.evidence\[0\]: .*string"),
        (_set([*QA, "category"], 6), r"talk-1: qa\[3\]\.category: .*1, 2, 3, 4 or 5"),
        (_set([*QA, "category"], "4"), r"talk-1: qa\[3\]\.category: "),
        (_set([*QA, "answer"], [1]), r"talk-1: qa\[3\]\.answer: .*string"),
        (_set([*QA, "answer"], True), r"talk-1: qa\[3\]\.answer: .*string"),
        (_drop([*QA, "answer"]), r"talk-1: qa\[3\]\.answer: missing in category 4"),
        (_drop([0, "qa", 9, "adversarial_answer"]), r"talk-1: qa\[9\]\.adversarial_answer: missing in category 5"),
    ],
)
def test_a_malformed_file_names_conversation_and_field(change: Callable[[Any], None], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(parse_conversations(broken(change), "small.json"))


def test_the_file_is_named_and_further_problems_are_counted() -> None:
    raw = broken(lambda samples: [question.pop("evidence") for question in samples[0]["qa"][2:]])
    with pytest.raises(
        DataError, match=r"^small\.json: conversation talk-1: qa\[2\]\.evidence: missing \(and 10 more\)"
    ):
        parse_conversations(raw, "small.json")
    with pytest.raises(DataError, match=r"^small\.json: top level: .*list"):
        parse_conversations(b"{}", "small.json")
