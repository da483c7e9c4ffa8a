"""Compaction: many small parts of a table become few files, in hive partitions, while a run goes on.

A table is read some hundred times slower from tens of thousands of files than from one. Merged files are written and
made durable first, then one record makes them count in place of their sources (`flexmem.dataset`), then the sources go.
Whatever is interrupted, each row counts once; what was left behind is removed by the next run.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flexmem.dataset import MERGED, MERGES, Merge, live_files, merge_of, merged_path, read_file, read_merges
from flexmem.sweep.durable import write_json, write_table
from flexmem.sweep.tables import ADDED, PARTITIONS, TABLES

PARTS_PER_MERGE = 64
"""So many fresh parts of a table are merged at a time."""
MOST_BYTES = 16 * 2**20
"""Of files read for one merge, compressed: what bounds its memory."""
ROWS_PER_FILE = 250_000
"""A merged file of so many rows is left alone."""


def merge_parts(out: Path, name: str, *, least: int = PARTS_PER_MERGE, whole: bool = False) -> int:
    """Merge a table's fresh parts once there are ``least`` of them; ``whole`` also joins a partition's files. Only the
    one writer of a folder may call it. Returns how many files were replaced.
    """
    replaced = 0
    fresh = [path for path in live_files(out / name) if merge_of(path) is None]
    if len(fresh) >= least:
        for sources in batches(fresh):
            replaced += _merge(out, name, sources)
    if whole:
        for sources in _crowded(out, name):
            replaced += _merge(out, name, sources)
    return replaced


def abandon_merges(out: Path, name: str) -> None:
    """Remove the files of merges that have no record: they failed."""
    names = {merge.name for merge in read_merges(out / name)}
    for path in (out / name).rglob(f"{MERGED}*.parquet"):
        if merge_of(path) not in names:
            path.unlink()


def finish_merges(out: Path, name: str) -> None:
    """Bring to an end what interrupted merges left: their sources go, files without a record go, and records of files
    that are gone. Only while no other writer runs.
    """
    folder = out / name
    abandon_merges(out, name)
    for merge in read_merges(folder):
        for source in merge.sources:
            (folder / source).unlink(missing_ok=True)
        files = tuple(file for file in merge.files if (folder / file).exists())
        if not files:
            (folder / MERGES / f"{merge.name}.json").unlink()
        elif merge.sources or files != merge.files:  # no writer asks for the sources' names any more
            record_merge(folder, Merge(merge.name, files, ()))


def merged_parts(out: Path, name: str) -> set[str]:
    """Names of fresh parts that a recorded merge has taken in: writing one again would double its rows."""
    sources = (source for merge in read_merges(out / name) for source in merge.sources)
    return {Path(source).name for source in sources if "/" not in source}


def batches(paths: Sequence[Path], most: int = MOST_BYTES) -> Iterator[list[Path]]:
    """Files in groups of about ``most`` bytes."""
    batch: list[Path] = []
    size = 0
    for path in paths:
        batch.append(path)
        size += path.stat().st_size
        if size >= most:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _crowded(out: Path, name: str) -> Iterator[list[Path]]:
    """Files of one partition that fit into fewer."""
    partitions: dict[Path, list[Path]] = {}
    for path in live_files(out / name):
        if merge_of(path) is not None:
            partitions.setdefault(path.parent, []).append(path)
    for paths in partitions.values():
        small = [path for path in paths if pq.read_metadata(path).num_rows < ROWS_PER_FILE]
        for batch in batches(small, 4 * MOST_BYTES):
            if len(batch) > 1:
                yield batch


def new_merge() -> str:
    """A name that no other merge has."""
    return uuid.uuid4().hex[:12]


def write_merged(
    folder: Path,
    schema: pa.Schema,
    table: pa.Table,
    merge: str,
    number: int,
    keys: Mapping[str, Any],
    by: Sequence[str],
) -> list[str]:
    """Write rows as files of a merge, partitioned by constant ``keys`` and the columns ``by``, numbered from ``number``
    on; they count once the merge is recorded. Returns their paths relative to the folder.

    Raises:
        OSError: they can't be written, or don't read back as they were.
    """
    files: list[str] = []
    for place, rows in _partitions(table, by):
        relative = merged_path({**keys, **place}, merge, number + len(files))
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, rows)
        files.append(relative)
    # Read back before the sources go: the rows were paid for.
    found = sum(read_file(folder / file, schema).num_rows for file in files)
    if found != table.num_rows:
        raise OSError(f"{folder}: a merge of {table.num_rows} rows reads back as {found}; nothing was replaced")
    return files


def record_merge(folder: Path, merge: Merge) -> None:
    """Make a merge's files count in place of its sources, durably."""
    (folder / MERGES).mkdir(exist_ok=True)
    write_json(folder / MERGES / f"{merge.name}.json", {"files": merge.files, "sources": merge.sources})


def _merge(out: Path, name: str, sources: Sequence[Path]) -> int:
    folder, schema, merge = out / name, TABLES[name], new_merge()
    table = pa.concat_tables([read_file(path, schema, None, ADDED.get(name, ())) for path in sources])
    files = write_merged(folder, schema, table, merge, 0, {}, PARTITIONS.get(name, ()))
    record_merge(folder, Merge(merge, tuple(files), tuple(str(path.relative_to(folder)) for path in sources)))
    for path in sources:
        path.unlink()
    return len(sources)


def _partitions(table: pa.Table, keys: Sequence[str]) -> Iterator[tuple[Mapping[str, Any], pa.Table]]:
    """Rows by their values of ``keys``; null is a value like any other."""
    if not keys:
        yield {}, table
        return
    places = table.select(list(keys)).group_by(list(keys)).aggregate([])
    for place in places.sort_by([(key, "ascending") for key in keys]).to_pylist():
        here = pa.repeat(pa.scalar(True), table.num_rows)
        for key, value in place.items():
            column = table.column(key)
            here = pc.and_(here, pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False))
        yield place, table.filter(here)
