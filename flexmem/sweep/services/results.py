"""The result writer: rows of all workers become Parquet parts, one after the other, merged as they grow many."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from flexmem.dataset import merge_of
from flexmem.sweep.ledger import CALLS, export_calls
from flexmem.sweep.merging import PARTS_PER_MERGE, abandon_merges, finish_merges, merge_parts, merged_parts
from flexmem.sweep.recovery import drop_unfinished
from flexmem.sweep.results import lock_for_writing, parts, write_parts
from flexmem.sweep.tables import TABLES


class ResultActor:
    """Writes parts; a part that comes twice, after a restart, replaces itself."""

    def __init__(self, out: str, parts_per_merge: int = PARTS_PER_MERGE) -> None:
        self._out = Path(out)
        self._folder = lock_for_writing(self._out)  # held as long as this process lives
        self._lock = asyncio.Lock()
        self._parts_per_merge = parts_per_merge
        self._merged = {name: merged_parts(self._out, name) for name in TABLES}
        self._fresh = {name: sum(merge_of(path) is None for path in parts(self._out, name)) for name in TABLES}
        self._problem = ""

    async def write(self, part: str, tables: Mapping[str, bytes]) -> int:
        """Write one part, its tables as Arrow streams; returns its episodes when they are durable."""
        async with self._lock:
            return await asyncio.to_thread(self._write, part, tables)

    async def barrier(self) -> None:
        """Return when all that came before is written."""
        async with self._lock:
            return

    async def finish(self, *, merge: bool = True) -> str:
        """Write the ledger, merge what there is and let the folder go, when no more will come. Returns why that could
        not be done, else an empty text; the rows are safe in either case.
        """
        async with self._lock:
            await asyncio.to_thread(self._finish, merge=merge)
            self._folder.close()
            return self._problem

    async def pid(self) -> int:
        """Process id, for tests that kill it."""
        return os.getpid()

    def _write(self, part: str, tables: Mapping[str, bytes]) -> int:
        unpacked = {name: _unpack_table(table) for name, table in tables.items()}
        written = write_parts(self._out, part, unpacked, self._merged)
        for name in tables:
            self._fresh[name] += 1
            if self._fresh[name] >= self._parts_per_merge:
                self._merge(name, least=self._parts_per_merge, whole=False)
        return written

    def _finish(self, *, merge: bool) -> None:
        try:
            drop_unfinished(self._out)
            export_calls(self._out)
        except OSError as error:
            self._problem = self._problem or f"the table of calls is not up to date: {error}"
            abandon_merges(self._out, CALLS)
        for name in TABLES if merge else ():
            self._merge(name, least=1, whole=True)
            finish_merges(self._out, name)

    def _merge(self, name: str, *, least: int, whole: bool) -> None:
        if self._problem:
            return
        try:
            merge_parts(self._out, name, least=least, whole=whole)
        except OSError as error:  # a merge needs room for both, its parts none: results go on without it
            self._problem = f"parts are not merged any more: {error}"
            abandon_merges(self._out, name)
        self._fresh[name] = 0
        self._merged[name] = merged_parts(self._out, name)


class ResultClient:
    """Delivers a `RowSink`'s batches."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def deliver(self, part: str, tables: Mapping[str, pa.Table]) -> int:
        """Returns when the batch is durable."""
        # Ray takes tables apart column by column, which costs more than the episodes of a small part do.
        written: int = await self._actor.write.remote(part, {name: pack_table(table) for name, table in tables.items()})
        return written


def pack_table(table: pa.Table) -> bytes:
    """A table as `ResultActor.write` takes it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _unpack_table(stream: bytes) -> pa.Table:
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_all()
