"""Several runs in one folder of tables, for analysis across runs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from flexmem.dataset import TRIES, Merge, TableFileError, live_files, partition_keys
from flexmem.sweep.config import ConfigError
from flexmem.sweep.durable import write_json
from flexmem.sweep.manifest import read_manifest
from flexmem.sweep.merging import batches, finish_merges, new_merge, record_merge, write_merged
from flexmem.sweep.recovery import remove_leftovers
from flexmem.sweep.results import lock_for_writing, parts, read_part
from flexmem.sweep.tables import PARTITIONS, TABLES

COLLECTION = "collection.json"
RUN = "run"
"""The outermost partition key of every table of a collection."""


class CollectionError(ConfigError):
    """A run can't join the folder; the message says why."""


@dataclass(frozen=True)
class Collected:
    """What was taken of a run: rows by table. ``replaced`` is True where the label held an earlier state of the run."""

    label: str
    rows: dict[str, int]
    replaced: bool


def collect(run: Path, folder: Path, label: str | None = None) -> Collected:
    """Copy a run's tables into a collection, under a label (the run folder's name by default). The same run again
    replaces what was taken of it before; until that is complete, a reader sees the older rows.

    Raises:
        RunFolderError: not a run folder. TornPartError: one of its files can't be read.
        CollectionError: the label is another run's, the folder holds something else or can't be made, one of the
            collection's own files can't be read, or the run merges its files again and again.
        FolderBusyError: another process writes into the collection.
        DatasetBusyError: the run merged its files again and again while they were listed.
        OSError: the collection can't be written: a full disk, no rights.
    """
    manifest = read_manifest(run)
    label = label or run.resolve().name
    if not re.fullmatch(r"[\w.\- ]+", label):
        raise CollectionError(f"label {label!r}: use letters, digits, blanks, dots, dashes and underscores")
    _make_folder(folder)
    with lock_for_writing(folder):
        runs = read_collection(folder)
        known = runs.get(label)
        if known is not None and known["run_id"] != manifest["run_id"]:
            raise CollectionError(f"{folder}: label {label!r} is another run's ({known['path']}); give --label")
        other = next((name for name, entry in runs.items() if entry["run_id"] == manifest["run_id"]), label)
        if other != label:
            raise CollectionError(f"{folder}: the run is there as {other!r}; keep that label")
        remove_leftovers(folder)
        try:
            rows = {name: _copy(run, folder, name, label) for name in TABLES}
        except TableFileError as error:  # of the run's own files `_write` has said so already
            raise CollectionError(f"{error}; or take another folder and collect the runs anew") from error
        entry = {
            "run_id": manifest["run_id"],
            "path": str(run.resolve()),
            "collected_at": datetime.now(UTC).isoformat(),
        }
        write_json(folder / COLLECTION, {"runs": {**runs, label: {**entry, "rows": rows, "manifest": manifest}}})
    return Collected(label, rows, known is not None)


def read_collection(folder: Path) -> dict[str, Any]:
    """What a collection says of its runs, by label; empty for a folder that is none yet.

    Raises:
        CollectionError: the file that says so is damaged.
    """
    try:
        return dict(json.loads((folder / COLLECTION).read_text("utf-8"))["runs"])
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise CollectionError(
            f"{folder / COLLECTION}: is damaged ({error}); take another folder and collect the runs anew"
        ) from error


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise CollectionError(f"{folder}: is not a folder")
    if folder.is_dir() and not (folder / COLLECTION).exists():
        strange = sorted(entry.name for entry in folder.iterdir() if entry.name not in {*TABLES, ".writer.lock"})
        if strange:
            raise CollectionError(f"{folder}: holds other files ({strange[0]}); give an empty folder or a collection")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CollectionError(f"{folder}: can't be made ({error.strerror}); give another folder") from error


def _copy(run: Path, folder: Path, name: str, label: str) -> int:
    """One table of the run; returns its rows."""
    target = folder / name
    older = [path for path in live_files(target) if partition_keys(path.relative_to(target))[RUN] == label]
    sources = tuple(str(path.relative_to(target)) for path in older)
    for _ in range(TRIES):
        finish_merges(folder, name)
        merge = new_merge()
        try:
            files, rows = _write(run, target, name, label, merge)
        except FileNotFoundError:  # the run goes on and has just merged files
            continue
        if files or sources:
            record_merge(target, Merge(merge, tuple(files), sources))
            finish_merges(folder, name)
        return rows
    raise CollectionError(f"{run}: its files are merged again and again; ask again")


def _write(run: Path, target: Path, name: str, label: str, merge: str) -> tuple[list[str], int]:
    """Files and rows of the run's table under the label; they don't count yet."""
    schema, keys = TABLES[name], PARTITIONS.get(name, ())
    files: list[str] = []
    rows = 0
    for batch in batches(parts(run, name)):
        table = pa.concat_tables([read_part(path, name) for path in batch])
        files += write_merged(target, schema, table, merge, len(files), {RUN: label}, keys)
        rows += table.num_rows
    return files, rows
