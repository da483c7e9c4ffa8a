"""Histories and how they are cut: turns and steps into units, units into pieces (docs/methods.md 0.5, 0.6, A.2).

A *unit* is what all methods share. Its text is a header line and its blocks; a *block* is one turn, or one step's
thought, action or output; a *piece* is a verbatim run
of lines of one block. Cutting depends on what came before only, so cut points never move as a history grows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from flexmem import tokens

AGENT_UNIT_TOKENS = 1_000  # FlexA-Mem §3
READER_UNIT_TOKENS = 2_000  # FlexA-Mem §3: "about 2,000"

Kind = Literal["agent", "reader"]
BlockKind = Literal["turn", "thought", "action", "output"]
TurnRole = Literal["user", "assistant", "system", "tool"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation. ``turn_id`` is what evidence labels name; a ``speaker`` becomes part of the text,
    a bare role does not.
    """

    turn_id: str
    role: TurnRole
    text: str
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A dated sitting of a conversation; ``date`` as the benchmark writes it."""

    session_id: str
    turns: tuple[Turn, ...]
    date: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One agent action plus the environment's output. ``number`` counts from 1."""

    number: int
    action: str
    output: str
    thought: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a unit that pieces never cross: ``unit.text[start:end]`` is ``prefix + content``.

    ``prefix`` holds the generic role or step words that we add: shown, never indexed. The content starts at
    ``content_start`` and ends with a newline.
    """

    kind: BlockKind
    source: str  # turn id, or "step 15"
    start: int
    content_start: int
    end: int


@dataclass(frozen=True)
class Unit:
    """A packed stretch of history; immutable. ``span`` is the first and last step number, or turn position in its
    history, both inclusive.
    """

    uid: int
    history: str
    kind: Kind
    header: str
    text: str
    tokens: int
    blocks: tuple[Block, ...]
    span: tuple[int, int]
    time: str | None = None
    session: str | None = None

    @property
    def label(self) -> str:
        """Its short name in renderings, such as ``u07``."""
        return f"u{self.uid:02d}"

    @cached_property
    def place(self) -> str:
        """Where it stands in the history: ``steps 15-18`` or ``session 7, 2023/05/20``."""
        return _place(self.kind, self.span, self.session, self.time)

    @cached_property
    def digest(self) -> str:
        """BLAKE2b of all that the unit holds."""
        content = repr((self.uid, self.history, self.kind, self.text, self.blocks, self.span, self.time, self.session))
        return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Piece:
    """A verbatim run of lines of one block: ``unit.text[start:end]``, block prefix included where it is the block's
    first piece.

    ``index`` counts the pieces of a history from 0; ``tokens`` is T of ``text``; ``content_start`` is where the indexed
    text begins.
    """

    index: int
    uid: int
    block: int
    start: int
    content_start: int
    end: int
    text: str
    tokens: int

    @property
    def content(self) -> str:
        """The text that is indexed and embedded: without the words that we add."""
        return self.text[self.content_start - self.start :]


def pack(sizes: Iterable[int], limit: int) -> Iterator[tuple[int, int]]:
    """Cut a sequence of item sizes greedily into runs of at most ``limit``: pairs (first, past the last). An item
    larger than that is a run by itself.
    """
    first = position = 0
    total = 0
    for size in sizes:
        if position > first and total + size > limit:
            yield first, position
            first, total = position, 0
        total += size
        position += 1
    if position > first:
        yield first, position


# ---------------------------------------------------------------- reader: sessions into spans


def split_session(
    session: Session, *, history: str, first_uid: int, first_turn: int, limit: int = READER_UNIT_TOKENS
) -> list[Unit]:
    """Cut a session at user turns into units of about ``limit`` tokens (FlexA-Mem §3; docs/methods.md 0.5).

    A round is a user turn and the turns up to the next one; turns before the first user turn are a round of their own.
    A round larger than ``limit`` is a unit by
    itself. ``first_turn`` is the position of the session's first turn in the history.
    """
    rounds = _rounds(session.turns)
    sizes = [sum(tokens.count(prefix + content) for prefix, content in map(_turn_text, group)) for group in rounds]
    units: list[Unit] = []
    turn = first_turn
    for first, past in pack(sizes, limit):
        turns = [t for group in rounds[first:past] for t in group]
        units.append(
            _assemble(
                uid=first_uid + len(units),
                history=history,
                kind="reader",
                span=(turn, turn + len(turns) - 1),
                time=session.date,
                session=session.session_id,
                parts=[("turn", t.turn_id, *_turn_text(t)) for t in turns],
            )
        )
        turn += len(turns)
    return units


def split_sessions(sessions: Sequence[Session], *, history: str, limit: int = READER_UNIT_TOKENS) -> list[Unit]:
    """All units of a conversation, in order. Sessions without a turn leave none."""
    units: list[Unit] = []
    turn = 0
    for session in sessions:
        units += split_session(session, history=history, first_uid=len(units), first_turn=turn, limit=limit)
        turn += len(session.turns)
    return units


def _rounds(turns: Sequence[Turn]) -> list[list[Turn]]:
    rounds: list[list[Turn]] = []
    for turn in turns:
        if turn.role == "user" or not rounds:
            rounds.append([])
        rounds[-1].append(turn)
    return rounds


def _turn_text(turn: Turn) -> tuple[str, str]:
    """Prefix (generic role word) and content (speaker's name included) of a turn's block."""
    if turn.speaker is not None:
        return "", _line(f"{turn.speaker}: {turn.text}")
    return f"{turn.role}: ", _line(turn.text)


# ---------------------------------------------------------------- agent and chat: items into units as they come

_Part = tuple[BlockKind, str, str, str]  # kind, source, prefix, content


class _Packer:
    """Packs items into units of at most ``limit`` tokens; the last unit stays open until the next item would overfill
    it.

    An item is never split; one larger than ``limit`` is a unit by itself.
    """

    _kind: Kind

    def __init__(self, *, history: str, limit: int = AGENT_UNIT_TOKENS) -> None:
        self._history = history
        self._limit = limit
        self._closed: list[Unit] = []
        self._firsts: list[int] = [0]
        self._open: list[tuple[tuple[int, int], list[_Part]]] = []
        self._open_tokens = 0
        self._items = 0

    @property
    def closed(self) -> Sequence[Unit]:
        """Units that no further item can change."""
        return self._closed

    @property
    def open(self) -> Unit | None:
        """The unit that the next item may still join."""
        return self._assemble_open() if self._open else None

    def units(self) -> list[Unit]:
        """Closed units, then the open one."""
        return [*self._closed, *([self._assemble_open()] if self._open else [])]

    def first_item(self, uid: int) -> int:
        """Position, among all items, of a unit's first; the number of items for the unit that comes next."""
        return self._firsts[uid] if uid < len(self._firsts) else self._items

    def _append(self, span: tuple[int, int], parts: list[_Part]) -> Unit | None:
        size = sum(tokens.count(prefix + content) for _, _, prefix, content in parts)
        closed = None
        if self._open and self._open_tokens + size > self._limit:
            closed = self._assemble_open()
            self._closed.append(closed)
            self._firsts.append(self._items)
            self._open, self._open_tokens = [], 0
        self._open.append((span, parts))
        self._open_tokens += size
        self._items += 1
        return closed

    def _assemble_open(self) -> Unit:
        return _assemble(
            uid=len(self._closed),
            history=self._history,
            kind=self._kind,
            span=(self._open[0][0][0], self._open[-1][0][1]),
            time=None,
            session=None,
            parts=[part for _, parts in self._open for part in parts],
        )


class StepPacker(_Packer):
    """Packs an agent's steps (FlexA-Mem §3: up to 1,000 tokens a unit; docs/methods.md 0.5)."""

    _kind: Kind = "agent"

    def append(self, step: Step) -> Unit | None:
        """Add the next step; returns the unit that this closed, if any."""
        return self._append((step.number, step.number), _step_parts(step))


class ChatPacker(_Packer):
    """Packs the messages of a running chat, which has no sessions; messages that belong together come as one item."""

    _kind: Kind = "reader"

    def __init__(self, *, history: str, limit: int = AGENT_UNIT_TOKENS) -> None:
        super().__init__(history=history, limit=limit)
        self._turns = 0

    def append(self, turns: Sequence[Turn]) -> Unit | None:
        """Add the next item of one turn or more; returns the unit that this closed, if any."""
        first = self._turns
        self._turns += len(turns)
        return self._append((first, self._turns - 1), [("turn", t.turn_id, *_turn_text(t)) for t in turns])


def pack_steps(steps: Iterable[Step], *, history: str, limit: int = AGENT_UNIT_TOKENS) -> list[Unit]:
    """All units of a trajectory, the open one last."""
    packer = StepPacker(history=history, limit=limit)
    for step in steps:
        packer.append(step)
    return packer.units()


def _step_parts(step: Step) -> list[_Part]:
    source = f"step {step.number}"
    parts: list[_Part] = []
    lead = f"Step {step.number}\n"
    if step.thought:
        parts.append(("thought", source, lead + "Thought: ", _line(step.thought)))
        lead = ""
    parts.append(("action", source, lead + "Action:\n", _line(step.action)))
    parts.append(("output", source, "Output:\n", _line(step.output)))
    return parts


# ---------------------------------------------------------------- units into pieces

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
_LONG_LINE_CHARACTERS = 128  # no token of o200k is longer than this many characters


def cut_pieces(unit: Unit, *, piece_tokens: int, first_index: int) -> list[Piece]:
    """Cut each block at line breaks into runs of at most ``piece_tokens`` tokens (FlexA-Mem §3.1; docs/methods.md A.2).

    A longer line is split at sentence ends, then hard. Blank lines stay with the line before. The pieces of a block,
    joined, are the block.
    """
    pieces: list[Piece] = []
    for number, block in enumerate(unit.blocks):
        content = unit.text[block.content_start : block.end]
        atoms = [atom for line in _lines(content) for atom in _atoms(line, piece_tokens)]
        sizes = [tokens.count(atom) for atom in atoms]
        position = block.content_start
        for first, past in pack(sizes, piece_tokens):
            end = position + sum(len(atom) for atom in atoms[first:past])
            start = block.start if first == 0 else position
            text = unit.text[start:end]
            pieces.append(
                Piece(
                    index=first_index + len(pieces),
                    uid=unit.uid,
                    block=number,
                    start=start,
                    content_start=position,
                    end=end,
                    text=text,
                    tokens=tokens.count(text),
                )
            )
            position = end
    return pieces


def _lines(content: str) -> list[str]:
    """Lines with their ends; a blank line belongs to the line before it, so that counts stay additive."""
    groups: list[list[str]] = []
    text_seen = False  # blank lines ahead of all text have no line before them: they go with the first one
    for line in re.findall(r"[^\n]*\n|[^\n]+", content):
        blank = not line.strip()
        if groups and (blank or not text_seen):
            groups[-1].append(line)
        else:
            groups.append([line])
        text_seen = text_seen or not blank
    return ["".join(group) for group in groups]


def _atoms(line: str, limit: int) -> list[str]:
    """A line whole if it fits, else its sentences, each hard-split where it is still too long."""
    if len(line) <= limit * _LONG_LINE_CHARACTERS and tokens.count(line) <= limit:
        return [line]
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(line)), len(line)]
    atoms: list[str] = []
    for start, end in pairwise(cuts):
        atoms += _hard_split(line[start:end], limit)
    return atoms


def _hard_split(text: str, limit: int) -> list[str]:
    parts = []
    start = 0
    while start < len(text):
        window = text[start : start + limit * _LONG_LINE_CHARACTERS]
        length = max(1, tokens.longest_prefix(window, limit))
        parts.append(window[:length])
        start += length
    return parts


# ---------------------------------------------------------------- the text of a unit


def _line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _place(kind: Kind, span: tuple[int, int], session: str | None, time: str | None) -> str:
    if kind == "agent":
        return f"step {span[0]}" if span[0] == span[1] else f"steps {span[0]}-{span[1]}"
    if not session and not time:
        return f"turns {span[0] + 1}-{span[1] + 1}"
    return ", ".join(part for part in (f"session {session}" if session else None, time) if part)


def _assemble(
    *,
    uid: int,
    history: str,
    kind: Kind,
    span: tuple[int, int],
    time: str | None,
    session: str | None,
    parts: Sequence[_Part],
) -> Unit:
    header = f"### u{uid:02d} — {_place(kind, span, session, time)}\n"
    text = header
    counted = [(header, tokens.count(header))]
    blocks = []
    for block_kind, source, prefix, content in parts:
        start = len(text)
        text += prefix + content
        blocks.append(Block(block_kind, source, start, start + len(prefix), len(text)))
        counted.append((prefix + content, tokens.count(prefix + content)))
    return Unit(
        uid=uid,
        history=history,
        kind=kind,
        header=header,
        text=text,
        tokens=tokens.count_parts(counted),
        blocks=tuple(blocks),
        span=span,
        time=time,
        session=session,
    )
