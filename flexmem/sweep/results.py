"""A run's tables on disk: Parquet parts that appear whole or not at all."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Container, Mapping
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from flexmem.dataset import TableFileError, each_file, live_files, read_file
from flexmem.sweep.config import ConfigError
from flexmem.sweep.durable import write_table
from flexmem.sweep.tables import ADDED, TABLES

WHAT_TO_DO = "move it away, and its episodes run again"
# An episode's row says that all else about it is on disk, so it goes last.
WRITE_ORDER = ("pieces", "builds", "renderings", "steps", "failures", "calls", "judgements", "episodes")


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


def write_parts(
    out: Path, part: str, tables: Mapping[str, pa.Table], merged: Mapping[str, Container[str]] | None = None
) -> int:
    """Write one part of each table, durable when this returns. Returns the rows of ``episodes``.

    ``part`` names the files; writing the same part again replaces it, unless it is one of those that are ``merged`` (by
    table, file names): then its rows are there already.
    """
    file = f"part-{part}.parquet"
    for name in WRITE_ORDER:
        table = tables.get(name)
        if table is None or not table.num_rows or file in (merged or {}).get(name, ()):
            continue
        (out / name).mkdir(parents=True, exist_ok=True)
        write_table(out / name / file, table)
    return tables["episodes"].num_rows if "episodes" in tables else 0


def parts(out: Path, name: str) -> list[Path]:
    """The files that hold a table's rows now.

    Raises:
        TornPartError: a record of merges is damaged.
    """
    try:
        return live_files(out / name)
    except TableFileError as error:
        raise TornPartError(str(error)) from error


def finished_keys(out: Path) -> set[str]:
    """Fingerprints of the episodes that have a row.

    Raises:
        TornPartError: a part can't be read; the message names it.
    """
    return {key for table in read_columns(out, "episodes", ["episode"]) for key in table["episode"].to_pylist()}


def read_columns(out: Path, name: str, columns: list[str]) -> list[pa.Table]:
    """Columns of a table, file by file; each row once, though a run may merge files meanwhile.

    Raises:
        TornPartError: a part can't be read; the message names it.
    """
    try:
        return each_file(out / name, lambda path: read_file(path, TABLES[name], columns, ADDED.get(name, ())))
    except TableFileError as error:
        raise TornPartError(f"{error}; {WHAT_TO_DO}") from error


def read_part(path: Path, name: str, columns: list[str] | None = None) -> pa.Table:
    """One file of a table, whole or some columns.

    Raises:
        TornPartError: it can't be read.
    """
    try:
        return read_file(path, TABLES[name], columns, ADDED.get(name, ()))
    except TableFileError as error:
        raise TornPartError(f"{error}; {WHAT_TO_DO}") from error
