"""From LoCoMo's checked records to instances (docs/methods.md 0.5, E.1, E.6)."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from flexmem.benchmarks.locomo.config import ADVERSARIAL, LocomoConfig
from flexmem.benchmarks.locomo.evidence import repair
from flexmem.benchmarks.locomo.schema import ConversationRecord, QuestionRecord, SessionRecord, TurnRecord
from flexmem.benchmarks.protocol import DataError, Instance, Question
from flexmem.benchmarks.shortening import newest
from flexmem.history import Session, Turn, TurnRole


def make_instances(
    records: Sequence[ConversationRecord], config: LocomoConfig, masked: Collection[tuple[str, int]] = ()
) -> tuple[Instance, ...]:
    """The conversations and questions that ``config`` selects, in the file's order; ``masked`` (sample id, position)
    are left out. A conversation of which no question is selected is left out.

    Raises:
        DataError: a selected conversation doesn't exist, a question lacks its answer, or nothing is selected.
    """
    selected = _selected(records, config.conversations)
    instances = [_instance(record, config, masked) for record in selected]
    kept = tuple(instance for instance in instances if instance.questions)
    if not kept:
        raise DataError(
            "LoCoMo: these options select no question. Widen `conversations`, `categories` or `max_history_tokens`."
        )
    return kept


def speakers(instance: Instance) -> tuple[str, ...]:
    """Who speaks in a conversation, in order of appearance."""
    names = (turn.speaker for session in instance.sessions for turn in session.turns)
    return tuple(dict.fromkeys(name for name in names if name))


def _selected(records: Sequence[ConversationRecord], wanted: Sequence[str] | None) -> list[ConversationRecord]:
    known = [record.sample_id for record in records]
    for name in wanted or ():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise DataError(f"LoCoMo has no conversation {name!r} (there are {', '.join(known)}){hint}")
    return [record for record in records if wanted is None or record.sample_id in wanted]


def _instance(record: ConversationRecord, config: LocomoConfig, masked: Collection[tuple[str, int]]) -> Instance:
    turn_ids = {turn.dia_id for session in record.sessions for turn in session.turns}
    questions = [
        _question(record.sample_id, index, question, turn_ids, config)
        for index, question in enumerate(record.questions)
        if question.category in config.categories and (record.sample_id, index) not in masked
    ]
    first_speaker = record.sessions[0].turns[0].speaker
    sessions = [_session(session, first_speaker) for session in record.sessions]
    sessions = [sessions[position] for position in newest(sessions, config.max_history_tokens)]
    cut = turn_ids.difference(turn.turn_id for session in sessions for turn in session.turns)
    questions = [question for question in questions if cut.isdisjoint(question.evidence)]
    return Instance(
        instance_id=record.sample_id,
        sessions=tuple(sessions),
        questions=tuple(questions[: config.questions_per_conversation]),
        unit_tokens=config.unit_tokens,
    )


def _session(record: SessionRecord, first_speaker: str) -> Session:
    return Session(str(record.number), tuple(_turn(turn, first_speaker) for turn in record.turns), record.date)


def _turn(record: TurnRecord, first_speaker: str) -> Turn:
    text = record.text
    if record.blip_caption:
        text += ("" if not text or text.endswith("\n") else "\n") + f"[image: {record.blip_caption}]"
    # LoCoMo has no user: rounds begin at the turns of whoever spoke first.
    role: TurnRole = "user" if record.speaker == first_speaker else "assistant"
    return Turn(turn_id=record.dia_id, role=role, text=text, speaker=record.speaker)


def _question(
    sample_id: str, index: int, record: QuestionRecord, turn_ids: Collection[str], config: LocomoConfig
) -> Question:
    adversarial = record.category == ADVERSARIAL
    if (record.adversarial_answer if adversarial else record.answer) is None:
        field = "adversarial_answer" if adversarial else "answer"
        raise DataError(f"LoCoMo: conversation {sample_id}: qa[{index}].{field}: missing in category {record.category}")
    evidence = repair(record.evidence, turn_ids)
    details: dict[str, object] = {"category": record.category}
    if adversarial:
        details["adversarial_answer"] = record.adversarial_answer
    return Question(
        question_id=f"{sample_id}/q{index:03d}",  # by position, since the file asks some questions twice
        text=record.question,
        answer=record.answer,
        question_type=config.category_names[record.category],
        evidence=evidence.turn_ids,
        evidence_defects=evidence.defects,
        scored_by_evidence=not adversarial and bool(evidence.turn_ids),
        details=details,
    )
