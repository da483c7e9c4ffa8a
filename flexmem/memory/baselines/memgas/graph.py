"""Sessions as nodes of four granularities, their links, and how a query ranks them (docs/methods.md B.8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexmem.memory.baselines.memgas.config import MemgasConfig
from flexmem.memory.baselines.mixtures import fit_mixture, repeatable
from flexmem.ports import FloatArray, IntArray, VectorArray
from flexmem.retrieval.dense import inner_products

GRANULARITIES = 4  # the session's text, the mean of its turns, its summary, its keywords


class Graph:
    """Node ``4 s + g`` is session s at granularity g. A node's own links go to nodes of earlier sessions."""

    def __init__(self, config: MemgasConfig) -> None:
        self._config = config
        self._vectors: list[VectorArray] = []  # by session, shape (4, dimension)
        self._links: list[list[IntArray]] = []  # by session and granularity
        self._walkable: Any = None

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def links(self) -> list[tuple[int, int]]:
        """All links, (later node, earlier node)."""
        return [
            (GRANULARITIES * session + granularity, int(earlier))
            for session, own in enumerate(self._links)
            for granularity, found in enumerate(own)
            for earlier in found
        ]

    def put(self, session: int, vectors: VectorArray) -> None:
        """Add the next session, or take the last one's nodes again, whose text has grown."""
        del self._vectors[session:], self._links[session:]
        links: list[IntArray] = []
        if session >= self._config.unlinked_sessions:
            earlier = np.concatenate(self._vectors)
            with repeatable():
                links = [link(inner_products(earlier, vector), self._config) for vector in vectors]
        self._vectors.append(vectors)
        self._links.append(links)
        self._walkable = None

    def rank(self, query: VectorArray) -> list[int]:
        """All sessions, the best first; equal ones in time order."""
        totals = self.scores(query)
        order: list[int] = np.argsort(-totals, kind="stable").tolist()
        return order

    def scores(self, query: VectorArray) -> FloatArray:
        """Every session's score: the sum over its four nodes of the walk's chances to be there."""
        if not self._vectors:
            return np.zeros(0)
        likeness = inner_products(np.concatenate(self._vectors), query).reshape(-1, GRANULARITIES).astype(np.float64)
        scores = (likeness * weights(likeness, self._config.temperature)).ravel()
        start = seeds(scores, self._config.seeds)
        totals: FloatArray = self._walk(start).reshape(-1, GRANULARITIES).sum(axis=1)
        return totals

    def _walk(self, start: FloatArray) -> FloatArray:
        """Personalised PageRank of every node; ``start`` are the odds of starting there."""
        import networkx

        if self._walkable is None:
            self._walkable = networkx.Graph()
            self._walkable.add_nodes_from(range(GRANULARITIES * len(self)))
            self._walkable.add_edges_from(self.links)
        chances = dict(enumerate(start.tolist())) if start.any() else None  # nothing like the query: anywhere
        damping = self._config.damping
        found = networkx.pagerank(self._walkable, alpha=damping, personalization=chances, max_iter=1_000, tol=1e-12)
        return np.array([found[node] for node in range(len(start))])


def link(similarities: VectorArray, config: MemgasConfig) -> IntArray:
    """The nodes that a new one is linked to: of the ``candidates`` most similar ones those which a mixture of two
    Gaussians puts into the component with the higher mean. To be called within `repeatable`.
    """
    best = np.argsort(-similarities, kind="stable")[: config.candidates]
    points = similarities[best].astype(np.float64).reshape(-1, 1)
    if len(points) < 2:
        return best[:0]
    mixture = fit_mixture(points, 2, config.seed)
    higher: NDArray[np.bool_] = mixture.predict(points) == int(np.argmax(mixture.means_))
    return best[higher]


def weights(likeness: FloatArray, temperature: float) -> FloatArray:
    """The weight of each granularity, shape (4,), out of the similarities of shape (sessions, 4): the more one tells
    sessions apart, the lower its entropy and the higher its weight.
    """
    sessions = len(likeness)
    if sessions < 2:
        return np.full(GRANULARITIES, 1 / GRANULARITIES)
    odds = np.exp((likeness - likeness.max(axis=0)) / temperature)
    odds /= odds.sum(axis=0)
    entropy = -(odds * np.log(np.maximum(odds, np.finfo(np.float64).tiny))).sum(axis=0) / np.log(sessions)
    told = np.maximum(0.0, 1 - entropy)
    total = told.sum()
    return told / total if total > 1e-12 else np.full(GRANULARITIES, 1 / GRANULARITIES)


def seeds(scores: FloatArray, number: int) -> FloatArray:
    """The scores of the best ``number`` nodes, 0 for the others and in place of negative ones."""
    best: Sequence[int] = np.argsort(-scores, kind="stable")[:number].tolist()
    start = np.zeros_like(scores)
    start[best] = np.maximum(0.0, scores[best])
    return start
