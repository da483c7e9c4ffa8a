"""LongMemEval's records, checked: what is missing or of a wrong type is named with file, record and field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from flexmem.benchmarks.checking import AnswerText, NonEmpty, Record, checked
from flexmem.benchmarks.json_streams import array_objects
from flexmem.benchmarks.longmemeval.config import QuestionType
from flexmem.benchmarks.protocol import DataError

ABSTENTION_MARK = "_abs"  # in the ids of questions that the history doesn't answer


class TurnRecord(Record):
    """One message; ``has_answer`` marks evidence."""

    role: Literal["user", "assistant"]
    content: str
    has_answer: bool = False


class _QuestionRecord(Record):
    question_id: NonEmpty
    question_type: QuestionType
    question: NonEmpty
    answer: AnswerText


class _OfficialRecord(_QuestionRecord):
    question_date: NonEmpty
    answer_session_ids: list[str]
    haystack_dates: list[NonEmpty]
    haystack_session_ids: list[str]
    haystack_sessions: list[list[TurnRecord]]


class _EvidenceOnlyRecord(_QuestionRecord):
    """Evidence sessions without dates, labels and a haystack around them."""

    question_day: NonEmpty
    haystack_sessions: list[list[TurnRecord]]


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One session; ``evidence`` says whether it is listed as one that holds evidence. The official id is kept to tell
    repeated ones, and goes nowhere else: it gives the answer away.
    """

    official_id: str
    date: str | None
    turns: tuple[TurnRecord, ...]
    evidence: bool


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """One question with its sessions in the file's order. ``absent`` counts evidence sessions that the haystack lacks,
    ``place`` names the record in messages.
    """

    question_id: str
    question_type: QuestionType
    question: str
    answer: str
    asked_at: str
    sessions: tuple[SessionRecord, ...]
    absent: int
    place: str

    @property
    def abstention(self) -> bool:
        """Whether the right answer is that the history doesn't tell."""
        return ABSTENTION_MARK in self.question_id


_OFFICIAL = TypeAdapter(_OfficialRecord)
_EVIDENCE_ONLY = TypeAdapter(_EvidenceOnlyRecord)


def raw_records(chunks: Iterable[bytes], source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The file's objects, unchecked, each with its place for messages: `parse` a wanted one. ``source`` names the file.

    Raises:
        DataError: not a JSON array of objects, an object without an id, or an id that stands twice.
    """
    seen = set()
    for number, raw in enumerate(array_objects(chunks, source)):
        place = f"{source}: record {number}"
        name = raw.get("question_id")
        if not isinstance(name, str) or not name:
            raise DataError(f"{place}: question_id: missing or no text")
        if name in seen:
            raise DataError(f"{place}: question_id: {name!r} stands twice in the file")
        seen.add(name)
        yield f"{place} ({name})", raw


def parse(raw: Mapping[str, Any], place: str, *, evidence_only: bool = False) -> QuestionRecord:
    """One object of the file, checked.

    Raises:
        DataError: not LongMemEval's schema.
    """
    if evidence_only:
        bare = checked(_EVIDENCE_ONLY, raw, place)
        sessions = tuple(SessionRecord(str(n), None, tuple(s), True) for n, s in enumerate(bare.haystack_sessions))
        return _record(bare, bare.question_day, sessions, 0, place)
    record = checked(_OFFICIAL, raw, place)
    sizes = {key: len(getattr(record, key)) for key in ("haystack_sessions", "haystack_dates", "haystack_session_ids")}
    if len(set(sizes.values())) > 1:
        raise DataError(f"{place}: {', '.join(f'{key} has {size} entries' for key, size in sizes.items())}")
    wanted = set(record.answer_session_ids)
    sessions = tuple(
        SessionRecord(name, date, tuple(turns), name in wanted)
        for name, date, turns in zip(
            record.haystack_session_ids, record.haystack_dates, record.haystack_sessions, strict=True
        )
    )
    absent = len(wanted.difference(record.haystack_session_ids))
    return _record(record, record.question_date, sessions, absent, place)


def _record(
    record: _QuestionRecord, asked_at: str, sessions: tuple[SessionRecord, ...], absent: int, place: str
) -> QuestionRecord:
    if not any(session.turns for session in sessions):
        raise DataError(f"{place}: haystack_sessions: no session with a turn")
    return QuestionRecord(
        record.question_id,
        record.question_type,
        record.question,
        record.answer,
        asked_at,
        sessions,
        absent,
        place,
    )
