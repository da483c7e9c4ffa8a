"""Links between records without a model: by cosine and by shared rare entities (ours; docs/methods.md A.2)."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.records import Record
from flexmem.ports import VectorArray
from flexmem.retrieval.dense import inner_products


class Links:
    """Undirected links; a unit's own are made once, when it is written, and go to earlier units only."""

    def __init__(self, config: FlexaConfig) -> None:
        self._config = config
        self._neighbours: defaultdict[int, set[int]] = defaultdict(set)
        self._mentions: defaultdict[str, list[int]] = defaultdict(list)

    def of(self, uid: int) -> set[int]:
        """Units linked with ``uid``."""
        return self._neighbours.get(uid, set())

    def add(self, record: Record, vector: VectorArray, earlier: VectorArray) -> None:
        """Link the newest record; ``earlier`` holds the vectors of all records before it, row = uid."""
        for other in self._by_cosine(vector, earlier) + self._by_entities(record):
            self._neighbours[record.uid].add(other)
            self._neighbours[other].add(record.uid)

    def _by_cosine(self, vector: VectorArray, earlier: VectorArray) -> list[int]:
        if not len(earlier) or not self._config.links_per_unit:
            return []
        cosines = inner_products(earlier, vector)
        best = np.argsort(-cosines, kind="stable")[: self._config.links_per_unit]
        return [int(uid) for uid in best if cosines[uid] >= self._config.link_cosine]

    def _by_entities(self, record: Record) -> list[int]:
        shared: Counter[int] = Counter()
        for entity in dict.fromkeys(name.casefold() for name in record.entities):
            mentions = self._mentions[entity]
            if len(mentions) < self._config.rare_entity_df:  # this record is one more
                shared.update(mentions)
            mentions.append(record.uid)
        linked = [uid for uid, times in shared.items() if times >= self._config.link_entities]
        return sorted(linked, key=lambda uid: (-shared[uid], -uid))[: self._config.links_per_unit]
