"""The embedding service: one model for all workers, requests of many merged into batches."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ray

from flexmem.ports import VectorArray
from flexmem.retrieval.embedding import CachedEmbedder, SentenceTransformerEmbedder
from flexmem.retrieval.vector_cache import VectorCache

MOST_TEXTS = 256  # of one merged request: enough to fill batches of equal length


class EmbeddingActor:
    """Embeds off the event loop; what arrives meanwhile is merged into the next batch."""

    def __init__(self, model: str, device: str | None, batch_size: int, cache: str) -> None:
        if device in (None, "cpu") and os.environ.get("OMP_NUM_THREADS") == "1":
            import torch

            torch.set_num_threads(1)
        inner = SentenceTransformerEmbedder(model, device=device, batch_size=batch_size)
        self._embedder = CachedEmbedder(inner, VectorCache(Path(cache)))
        self._queue: asyncio.Queue[tuple[list[str], asyncio.Future[VectorArray]]] = asyncio.Queue()
        self._running: asyncio.Task[None] | None = None
        self._batches = 0

    async def dimension(self) -> int:
        """Length of a vector."""
        return await asyncio.to_thread(lambda: self._embedder.dimension)

    async def embed(self, texts: list[str]) -> VectorArray:
        """See `flexmem.ports.Embedder.embed`."""
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._serve())
        vectors: asyncio.Future[VectorArray] = asyncio.get_running_loop().create_future()
        await self._queue.put((texts, vectors))
        return await vectors

    async def steps(self) -> int:
        """Batches embedded so far by this process: whether it gets on with a long history."""
        return self._batches

    async def pid(self) -> int:
        """Process id, for tests that kill it."""
        return os.getpid()

    async def _serve(self) -> None:
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and sum(len(texts) for texts, _ in batch) < MOST_TEXTS:
                batch.append(self._queue.get_nowait())
            try:
                vectors = await self._embedder.embed([text for texts, _ in batch for text in texts])
            except Exception as error:  # noqa: BLE001 - the callers raise it
                for _, waiting in batch:
                    waiting.set_exception(error)
                continue
            self._batches += 1
            first = 0
            for texts, waiting in batch:
                waiting.set_result(vectors[first : first + len(texts)])
                first += len(texts)


class EmbeddingClient:
    """A `flexmem.ports.Embedder` over the actor of that name.

    The actor is looked up at first use: a handle among another actor's arguments would keep that one from restarting.
    """

    def __init__(self, actor_name: str, name: str, dimension: int) -> None:
        self._actor_name = actor_name
        self._actor: Any = None
        self.name = name
        self.dimension = dimension

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        """See `flexmem.ports.Embedder.embed`."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        if self._actor is None:
            self._actor = ray.get_actor(self._actor_name)
        vectors: VectorArray = await self._actor.embed.remote(list(texts))
        return vectors
