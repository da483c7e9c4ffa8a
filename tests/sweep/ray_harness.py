"""A real Ray on this machine, and an embedding service that starts at once."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
from ray import cloudpickle

from flexmem.ports import VectorArray
from flexmem.retrieval.embedding import EmbeddingError
from flexmem.sweep.cluster import ray_cluster
from flexmem.sweep.config import EngineEntry

from . import harness
from .harness import WordEmbedder

ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "NO_PROXY": "*",
}
"""What a driver of these tests has in its environment, in this process or in one of its own."""


@contextmanager
def own_ray(object_store_mb: int = 100) -> Iterator[Any]:
    """Ray as the engine itself starts it; sweeps in the block join it. It ends with the block."""
    assert not ray.is_initialized()
    # Ray's sockets lie below; their paths may have 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="rt", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (ENVIRONMENT | {"RAY_TMPDIR": str(folder)}).items():
            patch.setenv(name, value)
        for name in ("RAY_ADDRESS", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
            patch.delenv(name, raising=False)
        try:
            with ray_cluster(EngineEntry(object_store_mb=object_store_mb)) as started:
                yield started
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    assert not ray.is_initialized()


class WordEmbeddingActor:
    """Stands in for `EmbeddingActor` where vectors don't matter: no model is loaded."""

    def __init__(self, *_: object) -> None:
        self._embedder = WordEmbedder()

    async def dimension(self) -> int:
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        return await self._embedder.embed(texts)

    async def steps(self) -> int:
        return 0

    async def pid(self) -> int:
        return os.getpid()


class FlakyEmbeddingActor(WordEmbeddingActor):
    """Fails its first two calls, as a device does whose memory others use."""

    def __init__(self, *_: object) -> None:
        super().__init__()
        self._failures = 2

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        if self._failures:
            self._failures -= 1
            raise RuntimeError("out of memory")
        return await super().embed(texts)


class BrokenEmbeddingActor(WordEmbeddingActor):
    """Can't embed."""

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        raise EmbeddingError("the model has no weights")


def use_embedder(monkeypatch: pytest.MonkeyPatch, actor: type[WordEmbeddingActor]) -> None:
    """Let sweeps of this test start ``actor`` in place of `EmbeddingActor`."""
    for module in (harness, sys.modules[__name__]):
        # The actor's process has no tests to import.
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    monkeypatch.setattr("flexmem.sweep.services.embedding.EmbeddingActor", actor)


def actors(name: str) -> list[psutil.Process]:
    """Processes of actors of a class, among those that descend from this one."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            title = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if title.startswith(f"ray::{name}"):
            found.append(process)
    return found
