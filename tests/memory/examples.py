"""What the worked examples are made of: texts whose tokens can be counted by eye, and vectors known by hand.

Every word of `words` is one token, at a line's start as after a blank; a line break is one, and so is a full stop with
the line break after it. So ``Ann: red blue\\n`` has 2 + 2 + 1 tokens, the headers ``### u00 — session 1\\n`` and
``### u00 — step 1\\n`` have 8, and the gap mark ``[...]\\n`` has 3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import numpy as np

from flexmem.history import Session, Turn, Unit, split_sessions
from flexmem.memory.protocol import Budget, MemoryBuild, Query, Rendering
from flexmem.memory.registry import find_method
from flexmem.ports import ChatModel, Embedder, IndexConfig, Services, VectorArray
from flexmem.retrieval.index import LocalIndex

T = TypeVar("T")
_CYCLE = ("red", "blue", "green", "one", "two", "three")


def words(number: int) -> str:
    """That many words of one token each."""
    return " ".join(_CYCLE[i % len(_CYCLE)] for i in range(number))


def chat(*sessions: Sequence[str], limit: int = 10**6, speaker: str | None = "Ann") -> list[Unit]:
    """Units of a conversation, by default one a session; every turn is the user's."""
    made = [
        Session(
            str(number),
            tuple(Turn(f"D{number}:{i}", "user", said, speaker) for i, said in enumerate(turns, 1)),
        )
        for number, turns in enumerate(sessions, 1)
    ]
    return split_sessions(made, history="h", limit=limit)


class CompassEmbedder:
    """A text points where its compass words do; without one it points up. ``north`` and ``east`` are at right angles,
    ``north east`` lies between them (cosine 0.707 to both).
    """

    name = "compass"
    dimension = 3

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        return np.array([self.vector(text) for text in texts], dtype=np.float32).reshape(len(texts), 3)

    @staticmethod
    def vector(text: str) -> VectorArray:
        """The vector of one text."""
        found = [text.count("north"), text.count("east"), 0]
        row = np.array(found if any(found) else [0, 0, 1], dtype=np.float32)
        pointing: VectorArray = row / np.linalg.norm(row)
        return pointing


def compass_query(text: str, direction: str) -> Query:
    """A question about ``text`` whose vector points in ``direction``."""
    return Query.question(text, CompassEmbedder.vector(direction))


def written(
    name: str,
    units: Sequence[Unit],
    *,
    embedder: Embedder | None = None,
    model: ChatModel | None = None,
    **options: Any,
) -> MemoryBuild:
    """A build of the named method with all units written."""
    embedder = embedder or CompassEmbedder()

    def open_index(config: IndexConfig) -> LocalIndex:
        return LocalIndex(config, embedder if config.dense else None)

    build = find_method(name).configured(options).build(Services(embedder, open_index, model))

    async def write() -> None:
        for unit in units:
            await build.write(unit)

    asyncio.run(write())
    return build


def shown(build: MemoryBuild, query: Query, budget: int | Budget) -> Rendering:
    """One rendering through a view of its own; a number is a reader's budget."""
    return wait(build.view().render(query, Budget(budget) if isinstance(budget, int) else budget))


def wait(coroutine: Coroutine[Any, Any, T]) -> T:
    """A coroutine's result."""
    return asyncio.run(coroutine)
