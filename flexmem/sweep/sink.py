"""Where rows go: collected in batches, handed on whole."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pyarrow as pa

from flexmem.sweep.activity import Activity
from flexmem.sweep.results import WRITE_ORDER, make_table

Deliver = Callable[[str, Mapping[str, pa.Table]], Awaitable[int]]
"""Takes a part's name and its tables; returns when they are durable."""


class RowSink:
    """Batches rows of all tables and delivers them as one part, so that an episode's rows appear together.

    One batch at a time is on its way, and no more than one waits for it: whoever comes with a row once that is full
    waits too. So a sink to which L lanes add, each waiting in `deliver_if_due` after each episode, never holds more
    than 2 · (``rows`` + L - 1) episodes, however slow the writer is.

    Args:
        deliver: where batches go.
        prefix: makes part names unique to this sink.
        rows: episodes of a batch.
        seconds: a batch with anything in it is delivered at least this often.
        clock: monotonic seconds.
        activity: counts what waits for a batch.
    """

    def __init__(
        self,
        deliver: Deliver,
        prefix: str,
        *,
        rows: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        activity: Activity | None = None,
    ) -> None:
        self._deliver = deliver
        self._prefix = prefix
        self._rows = rows
        self._seconds = seconds
        self._clock = clock
        self._waiting: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._since = clock()
        self._number = 0
        self._activity = activity or Activity()
        self._on_its_way: asyncio.Future[int] | None = None

    def add(self, table: str, row: dict[str, Any]) -> None:
        """Put a row into the current batch."""
        self._waiting[table].append(row)

    async def deliver_if_due(self) -> None:
        """Deliver a full or an old batch. While another is on its way, an old one stays and a full one is waited with.

        Raises:
            Exception: the batch could not be delivered.
        """
        if self._is_full and self._on_its_way is not None:
            with self._activity.during("results"):
                while self._is_full and self._is_busy:
                    await asyncio.wait([self._on_its_way])
        if not self._is_busy and (self._is_full or (self._episodes and self._clock() - self._since >= self._seconds)):
            await self._send()

    async def deliver(self) -> None:
        """Deliver what there is; returns when all is durable.

        Raises:
            Exception: a batch could not be delivered.
        """
        if self._on_its_way is not None:  # its lane may have been cancelled
            with self._activity.during("results"):
                await asyncio.shield(self._on_its_way)
        if any(self._waiting.values()):
            await self._send()

    @property
    def _episodes(self) -> int:
        return sum(len(self._waiting[table]) for table in ("episodes", "failures", "judgements"))

    @property
    def _is_full(self) -> bool:
        return self._episodes >= self._rows

    @property
    def _is_busy(self) -> bool:
        return self._on_its_way is not None and not self._on_its_way.done()

    async def _send(self) -> None:
        waiting, self._waiting = self._waiting, defaultdict(list)
        self._since = self._clock()
        part = f"{self._prefix}-{self._number:06d}"
        self._number += 1
        tables = {name: make_table(name, waiting[name]) for name in WRITE_ORDER if waiting[name]}
        with self._activity.during("results"):
            self._on_its_way = asyncio.ensure_future(self._deliver(part, tables))
            # A lane that is cancelled takes no rows with it.
            await asyncio.shield(self._on_its_way)
