"""From LongMemEval's checked records to instances (docs/methods.md 0.5, E.2, E.6)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from flexmem.benchmarks.longmemeval.config import LongMemEvalConfig
from flexmem.benchmarks.longmemeval.dates import parse_date
from flexmem.benchmarks.longmemeval.evidence import collect, turn_id
from flexmem.benchmarks.longmemeval.schema import QuestionRecord, SessionRecord
from flexmem.benchmarks.protocol import Instance, Question
from flexmem.benchmarks.shortening import newest
from flexmem.history import Session, Turn


@dataclass
class Census:
    """What the notes tell of the sessions met, before any is left out; counts of histories but where it says sessions
    or turns.
    """

    sessions: int = 0
    sessions_left_out: int = 0
    unsorted: int = 0
    with_later_sessions: int = 0
    repeated_ids: int = 0
    assistant_first_sessions: int = 0
    blank_turns: int = 0
    defects: list[str] = field(default_factory=list)

    def add(self, record: QuestionRecord, order: Sequence[int]) -> None:
        """Count one history, whose sessions stand in ``order``."""
        sessions = record.sessions
        self.sessions += len(sessions)
        self.unsorted += list(order) != sorted(order)
        self.repeated_ids += len({session.official_id for session in sessions}) < len(sessions)
        self.assistant_first_sessions += sum(s.turns[0].role == "assistant" for s in sessions if s.turns)
        self.blank_turns += sum(not turn.content.strip() for session in sessions for turn in session.turns)
        if all(session.date is not None for session in sessions):
            asked = parse_date(record.asked_at, record.place, "question_date")
            self.with_later_sessions += any(_moment(record, number) > asked for number in range(len(sessions)))


def make_instance(record: QuestionRecord, config: LongMemEvalConfig, census: Census) -> Instance:
    """The question with its own history.

    Sessions come in the order of their dates, those of one minute in the file's order; none is left out for being later
    than the question, since some of those hold its evidence. They are numbered from 1, and turns within them: the
    official session ids begin with ``answer_`` where they hold evidence, and nothing a method sees may. So does the
    instance's id not show the mark of an abstention.

    Raises:
        DataError: a date that is none.
    """
    order = _order(record)
    census.add(record, order)
    sessions = [record.sessions[position] for position in order]
    kept = newest(
        [_session(number, session) for number, session in enumerate(sessions)],
        config.max_history_tokens,
        kept=[n for n, s in enumerate(sessions) if s.evidence or any(turn.has_answer for turn in s.turns)],
    )
    census.sessions_left_out += len(sessions) - len(kept)
    sessions = [sessions[position] for position in kept]
    question = _question(record, sessions)
    census.defects += question.evidence_defects
    return Instance(
        instance_id=hashlib.blake2b(record.question_id.encode(), digest_size=6).hexdigest(),
        sessions=tuple(_session(number, session) for number, session in enumerate(sessions, 1)),
        questions=(question,),
        unit_tokens=config.unit_tokens,
    )


def _order(record: QuestionRecord) -> list[int]:
    positions = range(len(record.sessions))
    if any(session.date is None for session in record.sessions):
        return list(positions)
    return sorted(positions, key=lambda position: _moment(record, position))


def _moment(record: QuestionRecord, position: int) -> datetime:
    return parse_date(record.sessions[position].date or "", record.place, f"haystack_dates[{position}]")


def _session(number: int, record: SessionRecord) -> Session:
    turns = (Turn(turn_id(number, place), turn.role, turn.content) for place, turn in enumerate(record.turns, 1))
    return Session(str(number), tuple(turns), record.date)


def _question(record: QuestionRecord, sessions: Sequence[SessionRecord]) -> Question:
    evidence = collect(sessions, record.absent)
    return Question(
        question_id=record.question_id,
        text=record.question,
        answer=record.answer,
        question_type=record.question_type,
        evidence=evidence.turn_ids,
        evidence_defects=evidence.defects,
        scored_by_evidence=not record.abstention and bool(evidence.turn_ids),
        scored_by_recall=not record.abstention,
        asked_at=record.asked_at,
        details={"abstention": record.abstention},
    )
