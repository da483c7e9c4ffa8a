"""The index service: a history's pieces, counts, BM25 and vectors, built once and shared zero-copy through the object
store.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from typing import Any

import ray

from flexmem.benchmarks.protocol import Instance
from flexmem.ports import IndexConfig
from flexmem.retrieval.index import IndexSnapshot, LocalIndex
from flexmem.sweep.services.embedding import EmbeddingClient

SNAPSHOTS_KEPT = 16  # newest ones; an evicted one is built again when it is asked for
_ASKED = 5  # times, where the actor dies between its answer and the reading of it


class IndexActor:
    """Builds snapshots, each once however many ask, and hands out references to them."""

    def __init__(self, embedding: str, name: str, dimension: int) -> None:
        self._embedder = EmbeddingClient(embedding, name, dimension)
        self._snapshots: OrderedDict[tuple[str, str, IndexConfig], asyncio.Task[Any]] = OrderedDict()

    async def snapshot(self, benchmark: str, reference: list[Any], config: IndexConfig) -> list[Any]:
        """A reference (in a list, lest Ray resolve it) to the snapshot of an instance, itself given by reference."""
        instance: Instance = await reference[0]
        key = (benchmark, instance.instance_id, config)
        if key not in self._snapshots:
            self._snapshots[key] = asyncio.get_running_loop().create_task(self._build(instance, config))
            while len(self._snapshots) > SNAPSHOTS_KEPT:
                self._snapshots.popitem(last=False)
        try:
            return [await self._snapshots[key]]
        except Exception:
            self._snapshots.pop(key, None)  # the next who asks tries again
            raise

    async def pid(self) -> int:
        """Process id, for tests that kill it."""
        return os.getpid()

    async def _build(self, instance: Instance, config: IndexConfig) -> Any:
        index = LocalIndex(config, self._embedder)
        for unit in instance.units:
            await index.append(unit)
        return ray.put(index.freeze())


class IndexClient:
    """Fetches snapshots; their arrays stay in shared memory."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def snapshot(self, benchmark: str, reference: Any, config: IndexConfig) -> IndexSnapshot:
        """The frozen index of an instance given by reference.

        Raises:
            ray.exceptions.ObjectLostError: the actor died again and again before its answer could be read.
        """
        for asked in range(1, _ASKED + 1):
            references = await self._actor.snapshot.remote(benchmark, [reference], config)
            try:
                snapshot: IndexSnapshot = await references[0]
            except ray.exceptions.ObjectLostError:  # it went with the actor, which comes back and builds it again
                if asked == _ASKED:
                    raise
            else:
                break
        return snapshot
