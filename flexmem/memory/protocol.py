"""What a memory method is (docs/methods.md 0.3): a `Method` makes a `MemoryBuild`, which is written unit by unit and
read through a `MemoryView`.

Invariants that every method is tested on: ``rendering.tokens <= budget.room``; equal input and equal model replies give
byte-identical text; `write` is called once a unit
and in order; raw text never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict

from flexmem.errors import FlexmemError
from flexmem.history import Piece, Unit
from flexmem.ports import Services, VectorArray

TaskKind = Literal["agent", "reader"]


class MethodError(FlexmemError):
    """Base of what a memory method raises on purpose."""


class WriteOrderError(MethodError):
    """A unit was written twice, or not in order."""


class BudgetError(MethodError, ValueError):
    """The room can't hold the least that the method must show."""


class StateError(MethodError, ValueError):
    """A saved state is not one of this method in this configuration."""


class MethodConfig(BaseModel):
    """Base of every method's configuration: immutable, unknown keys refused. A field that the papers don't fix carries
    its reason.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


@dataclass(frozen=True)
class Query:
    """What a call is about; it never carries a gold answer or evidence.

    Readers: ``text`` and ``excerpt_text`` are the question, ``vector`` is e(question). Agents (FlexA-Mem App. A): both
    texts are the newest unit, ``task`` is the task's
    text, ``vector`` is the normalised sum e(task) + e(newest unit), and ``excerpt_vector`` is e(newest unit).
    ``asked_at`` is the date of the question, as its benchmark writes dates, where it has one.
    """

    text: str
    vector: VectorArray
    excerpt_text: str
    excerpt_vector: VectorArray
    task: str | None = None
    asked_at: str | None = None

    @classmethod
    def question(cls, text: str, vector: VectorArray, asked_at: str | None = None) -> Query:
        """A reader's query."""
        return cls(text=text, vector=vector, excerpt_text=text, excerpt_vector=vector, asked_at=asked_at)


@dataclass(frozen=True, slots=True)
class Budget:
    """A call's tokens: ``total`` is B, ``window`` is R, the recent window's (0 for readers)."""

    total: int
    window: int = 0

    @property
    def room(self) -> int:
        """M = B - R: what the memory may use."""
        return self.total - self.window


class Resolution(StrEnum):
    """In which form a rendering shows something. ``frame`` is what the method adds itself: headings and gap markers
    between blocks.
    """

    RAW = "raw"
    EXCERPT = "excerpt"
    RECORD = "record"
    MERGED = "merged"
    PIECE = "piece"
    NOTE = "note"
    SUMMARY = "summary"
    PLACEHOLDER = "placeholder"
    FRAME = "frame"


VERBATIM = frozenset({Resolution.RAW, Resolution.EXCERPT, Resolution.PIECE})


class Degraded(StrEnum):
    """Why a written unit is not shown raw (FlexA-Mem E.9)."""

    NOT_CANDIDATE = "not a candidate"
    DID_NOT_FIT = "did not fit"
    EXCERPT_DID_NOT_FIT = "excerpt did not fit"


class RenderedBlock(NamedTuple):
    """Provenance of ``rendering.text[start:end]``: the units it stands for, its resolution, the pieces it shows
    verbatim, and its tokens.
    """

    uids: tuple[int, ...]
    resolution: Resolution
    pieces: tuple[int, ...]
    start: int
    end: int
    tokens: int


@dataclass(frozen=True)
class Rendering:
    """The memory shown for one call.

    ``blocks`` cover ``text`` without gap or overlap. ``ranking`` holds the candidates' ids in order (pieces in piece
    mode, units in unit mode); ``degraded`` says for each
    written unit that is not raw why (unit mode only). ``hidden`` counts timeline entries that this call did not show.
    """

    text: str
    tokens: int
    blocks: tuple[RenderedBlock, ...] = ()
    ranking: tuple[int, ...] = ()
    degraded: Mapping[int, Degraded] = field(default_factory=dict)
    hidden: int = 0

    def shown_pieces(self) -> frozenset[int]:
        """Pieces that are shown verbatim: in raw, excerpt and piece blocks."""
        return frozenset(piece for block in self.blocks if block.resolution in VERBATIM for piece in block.pieces)

    def tokens_by_resolution(self) -> dict[str, int]:
        """Tokens of each resolution that occurs."""
        shares: dict[str, int] = {}
        for block in self.blocks:
            shares[block.resolution.value] = shares.get(block.resolution.value, 0) + block.tokens
        return shares


class MemoryView(Protocol):
    """A reader's private look at a build: what reading changes stays in it."""

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """The memory for one call, of at most ``budget.room`` tokens.

        Raises:
            BudgetError: the room can't hold the method's frame.
        """
        ...


class MemoryBuild(Protocol):
    """A memory written from a history. For agents, build and view live together; for readers a finished build is shared
    and read through views.
    """

    @property
    def fallbacks(self) -> Mapping[str, int]:
        """How often the build did other than asked (a model's reply unusable, a rule in its place), by reason."""
        ...

    @property
    def pieces(self) -> Sequence[Piece]:
        """The pieces that renderings' provenance names, by index."""
        ...

    async def write(self, unit: Unit) -> None:
        """Take the next unit; called once a unit, in order. Where it failed for want of a model or an embedder, it can
        be called again with the same unit.

        Raises:
            WriteOrderError: ``unit`` was written before or skips one.
        """
        ...

    def view(self) -> MemoryView: ...

    def state(self) -> bytes:
        """All that `restore` needs, merged records included; vectors are left out, since text gives them again."""
        ...

    async def restore(self, state: bytes) -> None:
        """Become the build that ``state`` was taken from; only an empty build may.

        Raises:
            StateError: the state is damaged, or of another method, configuration or format.
            WriteOrderError: something was written already.
        """
        ...


@dataclass(frozen=True)
class FidelityCard:
    """How far a method is its authors': source; what follows it; what is ours; what differs from reference code and
    why; how free values were set.
    """

    source: str
    follows: str
    ours: str
    differs: str
    tuning: str


@dataclass(frozen=True)
class MethodInfo:
    """A method's declared properties, checked by the contract tests and shown by ``flexmem methods``.

    ``writes_with_model``, ``reads_with_model``: the memory model is called when a unit is written, or a memory is read.
    What reading makes it write lasts, so that the same call again is free; not so with ``asks_per_call``: there the
    model is asked anew through every view, and what that costs is a question's own. ``rewrites_text``: what is shown is
    mostly not the history's own words, so evidence visibility does not apply (docs/methods.md E.6b).
    ``build_per_budget``: what is written depends on the room (`flexmem.ports.Services.room`). ``tools``: a view has
    tools. ``tasks``: what it is for. ``prompts``: the templates that it asks the memory model with
    (`flexmem.memory.prompts`), whose digest is part of a build's fingerprint; what a plug-in asks belongs in its
    configuration.
    """

    name: str
    family: str
    summary: str
    card: FidelityCard
    writes_with_model: bool = False
    reads_with_model: bool = False
    asks_per_call: bool = False
    rewrites_text: bool = False
    build_per_budget: bool = False
    tools: bool = False
    prompts: tuple[str, ...] = ()
    tasks: tuple[TaskKind, ...] = ("agent", "reader")


class Method(Protocol):
    """A named memory configuration."""

    @property
    def info(self) -> MethodInfo: ...

    @property
    def config(self) -> MethodConfig: ...

    def build(self, services: Services) -> MemoryBuild:
        """An empty build. A method that needs a model raises `MethodError` where ``services.model`` is None."""
        ...


def describe_method(method: Method) -> dict[str, Any]:
    """Name and full configuration: what of a method enters fingerprints."""
    return {"name": method.info.name, "config": method.config.model_dump(mode="json")}
