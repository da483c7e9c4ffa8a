"""One corpus and many workers on a real Ray: vectors that cost nothing, and workers that weigh themselves."""

from __future__ import annotations

import sys
import threading
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import ray
from ray import cloudpickle

from flexmem import tokens
from flexmem.benchmarks.protocol import Instance
from flexmem.memory.protocol import Budget, Query
from flexmem.memory.registry import find_method
from flexmem.ports import Services, VectorArray
from flexmem.retrieval.index import LocalIndex
from flexmem.sweep.config import parse_config
from flexmem.sweep.plan import Group, Plan, make_plan
from flexmem.sweep.rendering_rows import text_digest
from flexmem.sweep.results import read_columns
from flexmem.sweep.services.actor import SERVICE, start_actor
from flexmem.sweep.services.embedding import EmbeddingClient
from flexmem.sweep.services.index import IndexActor, IndexClient
from flexmem.sweep.services.results import ResultActor, ResultClient
from flexmem.sweep.services.workers import ACTIVITY, WorkerActor
from flexmem.sweep.shipping import pack_instance

ARMS = ("piece_retrieval", "dense_pieces")
MB = 2**20
_WEIGHED_EVERY_S = 0.05


def plan_of(tokens: int, questions: int = 40) -> Plan:
    """A sweep of both arms over one synthetic history."""
    synthetic = {"name": "synthetic", "options": {"conversations": 1, "tokens": tokens, "questions": questions}}
    content = {"name": "corpus", "benchmarks": [synthetic], "arms": list(ARMS), "budgets": [4_000]}
    return make_plan(parse_config(content, "corpus"))


def instance_of(plan: Plan) -> Instance:
    """Its only history."""
    (loaded,) = plan.benchmarks
    return next(iter(loaded.instances.values()))


class TableEmbedder:
    """Unit vectors made of rows of one random table, which a text's checksums name: some microseconds a text."""

    name = "table"
    dimension = 384

    def __init__(self) -> None:
        self._table = np.random.default_rng(0).standard_normal((4_096, self.dimension)).astype(np.float32)

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        coded = [text.encode("utf-8", "surrogatepass") for text in texts]
        first = np.array([zlib.crc32(text) % 4_096 for text in coded], dtype=np.int64)
        second = np.array([zlib.crc32(text, 1) // 4_096 % 4_093 for text in coded], dtype=np.int64)
        rows = self._table[first] + np.float32(0.5) * self._table[second]
        vectors: VectorArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return vectors


class TableEmbeddingActor:
    """Stands in for `EmbeddingActor`; counts the texts that it is given."""

    def __init__(self) -> None:
        self._embedder = TableEmbedder()
        self._texts = 0

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        self._texts += len(texts)
        return await self._embedder.embed(texts)

    async def texts(self) -> int:
        return self._texts


class WeighedWorker(WorkerActor):
    """A worker that knows its own memory: that which it shares with no other process."""

    async def weight(self) -> int:
        """Bytes, now."""
        return psutil.Process().memory_full_info().uss

    async def run_weighed(self, group: Group) -> int:
        """Run a group; the most bytes meanwhile."""
        most = psutil.Process().memory_full_info().uss
        ended = threading.Event()

        def watch() -> None:
            nonlocal most
            while not ended.wait(_WEIGHED_EVERY_S):
                most = max(most, psutil.Process().memory_full_info().uss)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            counts = await self.run(group)
        finally:
            ended.set()
            watcher.join()
        assert counts == {"ok": len(group.episodes)}, counts
        return max(most, psutil.Process().memory_full_info().uss)


@dataclass
class Grown:
    """Bytes by which a worker has grown: at most, and once its groups had ended."""

    most: int
    left: int


class Corpus:
    """The services of a sweep with the cheap embedder, and workers over what ``plans`` have to read."""

    def __init__(self, out: Path, *plans: Plan) -> None:
        self.out = out
        self._config = plans[0].config
        name = f"embedding-{uuid.uuid4().hex}"
        self.embedding = start_actor(_by_value(TableEmbeddingActor), **SERVICE, name=name)
        self._embedder = EmbeddingClient(name, TableEmbedder.name, TableEmbedder.dimension)
        self.index = start_actor(IndexActor, name, TableEmbedder.name, TableEmbedder.dimension, **SERVICE)
        out.mkdir()
        self._writer = start_actor(ResultActor, str(out), **SERVICE)
        packed = [pack_instance(instance_of(plan)) for plan in plans]
        self._instances = {("synthetic", instance.instance_id): ray.put(instance) for instance in packed}

    def workers(self, count: int, warm: Plan) -> list[Any]:
        """New workers that have run a small plan: what every worker loads is loaded."""
        services = (self._embedder, IndexClient(self.index), ResultClient(self._writer), None, "corpus")
        arguments = (self._config, str(self.out), self._instances, *services)
        options = {"num_cpus": 0, "max_concurrency": 64, "concurrency_groups": {ACTIVITY: 1}}
        started = [start_actor(_by_value(WeighedWorker), *arguments, **options) for _ in range(count)]
        for group in warm.groups():
            ray.get([worker.run_weighed.remote(group) for worker in started])
        return started

    def read(self, workers: Sequence[Any], plan: Plan) -> list[Grown]:
        """Let all workers run all groups, each group by all at a time."""
        before = ray.get([worker.weight.remote() for worker in workers])
        most = list(before)
        for group in plan.groups():
            weights = ray.get([worker.run_weighed.remote(group) for worker in workers])
            most = [max(pair) for pair in zip(most, weights, strict=True)]
        after = ray.get([worker.weight.remote() for worker in workers])
        return [Grown(m - b, a - b) for m, a, b in zip(most, after, before, strict=True)]

    def texts(self) -> int:
        """How many texts were embedded so far."""
        count: int = ray.get(self.embedding.texts.remote())
        return count

    def index_process(self) -> psutil.Process:
        """The index actor's process, once it is up."""
        return psutil.Process(ray.get(self.index.pid.remote()))

    def shown(self) -> dict[str, set[str]]:
        """Digests of the renderings that workers gave, by episode."""
        found: dict[str, set[str]] = {}
        for table in read_columns(self.out, "renderings", ["episode", "digest"]):
            for row in table.to_pylist():
                found.setdefault(row["episode"], set()).add(row["digest"])
        return found

    def end(self) -> None:
        """Let the output folder go."""
        ray.kill(self._writer)


@dataclass
class Alone:
    """What a process that shares nothing shows by exact search over its own index: digests by episode. ``contents``
    counts different contents of ``pieces``, ``grown`` the bytes that history, index and build took.
    """

    shown: dict[str, str]
    pieces: int
    contents: int
    grown: int


class AloneReader:
    """Reads a history without any service: every arm over an index of its own, one after the other."""

    async def read(self, references: list[Any]) -> Alone:
        """The plan comes by reference in a list, so that its history is not here before the weighing begins."""
        tokens.encoding()  # every worker holds the token table, whatever it reads
        before = psutil.Process().memory_full_info().uss
        plan: Plan = await references[0]
        instance, embedder = instance_of(plan), TableEmbedder()
        vectors = await embedder.embed([question.text for question in instance.questions])
        found = Alone({}, 0, 0, 0)
        for group in plan.groups():
            build = find_method(group.arm).configured().build(Services(embedder, lambda c: LocalIndex(c, embedder)))
            for unit in instance.units:
                await build.write(unit)
            for task in group.episodes:
                query = Query.question(instance.questions[task.question].text, vectors[task.question])
                assert task.budget is not None
                rendering = await build.view().render(query, Budget(task.budget))
                found.shown[task.key] = text_digest(rendering.text)
            found.grown = max(found.grown, psutil.Process().memory_full_info().uss - before)
            found.pieces = len(build.pieces)
            found.contents = len({piece.content for piece in build.pieces})
        return found


def read_alone(plan: Plan) -> Alone:
    """As `AloneReader.read`, in a process of its own."""
    reader = start_actor(_by_value(AloneReader), num_cpus=0)
    found: Alone = ray.get(reader.read.remote([ray.put(plan)]))
    ray.kill(reader)
    return found


def _by_value(actor: type) -> type:
    """An actor's process has no tests to import: it is sent the class itself."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    return actor
