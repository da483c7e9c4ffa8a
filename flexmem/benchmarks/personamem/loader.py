"""From PersonaMem's checked records to instances (docs/methods.md 0.5, E.2b)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flexmem.benchmarks.personamem.config import PersonaMemConfig
from flexmem.benchmarks.personamem.options import LETTERS
from flexmem.benchmarks.personamem.schema import MessageRecord, QuestionRecord
from flexmem.benchmarks.protocol import DataError, Instance, Question
from flexmem.benchmarks.shortening import newest
from flexmem.history import Session, Turn

Contexts = Mapping[str, tuple[MessageRecord, ...]]

_LABELS = {"user": "User: ", "assistant": "Assistant: "}
# Measured on the 32k questions: the right option is the longest in most types, and the shortest in this one.
_SHORTEST_IN = frozenset({"suggest_new_ideas"})
IDENTICAL = "identical"


@dataclass
class Census:
    """Sessions met and left out, for the notes."""

    sessions: int = 0
    sessions_left_out: int = 0


def make_instances(
    records: Sequence[QuestionRecord], contexts: Contexts, config: PersonaMemConfig, census: Census
) -> tuple[Instance, ...]:
    """Questions with an equal history share an instance; instances stand in the order of their first questions.

    Raises:
        DataError: a question names a context that is not there, or more messages than it has.
    """
    histories: dict[str, tuple[MessageRecord, ...]] = {}
    asked: dict[str, list[Question]] = {}
    for record in records:
        messages = _history(record, contexts)
        key = _key(messages)
        histories[key] = messages
        asked.setdefault(key, []).append(_question(record))
    return tuple(
        Instance(
            instance_id=key,
            sessions=_sessions(histories[key], config, census),
            questions=tuple(questions),
            unit_tokens=config.unit_tokens,
        )
        for key, questions in asked.items()
    )


def without_label(role: str, text: str) -> str:
    """A text without the ``User: `` or ``Assistant: `` that most messages begin with and that only repeats the role."""
    return text.removeprefix(_LABELS.get(role, ""))


def _history(record: QuestionRecord, contexts: Contexts) -> tuple[MessageRecord, ...]:
    messages = contexts.get(record.context_id)
    if messages is None:
        raise DataError(f"{record.place}: shared_context_id: no context {record.context_id} in the contexts' file")
    if record.end > len(messages):
        raise DataError(
            f"{record.place}: end_index_in_shared_context: {record.end}, and context {record.context_id} has "
            f"{len(messages)} messages"
        )
    return messages[: record.end]


def _key(messages: Sequence[MessageRecord]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for message in messages:
        digest.update(repr((message.role, message.content)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _sessions(messages: Sequence[MessageRecord], config: PersonaMemConfig, census: Census) -> tuple[Session, ...]:
    """A session begins at each system message, which shows the persona as it then was. Messages of one role in a row
    stay messages of their own.
    """
    groups: list[list[MessageRecord]] = []
    for message in messages:
        if message.role == "system" or not groups:
            groups.append([])
        groups[-1].append(message)
    sessions = [_session(number, group) for number, group in enumerate(groups, 1)]
    kept = newest(sessions, config.max_history_tokens)
    census.sessions += len(sessions)
    census.sessions_left_out += len(sessions) - len(kept)
    return tuple(_session(number, groups[position]) for number, position in enumerate(kept, 1))


def _session(number: int, messages: Sequence[MessageRecord]) -> Session:
    turns = (
        Turn(f"{number}:{place}", message.role, without_label(message.role, message.content))
        for place, message in enumerate(messages, 1)
    )
    return Session(str(number), tuple(turns))


def _question(record: QuestionRecord) -> Question:
    same = [LETTERS[i] for i, option in enumerate(record.options) if record.options.count(option) > 1]
    defects = (f"{IDENTICAL}: options {' and '.join(same)} have the same words",) if same else ()
    return Question(
        question_id=record.question_id,
        text=without_label("user", record.text),
        answer=f"({LETTERS[record.gold]})",
        question_type=record.question_type,
        evidence_defects=defects,
        scored_by_evidence=False,
        scored_by_recall=False,
        details={
            "options": list(record.options),
            "length_rule": "shortest" if record.question_type in _SHORTEST_IN else "longest",
            "persona": record.persona_id,
            "topic": record.topic,
        },
    )
