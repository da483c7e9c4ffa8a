"""Episode workers as Ray actors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray

from flexmem.benchmarks.protocol import Instance
from flexmem.ports import IndexConfig, RateBudget
from flexmem.retrieval.index import IndexSnapshot
from flexmem.sweep.activity import ActivityReport
from flexmem.sweep.config import SweepConfig
from flexmem.sweep.plan import Group
from flexmem.sweep.services.embedding import EmbeddingClient
from flexmem.sweep.services.index import IndexClient
from flexmem.sweep.services.replies import ReplyClient
from flexmem.sweep.services.results import ResultClient
from flexmem.sweep.worker import EpisodeWorker

ACTIVITY = "activity"
"""The concurrency group whose thread answers while a method computes in the other one."""


class WorkerActor:
    """An `EpisodeWorker`; instances come by reference from the object store."""

    def __init__(
        self,
        config: SweepConfig,
        out: str,
        instances: dict[tuple[str, str], Any],
        embedder: EmbeddingClient,
        index: IndexClient,
        results: ResultClient,
        replies: ReplyClient | None,
        owner: str,
        budgets: Mapping[str, RateBudget] | None = None,
    ) -> None:
        self._instances = instances
        self._index = index
        self._worker = EpisodeWorker(
            config,
            Path(out),
            embedder=embedder,
            fetch_instance=self._instance,
            fetch_snapshot=self._snapshot,
            deliver=results.deliver,
            replies=replies,
            owner=owner,
            budgets=budgets,
        )

    async def run(self, group: Group) -> dict[str, int]:
        """See `EpisodeWorker.run`."""
        return await self._worker.run(group)

    async def aclose(self) -> None:
        """See `EpisodeWorker.aclose`."""
        await self._worker.aclose()

    @ray.method(concurrency_group=ACTIVITY)
    async def activity(self) -> ActivityReport:
        """What its work waits for now, and its memory."""
        return self._worker.activity.report()

    async def pid(self) -> int:
        """Process id, for tests that kill it."""
        return os.getpid()

    async def _instance(self, benchmark: str, instance_id: str) -> Instance:
        instance: Instance = await self._instances[benchmark, instance_id]
        return instance

    async def _snapshot(self, benchmark: str, instance: Instance, config: IndexConfig) -> IndexSnapshot:
        return await self._index.snapshot(benchmark, self._instances[benchmark, instance.instance_id], config)
