"""Files that are there whole or not at all, and stay: temporary file, fsync, rename, fsync of the folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from flexmem.dataset import partition_keys

TEMPORARY = ".tmp-"
"""What an interrupted write leaves has this before its name; no reader looks at it."""


_SMALL = 1 << 20
"""Bytes up to which a table is written with snappy and without dictionaries: what zstd and dictionaries take to set up
for each column would be three quarters of the time. Merging writes such parts anew.
"""


def write_table(path: Path, table: pa.Table) -> None:
    """Write a Parquet file over an older one if there is one: zstd, or snappy for a small table. Columns that its path
    tells are left out.
    """
    stored = table.drop_columns([name for name in partition_keys(path) if name in table.column_names])
    with _replacing(path) as file:
        if stored.nbytes > _SMALL:
            pq.write_table(stored, file, compression="zstd")
            return
        buffer = pa.BufferOutputStream()
        pq.write_table(stored, buffer, compression="snappy", use_dictionary=False)
        file.write(buffer.getvalue())


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file over an older one if there is one."""
    with _replacing(path) as file:
        file.write(json.dumps(content, indent=1, default=str).encode())


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except Exception:  # on a full disk half a file would take the room that others need
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
