"""Eight workers over one history of 100,000 pieces: built once, read in place."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from bench_render import RandomEmbedder
from harness import Measurement

from flexmem import tokens
from flexmem.benchmarks.registry import make_benchmark
from flexmem.memory.protocol import Budget, Query
from flexmem.memory.registry import find_method
from flexmem.ports import IndexConfig, Services
from flexmem.retrieval.index import IndexSnapshot, LocalIndex, SharedIndex
from flexmem.sweep.cluster import import_ray

PIECES = 100_000
WORKERS = 8
QUESTIONS = 5


class Reader:
    """A worker's share: a build over the snapshot, and renderings from it. Sizes are of memory that nobody shares."""

    def __init__(self) -> None:
        tokens.encoding()  # every worker holds the token table, whatever it reads
        self._before = psutil.Process().memory_full_info().uss

    async def read(self, references: list[Any], questions: list[str]) -> tuple[int, list[str]]:
        """Bytes that this process grew by, and the renderings."""
        snapshot: IndexSnapshot = await references[0]
        embedder = RandomEmbedder()
        build = find_method("piece_retrieval").configured().build(Services(embedder, lambda _: SharedIndex(snapshot)))
        return await _render(build, snapshot, questions, self._before)


async def _render(build: Any, snapshot: IndexSnapshot, questions: list[str], before: int) -> tuple[int, list[str]]:
    for unit in snapshot.units:
        await build.write(unit)
    view = build.view()
    vectors = await RandomEmbedder().embed(questions)
    texts = [
        (await view.render(Query.question(text, vector), Budget(4_000))).text
        for text, vector in zip(questions, vectors, strict=True)
    ]
    return psutil.Process().memory_full_info().uss - before, texts


def benchmarks() -> Iterator[Measurement]:
    """``index.worker_memory``: what a worker adds, beside what the history takes when a process holds it alone."""
    snapshot, questions, alone, texts = asyncio.run(_local())
    ray = import_ray()
    # Workers import this module by name; they inherit the environment of a Ray that starts here.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=512 * 2**20,
    )
    try:
        reference = ray.put(snapshot)
        readers = [ray.remote(Reader).options(num_cpus=0).remote() for _ in range(WORKERS)]
        found = ray.get([reader.read.remote([reference], questions) for reader in readers])
    finally:
        ray.shutdown()
    assert all(shown == texts for _, shown in found), "a shared index must give what a local one gives"
    grown = max(size for size, _ in found) / 2**20
    note = f"the most that one of {WORKERS} workers grew, {len(snapshot.columns):,} pieces, equal renderings"
    yield Measurement("index.worker_memory", grown, "MB", alone / 2**20, grown / (alone / 2**20), note)


async def _local() -> tuple[IndexSnapshot, list[str], int, list[str]]:
    options = {"conversations": 1, "tokens": 4_400_000, "questions": 40}
    instance = next(iter(make_benchmark("synthetic", options).instances()))
    questions = [question.text for question in instance.questions[:QUESTIONS]]
    tokens.encoding()
    before = psutil.Process().memory_full_info().uss
    embedder = RandomEmbedder()
    index = LocalIndex(IndexConfig(), embedder)
    for unit in instance.units:
        await index.append(unit)
        if len(index.pieces) >= PIECES:
            break
    snapshot = index.freeze()
    build = find_method("piece_retrieval").configured().build(Services(embedder, lambda _: SharedIndex(snapshot)))
    alone, texts = await _render(build, snapshot, questions, before)
    return snapshot, questions, alone, texts
