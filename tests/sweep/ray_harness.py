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
from flexmem.sweep.cluster import ray_cluster
from flexmem.sweep.config import EngineEntry

from . import harness
from .harness import WordEmbedder

ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""What a driver of these tests has in its environment, in this process or in one of its own."""


@contextmanager
def own_ray() -> Iterator[Any]:
    """Ray as the engine itself starts it; sweeps in the block join it. It ends with the block."""
    assert not ray.is_initialized()
    # Ray's sockets lie below; their paths may have 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="rt", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (ENVIRONMENT | {"RAY_TMPDIR": str(folder)}).items():
            patch.setenv(name, value)
        patch.delenv("RAY_ADDRESS", raising=False)
        try:
            with ray_cluster(EngineEntry(object_store_mb=100)) as started:
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

    async def pid(self) -> int:
        return os.getpid()


def use_word_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sweeps of this test start `WordEmbeddingActor`."""
    for module in (harness, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)  # the actor's process has no tests to import
    monkeypatch.setattr("flexmem.sweep.services.embedding.EmbeddingActor", WordEmbeddingActor)


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
