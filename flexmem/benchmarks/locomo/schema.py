"""LoCoMo's JSON, checked: what is missing or of a wrong type is named with file, conversation and field.

Fields that no part of the benchmark uses (image addresses, search words, observations, summaries) are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter

from flexmem.benchmarks.checking import AnswerText, NonEmpty, Record, checked, member, parse_json
from flexmem.benchmarks.protocol import DataError

_SESSION = re.compile(r"session_(\d+)")


class TurnRecord(Record):
    """One message; ``blip_caption`` is what a model saw in the image that was sent with it."""

    speaker: NonEmpty
    dia_id: NonEmpty
    text: str
    blip_caption: str | None = None


class QuestionRecord(Record):
    """One question. Category 5 has ``adversarial_answer``, a trap, and most often no ``answer``."""

    question: NonEmpty
    category: Literal[1, 2, 3, 4, 5]
    evidence: list[str]
    answer: AnswerText | None = None
    adversarial_answer: AnswerText | None = None


class AuditRecord(Record):
    """One finding of the answer-key audit; ``question_id`` is ``locomo_<conversation>_qa<question>``, from 0."""

    question_id: NonEmpty
    question: str
    error_type: NonEmpty


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A dated sitting; ``number`` as in the file."""

    number: int
    date: str
    turns: tuple[TurnRecord, ...]


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    """One conversation; sessions by number, without those that have no turns; questions as in the file."""

    sample_id: str
    sessions: tuple[SessionRecord, ...]
    questions: tuple[QuestionRecord, ...]


_TURNS = TypeAdapter(list[TurnRecord])
_QUESTIONS = TypeAdapter(list[QuestionRecord])
_AUDIT = TypeAdapter(list[AuditRecord])
_TEXT: TypeAdapter[str] = TypeAdapter(NonEmpty, config=ConfigDict(strict=True))
_LIST: TypeAdapter[list[Any]] = TypeAdapter(list[Any], config=ConfigDict(strict=True))
_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any], config=ConfigDict(strict=True))


def parse_conversations(raw: bytes, source: str) -> list[ConversationRecord]:
    """Conversations in the file's order; ``source`` names the file in errors.

    Raises:
        DataError: not JSON, or not LoCoMo's schema.
    """
    samples = checked(_LIST, parse_json(raw, source), source)
    records = [_conversation(sample, f"{source}: conversation {index}") for index, sample in enumerate(samples)]
    names = [record.sample_id for record in records]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{source}: conversation {name}: sample_id: used by more than one conversation")
    return records


def parse_audit(raw: bytes, source: str) -> list[AuditRecord]:
    """Findings of the audit file.

    Raises:
        DataError: not JSON, or not the audit's schema.
    """
    return checked(_AUDIT, parse_json(raw, source), source)


def _conversation(sample: Any, place: str) -> ConversationRecord:
    sample = checked(_OBJECT, sample, place)
    name = checked(_TEXT, member(sample, "sample_id", place), place, "sample_id")
    place = place.rpartition(" ")[0] + f" {name}"
    conversation = checked(_OBJECT, member(sample, "conversation", place), place, "conversation")
    questions = checked(_QUESTIONS, member(sample, "qa", place), place, "qa")
    return ConversationRecord(name, _sessions(conversation, place), tuple(questions))


def _sessions(conversation: Mapping[str, Any], place: str) -> tuple[SessionRecord, ...]:
    numbers = sorted(int(match[1]) for key in conversation if (match := _SESSION.fullmatch(key)))
    sessions = []
    for number in numbers:
        key, date = f"session_{number}", f"session_{number}_date_time"
        turns = checked(_TURNS, member(conversation, key, place), place, key)
        if turns:
            when = checked(_TEXT, member(conversation, date, place), place, date)
            sessions.append(SessionRecord(number, when, tuple(turns)))
    if not sessions:
        raise DataError(f"{place}: conversation: no session_<n> with a turn")
    ids = [turn.dia_id for session in sessions for turn in session.turns]
    if len(set(ids)) < len(ids):
        repeated = next(turn_id for turn_id in ids if ids.count(turn_id) > 1)
        raise DataError(f"{place}: dia_id: {repeated!r} is used by more than one turn, so evidence can't name it")
    return tuple(sessions)
