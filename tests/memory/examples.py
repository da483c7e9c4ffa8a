"""What the worked examples are made of: texts whose tokens can be counted by eye, and vectors known by hand.

Every word of `words` is one token, at a line's start as after a blank; a line break is one, and so is a full stop with
the line break after it. So ``Ann: red blue\\n`` has 2 + 2 + 1 tokens, the headers ``### u00 — session 1\\n`` and
``### u00 — step 1\\n`` have 8, and the gap mark ``[...]\\n`` has 3.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import numpy as np

from flexmem.history import Piece, Session, Step, Turn, Unit, cut_pieces, pack_steps, split_sessions
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.protocol import Budget, MemoryBuild, Query, Rendering, TaskKind
from flexmem.memory.registry import find_method
from flexmem.memory.selection import PieceTable
from flexmem.ports import ChatModel, ChatRequest, Embedder, IndexConfig, Services, VectorArray
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


def table_of(units: Sequence[Unit], piece_tokens: int = 24) -> PieceTable:
    """The units' pieces as a table."""
    pieces: list[Piece] = []
    table = PieceTable(lambda number: pieces[number].text)
    for unit in units:
        cut = cut_pieces(unit, piece_tokens=piece_tokens, first_index=len(table))
        pieces += cut
        table.extend(unit, cut)
    return table


# ---------------------------------------------------------------- longer histories, plain and drawn from a seed

_COMMON = ("the", "a", "of", "to", "and", "in", "was", "with", "her", "his", "then", "we", "it", "that", "from")
TOPICS = ("kettle", "garden", "stove", "river", "letter", "violin", "bakery", "ticket", "museum", "lantern", "orchard")
_NAMES = ("Ann", "Bo", "Caroline", "Melanie", "Paris", "Lisbon")
_VERBS = ("sang", "bought", "painted", "lost", "found", "mended", "visited", "carried", "wrote", "planned")


def sentence(drawn: random.Random) -> str:
    """A plain sentence: every line made of these counts exactly (docs/methods.md 0.4)."""
    said = [drawn.choice(_NAMES), drawn.choice(_VERBS)]
    said += [drawn.choice(drawn.choice((_COMMON, TOPICS, TOPICS, _NAMES))) for _ in range(drawn.randint(2, 9))]
    return " ".join(said) + "."


def speech(drawn: random.Random, most: int = 4) -> str:
    return " ".join(sentence(drawn) for _ in range(drawn.randint(1, most)))


def history(seed: int, kind: TaskKind, number: int = 30, limit: int = 120) -> list[Unit]:
    """A plain history of ``number`` turns or steps, in units of ``limit`` tokens."""
    drawn = random.Random(seed)
    if kind == "agent":
        steps = []
        for n in range(1, number + 1):
            call = f"{drawn.choice(TOPICS)} = api.{drawn.choice(_VERBS)}({n})"
            steps.append(Step(n, call, speech(drawn), drawn.choice(("", "I see."))))
        return pack_steps(steps, history="h", limit=limit)
    turns = [
        Turn(f"t{n}", drawn.choice(("user", "assistant")), speech(drawn), drawn.choice((None, "Ann")))
        for n in range(number)
    ]
    sessions: list[Session] = []
    while turns:
        size = drawn.randint(2, 7)
        day = len(sessions) + 1
        sessions.append(Session(str(day), tuple(turns[:size]), f"{day} May 2023"))
        turns = turns[size:]
    return split_sessions(sessions, history="h", limit=limit)


def clerk(records: Sequence[str], merged: str = "one", latency_s: float = 0.0) -> ScriptedModel:
    """A memory model that writes the given records, by unit, and one text for every merge."""

    def answer(request: ChatRequest) -> str:
        if request.schema is None:
            return merged
        header = re.search(r"^### u(\d+)", request.messages[-1].content, re.MULTILINE)
        assert header is not None
        return json.dumps({"record": records[int(header.group(1))], "keywords": [], "entities": []})

    return ScriptedModel(answer, latency_s=latency_s)
