"""A table as a folder of Parquet files: which of them hold its rows now, and reading them as one schema.

Fresh parts lie in the folder itself. Merged files replace them, in hive partitions (``arm=x/budget=4000/``) whose keys
are told by the path alone. A merge is one record in ``_merges/``: with it the new files count and the old ones don't,
without it, it is the other way round. So whoever reads sees each row once, whatever was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from flexmem.errors import FlexmemError

MERGES = "_merges"
MERGED = "rows-"
NULL_KEY = "__HIVE_DEFAULT_PARTITION__"
T = TypeVar("T")
TRIES = 20  # a merge commits now and then; a reader that meets it looks again


class TableFileError(FlexmemError):
    """A Parquet file, or a record of merges, can't be read; the message names it."""


class TableSchemaError(TableFileError):
    """A Parquet file is not of the schema; the message names it and the column."""


class DatasetBusyError(FlexmemError):
    """Files kept vanishing while they were read."""


@dataclass(frozen=True)
class Merge:
    """One merge: paths relative to the table's folder. ``files`` stand for the rows of ``sources``."""

    name: str
    files: tuple[str, ...]
    sources: tuple[str, ...]


def merged_path(keys: Mapping[str, object], merge: str, number: int) -> str:
    """The relative path of a merge's file for partition keys, in their order."""
    folders = [f"{name}={NULL_KEY if value is None else quote(str(value), safe='')}" for name, value in keys.items()]
    return "/".join([*folders, f"{MERGED}{merge}-{number:04d}.parquet"])


def partition_keys(path: PurePath) -> dict[str, str | None]:
    """What a file's folders say of its rows, outermost first."""
    keys: dict[str, str | None] = {}
    for folder in path.parents:
        name, is_key, value = folder.name.partition("=")
        if not is_key:
            break
        keys[unquote(name)] = None if value == NULL_KEY else unquote(value)
    return dict(reversed(keys.items()))


def merge_of(path: PurePath) -> str | None:
    """The merge that made a file; None for a fresh part."""
    return path.name.removeprefix(MERGED).rsplit("-", 1)[0] if path.name.startswith(MERGED) else None


def read_merges(folder: Path) -> list[Merge]:
    """The merges that a table's folder records.

    Raises:
        TableFileError: a record is damaged.
    """
    merges = []
    for path in sorted((folder / MERGES).glob("[!.]*.json")):
        try:
            content = json.loads(path.read_text("utf-8"))
            merges.append(Merge(path.stem, tuple(content["files"]), tuple(content["sources"])))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TableFileError(f"{path}: is damaged ({error}); restore it: it says which files count") from error
    return merges


def live_files(folder: Path) -> list[Path]:
    """The files that hold a table's rows now, fresh parts first, each in order of their names.

    Raises:
        TableFileError: a merge's record is damaged.
        DatasetBusyError: merges kept being made meanwhile.
    """
    before = read_merges(folder)
    for _ in range(TRIES):
        there = _parquet_files(folder)
        merges = read_merges(folder)
        if merges == before:  # no merge came between, so nothing that counts was taken away
            names = {merge.name for merge in merges}
            gone = {folder / source for merge in merges for source in merge.sources}
            live = [path for path in there if path not in gone and merge_of(path) in {None, *names}]
            return sorted(live, key=lambda path: (merge_of(path) is not None, path))
        before = merges
    raise DatasetBusyError(f"{folder}: its files are merged again and again; ask again")


def _parquet_files(folder: Path) -> list[Path]:
    return [
        path
        for path in folder.rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]


def read_file(
    path: Path, schema: pa.Schema, columns: Sequence[str] | None = None, added: Collection[str] = ()
) -> pa.Table:
    """Rows of one file, whole or some columns, in the schema's types; partition keys come from the path. Columns that
    were ``added`` to the schema are null in a file that lacks them.

    Raises:
        FileNotFoundError: it is gone: merged with others, if a run goes on.
        TableFileError: it is torn or damaged. TableSchemaError: it lacks a column, or one is of another type.
    """
    wanted = pa.schema([schema.field(name) for name in columns or schema.names])
    keys = partition_keys(path)
    try:
        with pq.ParquetFile(path) as file:
            lacking = {name for name in added if name not in file.schema_arrow.names}
            stored = [field for field in wanted if field.name not in keys and field.name not in lacking]
            _check_schema(path, stored, file.schema_arrow)
            table = file.read(columns=[field.name for field in stored])
            rows = file.metadata.num_rows
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise TableFileError(f"{path}: can't be read ({error})") from error
    arrays = []
    for field in wanted:
        if field.name in keys:
            arrays.append(_key(path, field, keys[field.name], rows))
        else:
            arrays.append(pa.nulls(rows, field.type) if field.name in lacking else table[field.name])
    return pa.table(arrays, names=wanted.names).cast(wanted)  # null columns take their type


def _check_schema(path: Path, wanted: Iterable[pa.Field], found: pa.Schema) -> None:
    missing = [field.name for field in wanted if field.name not in found.names]
    if missing:
        raise TableSchemaError(f"{path}: lacks the columns {', '.join(missing)}")
    for field in wanted:
        kind = found.field(field.name).type
        if kind != field.type and not pa.types.is_null(kind):
            raise TableSchemaError(f"{path}: column {field.name} is of another type: {kind}, not {field.type}")


def _key(path: Path, field: pa.Field, value: str | None, rows: int) -> pa.Array:
    try:
        return pa.repeat(pa.scalar(value, pa.string()), rows).cast(field.type)
    except pa.ArrowInvalid as error:
        raise TableSchemaError(f"{path}: its folder {field.name}={value} is no {field.type}") from error


def each_file(folder: Path, read: Callable[[Path], T]) -> list[T]:
    """What ``read`` makes of each live file of a table; begun anew where one was merged away meanwhile.

    Raises:
        TableFileError: see `read_file`.
        DatasetBusyError: files kept vanishing.
    """
    for _ in range(TRIES):
        try:
            return [read(path) for path in live_files(folder)]
        except FileNotFoundError:
            continue
    raise DatasetBusyError(f"{folder}: its files are merged again and again; ask again")


def open_table(folder: Path | str) -> ds.Dataset:
    """A table of a run, or of runs collected in one folder, as a pyarrow dataset: all rows once, one schema.

    Columns that are null throughout a file take their type from the others; a null partition key is null. It reads the
    files that are there now: open it again to see what a run has added.

    Raises:
        FileNotFoundError: the folder holds no table.
        TableFileError: see `read_file`.
    """
    root = Path(folder)
    paths = live_files(root)
    if not paths:
        raise FileNotFoundError(f"{root}: holds no Parquet files of a table")
    names = list(dict.fromkeys(name for path in paths for name in partition_keys(path)))
    schemas = each_file(root, file_schema)
    keys = pa.schema([pa.field(name, _key_type(name, schemas)) for name in names])
    schema = pa.unify_schemas([*schemas, keys], promote_options="permissive")
    partitioning = ds.HivePartitioning(keys, null_fallback=NULL_KEY, segment_encoding="uri")
    return ds.dataset(
        [str(path) for path in paths],
        schema=schema,
        format="parquet",
        partitioning=partitioning,
        partition_base_dir=str(root),
    )


def file_schema(path: Path) -> pa.Schema:
    """The columns that a file itself holds; raises as `read_file`."""
    try:
        return pq.read_schema(path).remove_metadata()
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise TableFileError(f"{path}: can't be read ({error})") from error


def _key_type(name: str, schemas: Iterable[pa.Schema]) -> Any:
    """The type that a key has as a column of files that are not partitioned by it, else text."""
    for schema in schemas:
        if name in schema.names and not pa.types.is_null(schema.field(name).type):
            return schema.field(name).type
    return pa.int32() if name == "budget" else pa.string()
