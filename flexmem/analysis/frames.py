"""A run's tables as columns. Parquet files are read at first use and column by column; rows written twice count once.

The columns restate docs/tables.md, so that analysis depends on files alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flexmem.analysis.manifest import SCHEMA_VERSIONS, Manifest, RunError, read_manifest
from flexmem.dataset import DatasetBusyError, TableFileError, TableSchemaError, each_file, file_schema, read_file

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]

_TIME = pa.timestamp("ms", tz="UTC")

COLUMNS: dict[str, pa.Schema] = {
    "episodes": pa.schema(
        {
            "episode": pa.string(),
            "benchmark": pa.string(),
            "instance": pa.string(),
            "question": pa.string(),
            "question_type": pa.string(),
            "arm": pa.string(),
            "budget": pa.int32(),
            "reader": pa.string(),
            "memory_model": pa.string(),
            "repeat": pa.int32(),
            "outcome": pa.string(),
            "error_class": pa.string(),
            "metric": pa.string(),
            "score": pa.float64(),
            "scored_by_evidence": pa.bool_(),
            "n_evidence": pa.int32(),
            "evidence_visible": pa.int32(),
            "evidence_partly": pa.int32(),
            "verbatim_evidence": pa.float64(),
            "evidence_rank": pa.int32(),
            "extractive": pa.bool_(),
            "answer_recall": pa.float64(),
            "room": pa.int32(),
            "memory_tokens": pa.int32(),
            "utilisation": pa.float64(),
            "violation_tokens": pa.int32(),
            "reader_input_tokens": pa.int64(),
            "reader_output_tokens": pa.int64(),
            "reader_cached_tokens": pa.int64(),
            "reader_reasoning_tokens": pa.int64(),
            "usd": pa.float64(),
            "memory_calls": pa.int64(),
            "memory_input_tokens": pa.int64(),
            "memory_output_tokens": pa.int64(),
            "memory_usd": pa.float64(),
            "render_ms": pa.float64(),
            "read_s": pa.float64(),
            "build": pa.string(),
            "finished_at": _TIME,
        }
    ),
    "renderings": pa.schema(
        {
            "episode": pa.string(),
            "call": pa.int32(),
            "build": pa.string(),
            "cut": pa.string(),
            "digest": pa.string(),
            "tokens": pa.int32(),
            "hidden": pa.int32(),
        }
    ),
    "builds": pa.schema(
        {
            "build": pa.string(),
            "benchmark": pa.string(),
            "instance": pa.string(),
            "arm": pa.string(),
            "memory_model": pa.string(),
            "repeat": pa.int32(),
            "units": pa.int32(),
            "history_tokens": pa.int64(),
            "memory_calls": pa.int64(),
            "memory_input_tokens": pa.int64(),
            "memory_output_tokens": pa.int64(),
            "memory_cached_tokens": pa.int64(),
            "memory_reasoning_tokens": pa.int64(),
            "usd": pa.float64(),
            "phase": pa.string(),
            "seconds": pa.float64(),
            "finished_at": _TIME,
        }
    ),
    "failures": pa.schema(
        {
            "episode": pa.string(),
            "benchmark": pa.string(),
            "instance": pa.string(),
            "question": pa.string(),
            "arm": pa.string(),
            "budget": pa.int32(),
            "repeat": pa.int32(),
            "error_class": pa.string(),
            "error": pa.string(),
            "failed_at": _TIME,
        }
    ),
    "calls": pa.schema(
        {
            "call": pa.string(),
            "attempt": pa.int32(),
            "subject_kind": pa.string(),
            "subject": pa.string(),
            "role": pa.string(),
            "model": pa.string(),
            "repeat": pa.int32(),
            "latency_s": pa.float64(),
            "outcome": pa.string(),
            "input_tokens": pa.int64(),
            "cached_tokens": pa.int64(),
            "output_tokens": pa.int64(),
            "reasoning_tokens": pa.int64(),
            "usd": pa.float64(),
        }
    ),
    "judgements": pa.schema(
        {
            "judgement": pa.string(),
            "episode": pa.string(),
            "judge": pa.string(),
            "label": pa.float64(),
            "error_class": pa.string(),
            "input_tokens": pa.int64(),
            "output_tokens": pa.int64(),
            "usd": pa.float64(),
            "finished_at": _TIME,
        }
    ),
}
"""The columns of each table that are always read. Texts and lists, which are large, are read on request."""

ADDED: dict[str, tuple[str, ...]] = {
    "episodes": (
        "reader_cached_tokens",
        "reader_reasoning_tokens",
        "memory_calls",
        "memory_input_tokens",
        "memory_output_tokens",
        "memory_usd",
    ),
    "builds": ("memory_cached_tokens", "memory_reasoning_tokens", "usd", "phase"),
}
"""Columns that older schema versions lack; null there."""

_KEYS: dict[str, tuple[str, ...]] = {
    "episodes": ("episode",),
    "renderings": ("episode", "call"),
    "judgements": ("judgement",),
}


@dataclass(frozen=True)
class Labels:
    """A text column of n rows: ``codes`` (n) index ``names``; null is -1."""

    codes: Codes
    names: tuple[str, ...]

    def name(self, row: int) -> str | None:
        """The text of a row."""
        code = int(self.codes[row])
        return None if code < 0 else self.names[code]


class Frame:
    """The rows of one table, each key once. ``duplicates`` is the number of rows that were left out."""

    def __init__(self, table: pa.Table, duplicates: int = 0) -> None:
        self.table = table
        self.duplicates = duplicates

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def numbers(self, name: str) -> Numbers:
        """A column of numbers; null is NaN."""
        column = pc.cast(self.table.column(name), pa.float64())
        return np.asarray(pc.fill_null(column, float("nan")).to_numpy(), dtype=np.float64)

    def flags(self, name: str) -> Flags:
        """A column of truth values; null is False."""
        return np.asarray(pc.fill_null(self.table.column(name), False).to_numpy(), dtype=np.bool_)

    def times(self, name: str) -> Codes:
        """A column of times in ms since 1970; null is -1."""
        column = pc.cast(self.table.column(name), pa.int64())
        return np.asarray(pc.fill_null(column, -1).to_numpy(), dtype=np.int64)

    def labels(self, name: str) -> Labels:
        """A column of texts, coded in the order of first appearance."""
        column = self.table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # what an empty column combines to
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        encoded = column.dictionary_encode()
        codes = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
        return Labels(codes, tuple(encoded.dictionary.to_pylist()))


class Run:
    """One run's folder. The tables are read when first asked for; a table without files is empty."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @cached_property
    def episodes(self) -> Frame:
        """One row an episode (``COLUMNS["episodes"]``), scored by the primary judge where judges score."""
        from flexmem.analysis.judged import with_judged_scores

        read = self.frame("episodes")
        if not self.manifest.judges:
            return read
        return with_judged_scores(read, self.judgements, self.manifest, next(iter(self.manifest.judges)))

    @cached_property
    def judgements(self) -> Frame:
        """One row a judge's word on a reply (``COLUMNS["judgements"]``)."""
        return self.frame("judgements")

    @cached_property
    def renderings(self) -> Frame:
        """One row a memory call (``COLUMNS["renderings"]``)."""
        return self.frame("renderings")

    @cached_property
    def builds(self) -> Frame:
        """One row for each time that a build was written, restored or added to (``COLUMNS["builds"]``)."""
        return self.frame("builds")

    @cached_property
    def failures(self) -> Frame:
        """One row a failed attempt that is not an outcome (``COLUMNS["failures"]``); an episode may have many."""
        return self.frame("failures")

    def frame(self, table: str, extra: Iterable[str] = ()) -> Frame:
        """``table`` with its usual columns and the ``extra`` ones, read anew.

        Of rows with the same key the one that finished first stays, between equals the one whose content sorts first:
        the choice depends neither on files nor on their order.

        Raises:
            RunError: a file can't be read, or lacks a column.
        """
        schema, wanted = COLUMNS[table], tuple(extra)
        try:
            parts = each_file(self.folder / table, lambda path: _read(path, schema, wanted, ADDED.get(table, ())))
        except TableSchemaError as error:
            versions = ", ".join(map(str, SCHEMA_VERSIONS))
            raise RunError(f"{error}; schema versions {versions} have no such file") from error
        except TableFileError as error:
            raise RunError(
                f"{error}: it is torn or damaged. Move it away and give the run's command again; the episodes that "
                "only this file holds are then done anew"
            ) from error
        except DatasetBusyError as error:
            raise RunError(str(error)) from error
        if not parts:
            rows = schema.empty_table()
            for name in wanted:
                rows = rows.append_column(name, pa.nulls(0))
        else:
            rows = pa.concat_tables(parts)
        return _without_duplicates(rows, _KEYS.get(table, ()), table)


def load(folder: Path | str) -> Run:
    """Opens a run's folder; reads the manifest only.

    Raises:
        RunError: no such folder, no run folder, another schema version, or a manifest that can't be understood.
    """
    path = Path(folder)
    return Run(path, read_manifest(path))


def _read(path: Path, schema: pa.Schema, extra: Sequence[str], added: Sequence[str]) -> pa.Table:
    """One file's usual columns, and extra ones in the types that it has them in."""
    if not extra:
        return read_file(path, schema, None, added)
    stored = file_schema(path)
    missing = [name for name in extra if name not in stored.names]
    if missing:
        raise TableSchemaError(f"{path}: lacks the columns {', '.join(missing)}")
    return read_file(path, pa.schema([*schema, *(stored.field(name) for name in extra)]), None, added)


def _without_duplicates(rows: pa.Table, key: Sequence[str], table: str) -> Frame:
    if not key or not rows.num_rows:
        return Frame(rows)
    if any(rows.column(name).null_count for name in key):
        raise RunError(f"{table}: there are rows without {' and '.join(key)}")
    frame = Frame(rows)
    codes = np.zeros(len(frame), dtype=np.int64)
    for name in key:
        values = frame.labels(name).codes if pa.types.is_string(rows.schema.field(name).type) else frame.numbers(name)
        _, inverse = np.unique(values, return_inverse=True)
        codes = codes * (int(inverse.max()) + 1) + inverse
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    repeated = np.flatnonzero(counts[inverse] > 1)
    if not repeated.size:
        return frame
    best: dict[int, tuple[tuple[Any, ...], int]] = {}
    for position, row in zip(repeated.tolist(), rows.take(pa.array(repeated)).to_pylist(), strict=True):
        group, rank = int(inverse[position]), (_finished(row), repr(row))
        if group not in best or rank < best[group][0]:
            best[group] = (rank, position)
    keep = counts[inverse] == 1
    keep[[position for _, position in best.values()]] = True
    return Frame(rows.filter(pa.array(keep)), int((~keep).sum()))


def _finished(row: dict[str, Any]) -> datetime:
    return row.get("finished_at") or datetime.max.replace(tzinfo=UTC)
