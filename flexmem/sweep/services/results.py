"""The result writer: rows of all workers become Parquet parts, one after the other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from flexmem.sweep.results import lock_for_writing, write_parts


class ResultActor:
    """Writes parts; a part that comes twice, after a restart, replaces itself."""

    def __init__(self, out: str) -> None:
        self._out = Path(out)
        self._folder = lock_for_writing(self._out)  # held as long as this process lives
        self._lock = asyncio.Lock()

    async def write(self, part: str, tables: Mapping[str, pa.Table]) -> int:
        """Write one part; returns its episodes when they are durable."""
        async with self._lock:
            return await asyncio.to_thread(write_parts, self._out, part, tables)

    async def barrier(self) -> None:
        """Return when all that came before is written."""
        async with self._lock:
            return

    async def pid(self) -> int:
        """Process id, for tests that kill it."""
        return os.getpid()


class ResultClient:
    """Delivers a `RowSink`'s batches."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def deliver(self, part: str, tables: Mapping[str, pa.Table]) -> int:
        """Returns when the batch is durable."""
        written: int = await self._actor.write.remote(part, dict(tables))
        return written
