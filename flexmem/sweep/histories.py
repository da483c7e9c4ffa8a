"""A history as all arms of a worker see it: one shared index per cut, and what is looked up for every question."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from flexmem.agents.answer_recall import WordFinder, answer_words
from flexmem.agents.evidence import EvidenceMap
from flexmem.benchmarks.protocol import Instance
from flexmem.history import Piece, Unit
from flexmem.memory.protocol import MemoryBuild
from flexmem.ports import Embedder, FloatArray, HistoryIndex, IndexConfig, IntArray, VectorArray
from flexmem.retrieval.index import IndexSnapshot, SharedIndex
from flexmem.retrieval.ordering import order_pieces

Snapshots = Callable[[IndexConfig], Awaitable[IndexSnapshot]]
"""Gives a history's frozen index of a configuration; built once a node, whoever asks."""


class DeferredIndex:
    """A `HistoryIndex` over a snapshot that is fetched when the first unit is written: opening an index awaits
    nothing.
    """

    def __init__(self, config: IndexConfig, snapshots: Snapshots) -> None:
        self.config = config
        self._snapshots = snapshots
        self._index: SharedIndex | None = None

    @property
    def units(self) -> Sequence[Unit]:
        return self._index.units if self._index else ()

    @property
    def pieces(self) -> Sequence[Piece]:
        return self._index.pieces if self._index else ()

    def unit_pieces(self, uid: int) -> range:
        """See `HistoryIndex.unit_pieces`."""
        if self._index is None:
            raise KeyError(f"unit {uid} is not in the index of 0 units")
        return self._index.unit_pieces(uid)

    async def append(self, unit: Unit) -> None:
        """See `HistoryIndex.append`."""
        if self._index is None:
            self._index = SharedIndex(await self._snapshots(self.config))
        await self._index.append(unit)

    def bm25(self, text: str, *, stemmed: bool = False) -> FloatArray:
        """See `HistoryIndex.bm25`."""
        return self._index.bm25(text, stemmed=stemmed) if self._index else np.zeros(0)

    def cosine(self, vector: VectorArray) -> VectorArray:
        """See `HistoryIndex.cosine`."""
        return self._index.cosine(vector) if self._index else np.zeros(0, dtype=np.float32)

    def cosine_at(self, vector: VectorArray, pieces: IntArray) -> VectorArray:
        """See `HistoryIndex.cosine_at`."""
        return self._index.cosine_at(vector, pieces) if self._index else np.zeros(0, dtype=np.float32)

    def nearest(self, vector: VectorArray) -> Iterator[IntArray]:
        """See `HistoryIndex.nearest`."""
        return self._index.nearest(vector) if self._index else iter(())


class History:
    """An instance with its questions' vectors, the ranks of their evidence, and its indexes.

    ``question_vectors`` has shape (questions, d); ``evidence_ranks`` counts from 1, None without evidence;
    ``extractive`` says which questions are in the population of answer recall, the same for all arms.
    """

    def __init__(self, instance: Instance, snapshots: Snapshots) -> None:
        self.instance = instance
        self.question_vectors: VectorArray = np.zeros((0, 0), dtype=np.float32)
        self.evidence_ranks: list[int | None] = []
        self.extractive: list[bool] = []
        self._fetch = snapshots
        self._snapshots: dict[IndexConfig, asyncio.Future[IndexSnapshot]] = {}
        self._lookups: dict[str, tuple[EvidenceMap, WordFinder]] = {}
        self._answers = [answer_words(question.answer or "") for question in instance.questions]

    async def prepare(self, embedder: Embedder) -> None:
        """Embed the questions and rank their evidence in the order that piece recovery takes (FlexA-Mem §6.4)."""
        questions = self.instance.questions
        self.question_vectors = await embedder.embed([question.text for question in questions])
        index = self.open_index(IndexConfig())
        for unit in self.instance.units:
            await index.append(unit)
        places, words, _ = self._lookups_of(index.pieces)
        for question, vector, answer in zip(questions, self.question_vectors, self._answers, strict=True):
            rank = None
            if question.evidence:
                order = order_pieces(index.bm25(question.text), index.cosine(vector))
                rank = places.rank(question.evidence, order.tolist())
            self.evidence_ranks.append(rank)
            self.extractive.append(question.scored_by_recall and words.is_extractive(answer))

    def open_index(self, config: IndexConfig) -> HistoryIndex:
        """An index to write the history's units into. All share one snapshot per cut; the vectors are always there."""
        return DeferredIndex(replace(config, dense=True), self._snapshot)

    def lookups(self, build: MemoryBuild) -> tuple[EvidenceMap, WordFinder, str]:
        """Where turns and words stand among a build's pieces, and that cut's name; shared by builds that cut alike."""
        return self._lookups_of(build.pieces)

    def _lookups_of(self, pieces: Sequence[Piece]) -> tuple[EvidenceMap, WordFinder, str]:
        ends = np.array([piece.end for piece in pieces], dtype=np.int64)
        cut = f"{self.instance.instance_id}/{hashlib.blake2b(ends.tobytes(), digest_size=4).hexdigest()}"
        if cut not in self._lookups:
            units = self.instance.units
            turns = {turn_id for question in self.instance.questions for turn_id in question.evidence}
            words = {word for answer in self._answers for word in answer}
            self._lookups[cut] = (EvidenceMap(units, pieces, turns), WordFinder(units, pieces, words))
        return *self._lookups[cut], cut

    async def _snapshot(self, config: IndexConfig) -> IndexSnapshot:
        if config not in self._snapshots:
            self._snapshots[config] = asyncio.ensure_future(self._fetch(config))
        return await self._snapshots[config]
