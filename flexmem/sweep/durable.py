"""Files that are there whole or not at all, and stay: temporary file, fsync, rename, fsync of the folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flexmem.dataset import partition_keys

TEMPORARY = ".tmp-"
"""What an interrupted write leaves has this before its name; no reader looks at it."""


def write_table(path: Path, table: pa.Table) -> None:
    """Write a Parquet file, zstd, over an older one if there is one; columns that its path tells are left out."""
    stored = table.drop_columns([name for name in partition_keys(path) if name in table.column_names])
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    with temporary.open("wb") as file:
        pq.write_table(stored, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_folder(path.parent)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file over an older one if there is one."""
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, default=str)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
