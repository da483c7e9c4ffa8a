"""Where rows go: collected in batches, handed on whole."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pyarrow as pa

from flexmem.sweep.results import WRITE_ORDER, make_table

Deliver = Callable[[str, Mapping[str, pa.Table]], Awaitable[int]]
"""Takes a part's name and its tables; returns when they are durable."""


class RowSink:
    """Batches rows of all tables and delivers them as one part, so that an episode's rows appear together.

    Args:
        deliver: where batches go.
        prefix: makes part names unique to this sink.
        rows: episodes of a batch.
        seconds: a batch with anything in it is delivered at least this often.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        deliver: Deliver,
        prefix: str,
        *,
        rows: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deliver = deliver
        self._prefix = prefix
        self._rows = rows
        self._seconds = seconds
        self._clock = clock
        self._waiting: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._since = clock()
        self._number = 0

    def add(self, table: str, row: dict[str, Any]) -> None:
        """Put a row into the current batch."""
        self._waiting[table].append(row)

    async def deliver_if_due(self) -> None:
        """Deliver a full or an old batch."""
        episodes = len(self._waiting["episodes"]) + len(self._waiting["failures"])
        if episodes >= self._rows or (episodes and self._clock() - self._since >= self._seconds):
            await self.deliver()

    async def deliver(self) -> None:
        """Deliver what there is; returns when it is durable."""
        waiting, self._waiting = self._waiting, defaultdict(list)
        self._since = self._clock()
        if not any(waiting.values()):
            return
        part = f"{self._prefix}-{self._number:06d}"
        self._number += 1
        await self._deliver(part, {name: make_table(name, waiting[name]) for name in WRITE_ORDER if waiting[name]})
