"""Runs written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flexmem.sweep.tables import SCHEMA_VERSION, TABLES

Row = dict[str, Any]


class RunFolder:
    """A run folder that a test fills. Rows are dicts; columns that they lack are null."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts = 0

    def write(self, table: str, rows: Iterable[Mapping[str, Any]]) -> Path:
        """Writes one more part of ``table``."""
        folder = self.path / table
        folder.mkdir(parents=True, exist_ok=True)
        self._parts += 1
        part = folder / f"part-{self._parts:04}.parquet"
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=TABLES[table]), part)
        return part

    def plan(
        self,
        cells: Iterable[Mapping[str, Any]],
        *,
        rewriting: Iterable[str] = (),
        asking: Iterable[str] = (),
        notes: Iterable[str] = (),
        **other: Any,
    ) -> None:
        """Writes the manifest. A planned cell is a dict with at least ``arm`` and ``n``."""
        planned = [{"benchmark": "bench", "budget": None, "reader": None, "repeats": 1, **cell} for cell in cells]
        arms = {
            cell["arm"]: {
                "rewrites_text": cell["arm"] in set(rewriting),
                "asks_per_call": cell["arm"] in set(asking),
                "family": "x",
                "control": False,
            }
            for cell in planned
        }
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "config": {},
            "data_digests": {},
            "notes": list(notes),
            "planned": planned,
            "arms": arms,
        }
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "manifest.json").write_text(json.dumps(manifest | other))


def episode(arm: str, question: str, *, instance: str = "i1", repeat: int = 0, **columns: Any) -> Row:
    """A finished episode that shows its one evidence turn; ``columns`` override."""
    cell = {"benchmark": "bench", "budget": None, "reader": None} | columns
    row = {
        "episode": f"{cell['benchmark']}/{arm}/{cell['budget']}/{cell['reader']}/{instance}/{question}/{repeat}",
        "instance": instance,
        "question": question,
        "question_type": "single",
        "arm": arm,
        "repeat": repeat,
        "outcome": "ok",
        "scored_by_evidence": True,
        "n_evidence": 1,
        "evidence_visible": 1,
        "verbatim_evidence": 1.0,
        "extractive": True,
        "answer_recall": 1.0,
        "violation_tokens": 0,
        "attempts": 1,
        "finished_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return row | cell
