"""A run's tables on disk: Parquet parts that appear whole or not at all."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from flexmem.sweep.config import ConfigError
from flexmem.sweep.tables import TABLES

_TEMPORARY = ".tmp-"
TORN = "torn"
# An episode's row says that all else about it is on disk, so it goes last.
WRITE_ORDER = ("pieces", "builds", "renderings", "failures", "episodes")


_LOCK = ".writer.lock"
_LOCK_POLL_S = 0.1


class TornPartError(ConfigError):
    """A Parquet part can't be read."""


class FolderBusyError(ConfigError):
    """Another run writes into the folder."""


def lock_for_writing(out: Path, wait_s: float = 60.0) -> IO[bytes]:
    """Take a run folder's lock, which one process at a time holds until it closes the file or ends.

    A killed driver's writer may live on for seconds, and what it still writes must be seen by whoever goes on.

    Raises:
        FolderBusyError: it is held by another process for longer than ``wait_s`` seconds.
    """
    file = (out / _LOCK).open("ab")
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(_LOCK_POLL_S)
                continue
            file.close()
            raise FolderBusyError(f"{out}: another run writes into it; wait for its end, or stop it") from None
        except OSError:  # a file system without locks: then it is up to whoever starts runs
            return file
        return file


def is_written(out: Path) -> bool:
    """Whether some process holds a run folder's lock; touches nothing."""
    try:
        with (out / _LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def make_table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table of the named schema; a key that the schema lacks is an error."""
    schema = TABLES[name]
    unknown = {key for row in rows for key in row} - set(schema.names)
    if unknown:
        raise KeyError(f"table {name} has no columns {sorted(unknown)}")
    return pa.Table.from_pylist(rows, schema=schema)


def write_parts(out: Path, part: str, tables: Mapping[str, pa.Table]) -> int:
    """Write one part of each table, durable when this returns: temporary file, fsync, rename, fsync of the folder.

    ``part`` names the files; writing the same part again replaces it. Returns the rows of ``episodes``.
    """
    for name in WRITE_ORDER:
        table = tables.get(name)
        if table is None or not table.num_rows:
            continue
        write_beside(out / name, part, table)
    return tables["episodes"].num_rows if "episodes" in tables else 0


def write_beside(folder: Path, part: str, table: pa.Table) -> Path:
    """Add a part to a table's folder; it is there whole or not at all, and durable when this returns."""
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"part-{part}.parquet"
    replace_part(final, table)
    return final


def replace_part(path: Path, table: pa.Table) -> None:
    """Write a part over an older one, which stays until the new one is durable."""
    temporary = path.with_name(f"{_TEMPORARY}{path.name.removeprefix('part-')}")
    with temporary.open("wb") as file:
        pq.write_table(table, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_folder(path.parent)


def remove_leftovers(out: Path) -> int:
    """Delete temporary files of an interrupted run; returns how many there were. Only while no writer runs."""
    leftovers = [path for name in TABLES for path in (out / name).glob(f"{_TEMPORARY}*")]
    for path in leftovers:
        path.unlink()
    return len(leftovers)


def parts(out: Path, name: str) -> list[Path]:
    """A table's parts, in order of their names."""
    return sorted((out / name).glob("part-*.parquet"))


def set_torn_aside(out: Path) -> list[Path]:
    """Move parts that can't be read to ``torn/``, with the parts of other tables that were written with them; returns
    what was moved. Their episodes have no row then, and run again. Only while no writer runs.
    """
    broken = {path.name for name in TABLES for path in parts(out, name) if not _readable(path, name)}
    moved = []
    for name in TABLES:
        for path in parts(out, name):
            if path.name in broken:
                aside = out / TORN / name / path.name
                aside.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, aside)
                moved.append(aside)
    return moved


def _readable(path: Path, name: str) -> bool:
    """Whether footer and keys can be read; a page that is damaged elsewhere is found by whoever reads it."""
    try:
        read_part(path, name, TABLES[name].names[:1])
    except TornPartError:
        return False
    return True


def finished_keys(out: Path) -> set[str]:
    """Fingerprints of the episodes that have a row.

    Raises:
        TornPartError: a part can't be read; the message names it.
    """
    return {key for table in read_columns(out, "episodes", ["episode"]) for key in table["episode"].to_pylist()}


def read_columns(out: Path, name: str, columns: list[str]) -> Iterator[pa.Table]:
    """Columns of a table, part by part.

    Raises:
        TornPartError: a part can't be read; the message names it.
    """
    for path in parts(out, name):
        yield read_part(path, name, columns)


def read_part(path: Path, name: str, columns: list[str] | None = None) -> pa.Table:
    """One part of a table, whole or some columns.

    Raises:
        TornPartError: it can't be read.
    """
    try:
        return pq.read_table(path, columns=columns, schema=TABLES[name])
    except (pa.ArrowInvalid, OSError) as error:
        raise TornPartError(f"{path}: can't be read ({error}); move it away, and its episodes run again") from error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
