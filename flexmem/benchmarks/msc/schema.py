"""MSC's records, checked: what is missing or of a wrong type is named with file, line and field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import TypeAdapter

from flexmem.benchmarks.checking import NonEmpty, Record, checked
from flexmem.benchmarks.json_streams import line_objects
from flexmem.benchmarks.protocol import DataError


class _Utterance(Record):
    text: str
    id: str | None = None


class _Session(Record):
    personas: list[list[str]]
    dialog: list[_Utterance]


class _EarlierSession(_Session):
    time_back: NonEmpty


class _Metadata(Record):
    initial_data_id: NonEmpty


class _Episode(_Session):
    metadata: _Metadata
    previous_dialogs: list[_EarlierSession]


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One session: its utterances in order, the two speakers' personas, and how long before the last session it was
    (``6 days 3 hours ago``; None for the last one). ``speakers`` has the file's names of who speaks, None where it has
    none.
    """

    texts: tuple[str, ...]
    speakers: tuple[str | None, ...]
    personas: tuple[tuple[str, ...], ...]
    time_back: str | None


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    """One line of a file: a conversation up to some session. ``place`` names the line in messages."""

    conversation_id: str
    line: int
    sessions: tuple[SessionRecord, ...]
    place: str


_EPISODE = TypeAdapter(_Episode)


def parse(chunks: Iterable[bytes], source: str) -> Iterator[ConversationRecord]:
    """The file's conversations in order; ``source`` names it in errors.

    Raises:
        DataError: a line is not MSC's schema, or a session has no utterance or not two personas.
    """
    for number, raw in line_objects(chunks, source):
        place = f"{source}: line {number}"
        episode = checked(_EPISODE, raw, place)
        sessions = [
            _record(session, session.time_back.strip(), f"{place}: previous_dialogs[{position}]")
            for position, session in enumerate(episode.previous_dialogs)
        ]
        sessions.append(_record(episode, None, place))
        yield ConversationRecord(episode.metadata.initial_data_id, number, tuple(sessions), place)


def _record(session: _Session, time_back: str | None, place: str) -> SessionRecord:
    if not session.dialog:
        raise DataError(f"{place}: dialog: has no utterance")
    if len(session.personas) != 2:
        raise DataError(f"{place}: personas: {len(session.personas)} where two are expected")
    return SessionRecord(
        tuple(utterance.text for utterance in session.dialog),
        tuple(utterance.id for utterance in session.dialog),
        tuple(map(tuple, session.personas)),
        time_back,
    )
