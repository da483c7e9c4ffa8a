"""The protocols where the outside plugs in. Everything below `flexmem.sweep` sees models, embedders and indexes only
through these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from flexmem.history import Piece, Unit

FloatArray = NDArray[np.float64]
VectorArray = NDArray[np.float32]
IntArray = NDArray[np.int64]

Role = Literal["agent", "reader", "memory", "judge"]


# ---------------------------------------------------------------- models


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message as models take it."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One model call. ``role`` says on whose behalf (docs/methods.md 0.4); ``schema`` asks for JSON of that JSON
    Schema; ``max_tokens`` bounds the reply. ``sample`` tells draws of one request apart: a second try is not answered
    with the first one's kept reply.
    """

    messages: tuple[Message, ...]
    role: Role
    max_tokens: int
    temperature: float | None = None
    effort: str | None = None
    schema: Mapping[str, Any] | None = None
    sample: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counts them; None where it doesn't say.

    ``input`` holds all of the prompt, ``cached`` (read from a prompt cache) and ``cache_written`` (written to one) as
    well; ``output`` holds ``reasoning``.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    cache_written: int | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that was sent. ``number`` counts from 1; ``started_at`` is in Unix seconds; ``outcome`` is ``reply``
    or the name of the error's class; ``usd`` is what it cost, None where price or usage is unknown.
    """

    number: int
    started_at: float
    latency_s: float
    outcome: str
    status: int | None
    usage: Usage
    usd: float | None


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply. ``finish`` is the provider's reason (``stop``, ``length`` …); ``dropped`` names parameters that
    the model does not take; ``trail`` holds every request that was sent for it, in order.
    """

    text: str
    model: str
    usage: Usage
    finish: str
    latency_s: float = 0.0
    attempts: int = 1
    dropped: tuple[str, ...] = ()
    trail: tuple[Attempt, ...] = ()


@runtime_checkable
class ChatModel(Protocol):
    """A chat model behind any endpoint.

    ``name`` is the model's; ``describe`` gives all that shapes its replies (address, parameters; no key) and so enters
    fingerprints.
    """

    @property
    def name(self) -> str: ...

    def describe(self) -> Mapping[str, Any]: ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer, or raise one of `flexmem.llm.errors`."""
        ...


@dataclass(frozen=True, slots=True)
class Lease:
    """Leave to send one request, of some ``tokens`` (an estimate of prompt and reply). ``key`` tells leases of one
    budget apart.
    """

    key: str
    tokens: int


class RateBudget(Protocol):
    """What an account may send in a minute, shared by all who send on it."""

    async def acquire(self, tokens: int) -> Lease:
        """Wait for one's turn to send a request of about ``tokens`` (prompt and reply)."""
        ...

    async def settle(self, lease: Lease, tokens: int | None) -> None:
        """Give the lease back with what the request used: the difference to the estimate is refunded or charged. None:
        nothing was sent, or its use is unknown.
        """
        ...

    async def rejected(self, lease: Lease, retry_after: float | None) -> None:
        """Give the lease back after a 429, which asked for ``retry_after`` seconds of pause if it said so: everyone
        waits, and a budget that learns its limits lowers them.
        """
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One call for a reply. ``key`` is all that shapes the reply; ``call`` names this call, ``owner`` who makes it.

    ``repeat`` is the repeat's index; ``subject`` is what the call is made for: the key of an episode, a build or a
    judgement. ``most_usd`` is the most that it can cost, None where no price is known.
    """

    key: str
    call: str
    owner: str
    model: str
    role: str
    repeat: int = 0
    subject: str = ""
    most_usd: float | None = None


class ReplyStore(Protocol):
    """Keeps replies, so that no call is paid twice and no paid reply is lost."""

    async def begin(self, call: Call) -> ChatReply | None:
        """The kept reply; None once the caller may send: the intent is on disk then. Waits while another sends the
        same.

        Raises:
            OSError: nothing can be kept, so nothing may be sent.
        """
        ...

    async def finish(self, call: Call, reply: ChatReply) -> None:
        """Keep the reply; it is on disk when this returns."""
        ...

    async def give_up(self, call: Call, reason: str, trail: tuple[Attempt, ...] = ()) -> None:
        """The call brought no reply; whoever waits for the same may send. ``trail``: what was sent all the same."""
        ...


# ---------------------------------------------------------------- embedding and retrieval


@runtime_checkable
class Embedder(Protocol):
    """e(x): unit-length vectors. ``name`` identifies weights and back-end (it is part of cache keys and fingerprints);
    ``dimension`` is their length.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        """Vectors of shape (len(texts), dimension), float32, L2-normalised. A text's vector does not depend on the
        others in the call.
        """
        ...


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """How a history is cut and indexed. ``dense``: embed the pieces at write time. ``bm25``: ``flexmem`` or
    ``rank_bm25``, the reference back-end.
    """

    piece_tokens: int = 128
    dense: bool = True
    bm25: Literal["flexmem", "rank_bm25"] = "flexmem"


@runtime_checkable
class HistoryIndex(Protocol):
    """The pieces of the units written so far and how they answer a query. Piece i is row i of every array.

    An implementation may hold the history privately or share one that was built once per node; both give equal results.
    """

    @property
    def config(self) -> IndexConfig: ...

    @property
    def units(self) -> Sequence[Unit]: ...

    @property
    def pieces(self) -> Sequence[Piece]: ...

    def unit_pieces(self, uid: int) -> range:
        """Indices of a unit's pieces; consecutive."""
        ...

    async def append(self, unit: Unit) -> None:
        """Cut, count, embed and index the next unit.

        Raises:
            ValueError: ``unit.uid`` is not the next one.
        """
        ...

    def bm25(self, text: str, *, stemmed: bool = False) -> FloatArray:
        """Okapi scores of all pieces against ``text`` (docs/methods.md A.3), shape (pieces,)."""
        ...

    def cosine(self, vector: VectorArray) -> VectorArray:
        """Cosines of all pieces, shape (pieces,). Pieces of equal content have equal cosines."""
        ...

    def cosine_at(self, vector: VectorArray, pieces: IntArray) -> VectorArray:
        """`cosine` of some pieces only, shape (len(pieces),), equal to the bit."""
        ...

    def nearest(self, vector: VectorArray) -> Iterator[IntArray]:
        """All pieces by (-cosine, index): consecutive stretches, none empty, each made when it is asked for. Who needs
        the best few asks for no more, and a large corpus is not sorted.
        """
        ...


class IndexFactory(Protocol):
    """Opens an empty (or shared, pre-built) index for one history."""

    def __call__(self, config: IndexConfig) -> HistoryIndex: ...


@dataclass(frozen=True)
class Services:
    """What a method may use while it builds and reads a memory.

    ``model`` is the memory role's, None where none is configured; ``seed`` is the repeat's index, for whatever a method
    draws at random; ``room`` is M in tokens, for methods that declare a build per budget, None for others.
    """

    embedder: Embedder
    open_index: IndexFactory
    model: ChatModel | None = None
    seed: int = 0
    room: int | None = None
