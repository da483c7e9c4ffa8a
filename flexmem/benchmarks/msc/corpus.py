"""MSC as histories: what a selector is trained on (docs/methods.md E.2c)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import PositiveInt

from flexmem.benchmarks import data
from flexmem.benchmarks.msc.files import DIALOGUES, LAST_SESSIONS, Part
from flexmem.benchmarks.msc.schema import ConversationRecord, SessionRecord, parse
from flexmem.benchmarks.protocol import BenchmarkConfig, DataError, Instance
from flexmem.history import READER_UNIT_TOKENS, Session, Turn, TurnRole

SPEAKERS = ("Speaker 1", "Speaker 2")

Personas = tuple[tuple[str, ...], tuple[str, ...]]
"""What the two speakers were told, or had said by then, of themselves."""


class MscConfig(BenchmarkConfig):
    """Which file is read.

    ``last_session`` (2 to 5) is the session that its conversations end with, the earlier ones come with it; ``part`` as
    the authors split them, of session 5 valid and test only. ``path`` is a file of your own in its place, plain or
    ``.xz``. ``conversations`` keeps the first n.
    """

    last_session: int = 4
    part: Part = "train"
    path: str | None = None
    conversations: PositiveInt | None = None
    unit_tokens: PositiveInt = READER_UNIT_TOKENS


@dataclass(frozen=True)
class Conversation:
    """One conversation. ``instance`` has no questions; its sessions have what was said, and as date how long before
    the last session they were. ``personas``, one pair a session, are beside it: nobody said them.
    """

    instance: Instance
    personas: tuple[Personas, ...]


@dataclass(frozen=True)
class Corpus:
    """The conversations of one file, its SHA-256, and what is to be said of it wherever results rest on it."""

    conversations: tuple[Conversation, ...]
    digest: str
    notes: tuple[str, ...]

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The histories."""
        return tuple(conversation.instance for conversation in self.conversations)


def load(config: MscConfig | None = None) -> Corpus:
    """Read the conversations of one file, in its order.

    Raises:
        DataError: no such file is published, it is missing and unreachable, not the pinned one, or malformed.
    """
    config = config or MscConfig()
    name, checked, pinned = _file(config)
    conversations: list[Conversation] = []
    named: Counter[str] = Counter()
    for record in parse(data.raw_chunks(checked.path), name):
        if config.conversations is not None and len(conversations) == config.conversations:
            break
        conversations.append(_conversation(record, named, config))
    if not conversations:
        raise DataError(f"{name}: has no conversation. Replace the file.")
    return Corpus(tuple(conversations), checked.sha256, _notes(name, conversations, named, checked.sha256, pinned))


def _file(config: MscConfig) -> tuple[str, data.Checked, bool]:
    if config.path is not None:
        return config.path, data.checked_own(Path(config.path).expanduser()), False
    file = DIALOGUES.get((config.last_session, config.part))
    if file is None:
        raise DataError(
            f"MSC has no file of last_session {config.last_session}, part {config.part!r}: sessions are "
            f"{LAST_SESSIONS[0]} to {LAST_SESSIONS[-1]}, and the last one has no train part"
        )
    return file.name, data.checked(file), file.sha256 is not None


def _conversation(record: ConversationRecord, named: Counter[str], config: MscConfig) -> Conversation:
    sessions = [_session(number, session, record.place) for number, session in enumerate(record.sessions, 1)]
    for session in record.sessions:
        named.update("other" for speaker in session.speakers if speaker is not None and speaker not in SPEAKERS)
    personas = tuple((session.personas[0], session.personas[1]) for session in record.sessions)
    name = f"{record.conversation_id}/{record.line}"  # one of the file's ids may stand in several of its lines
    instance = Instance(name, tuple(sessions), (), config.unit_tokens)
    return Conversation(instance, personas)


def _session(number: int, record: SessionRecord, place: str) -> Session:
    """The speakers take turns and the first begins: earlier sessions name nobody, and in some lines a number stands
    for a name. A name that says otherwise is an error.
    """
    turns = []
    for position, (text, named) in enumerate(zip(record.texts, record.speakers, strict=True)):
        speaker = SPEAKERS[position % 2]
        if named in SPEAKERS and named != speaker:
            raise DataError(f"{place}: dialog[{position}].id: {named!r}, where it is the turn of {speaker}")
        role: TurnRole = "user" if position % 2 == 0 else "assistant"
        turns.append(Turn(f"{number}:{position + 1}", role, text, speaker))
    return Session(str(number), tuple(turns), record.time_back)


def _notes(
    name: str, conversations: Sequence[Conversation], named: Counter[str], digest: str, pinned: bool
) -> tuple[str, ...]:
    sessions = sum(len(conversation.instance.sessions) for conversation in conversations)
    notes = [
        f"MSC: {len(conversations):,} conversations of {sessions:,} sessions from {name}; no licence is stated for its "
        "data, so nothing of it is to be passed on."
    ]
    if named:
        notes.append(f"{named['other']} utterances have a number for their speaker; they are told by their turn.")
    if not pinned:
        notes.append(f"No digest of {name} itself is pinned; what was read has SHA-256 {digest}.")
    return tuple(notes)
