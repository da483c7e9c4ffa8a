"""Sweeps without Ray: an `EpisodeWorker` in this process whose parts land on disk, and tables read back."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flexmem.benchmarks.protocol import Instance, Question
from flexmem.ports import Embedder, IndexConfig, ReplyStore, VectorArray
from flexmem.retrieval.index import IndexSnapshot, LocalIndex
from flexmem.sweep.config import SweepConfig, parse_config
from flexmem.sweep.manifest import plan_manifest, write_manifest
from flexmem.sweep.plan import Group, LoadedBenchmark, Plan
from flexmem.sweep.results import finished_keys, read_columns, write_parts
from flexmem.sweep.tables import TABLES
from flexmem.sweep.worker import EpisodeWorker

LOCOMO_SMALL = Path(__file__).parents[1] / "fixtures" / "locomo" / "small.json"
SYNTHETIC = {"name": "synthetic", "options": {"conversations": 1, "tokens": 3_000, "questions": 6}}
LOCOMO = {"name": "locomo", "options": {"path": str(LOCOMO_SMALL)}}

TIMES = ("finished_at", "render_ms", "read_s", "seconds")
"""Columns that differ between two runs of the same work."""

Row = dict[str, Any]


def sweep(**changes: Any) -> SweepConfig:
    """A small sweep, with some of its top-level keys changed."""
    content = {"name": "test", "benchmarks": [SYNTHETIC], "arms": ["piece_retrieval"], "budgets": [400]}
    return parse_config({**content, **changes}, "test")


class WordEmbedder:
    """A small real embedder: a text's vector counts its words, each on the axis that its hash names. ``texts`` holds
    what it was asked for.
    """

    name = "words"
    dimension = 24

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        self.texts += texts
        rows = np.full((len(texts), self.dimension), 0.01, dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[hashlib.blake2b(word.encode(), digest_size=1).digest()[0] % self.dimension] += 1
            row /= np.linalg.norm(row)
        return rows


@dataclass
class InProcess:
    """A worker on a plan, as an engine would drive it; ``replies`` keeps what models answer. ``parts`` counts what was
    delivered, ``snapshots`` what was indexed.
    """

    plan: Plan
    out: Path
    embedder: Embedder = field(default_factory=WordEmbedder)
    replies: ReplyStore | None = None
    parts: int = 0
    snapshots: Counter[tuple[str, IndexConfig]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.worker = EpisodeWorker(
            self.plan.config,
            self.out,
            embedder=self.embedder,
            fetch_instance=self._instance,
            fetch_snapshot=self._snapshot,
            deliver=self._deliver,
            replies=self.replies,
        )

    def run(self) -> Counter[str]:
        """Run what the folder lacks, one group after the other; counts by outcome."""
        return asyncio.run(self._run(self.plan.groups(finished_keys(self.out))))

    def run_together(self) -> Counter[str]:
        """As `run`, with all groups side by side."""
        return asyncio.run(self._together(list(self.plan.groups(finished_keys(self.out)))))

    async def _run(self, groups: Iterable[Group]) -> Counter[str]:
        counts: Counter[str] = Counter()
        try:
            for group in groups:
                counts.update(await self.worker.run(group))
        finally:
            await self.worker.aclose()
        return counts

    async def _together(self, groups: Sequence[Group]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for found in await asyncio.gather(*map(self.worker.run, groups)):
            counts.update(found)
        return counts

    async def _instance(self, benchmark: str, instance_id: str) -> Instance:
        loaded = next(loaded for loaded in self.plan.benchmarks if loaded.name == benchmark)
        return loaded.instances[instance_id]

    async def _snapshot(self, benchmark: str, instance: Instance, config: IndexConfig) -> IndexSnapshot:
        self.snapshots[instance.instance_id, config] += 1
        index = LocalIndex(config, self.embedder)
        for unit in instance.units:
            await index.append(unit)
        return index.freeze()

    async def _deliver(self, part: str, tables: Mapping[str, pa.Table]) -> int:
        self.parts += 1
        return write_parts(self.out, part, tables)


def rows(out: Path, table: str) -> list[Row]:
    """All rows of a table, in the order of its parts."""
    return [row for part in read_columns(out, table, TABLES[table].names) for row in part.to_pylist()]


def open_manifest(out: Path, plan: Plan) -> dict[str, Any]:
    """As a run does it: checked, then written."""
    manifest = plan_manifest(out, plan)
    write_manifest(out, manifest)
    return manifest


def by_key(found: Iterable[Row], key: str = "episode") -> dict[str, Row]:
    """Rows by their key; a key that comes twice is an error."""
    keyed: dict[str, Row] = {}
    for row in found:
        assert row[key] not in keyed, f"two rows of {key} {row[key]}"
        keyed[row[key]] = row
    return keyed


def timeless(found: Iterable[Row]) -> dict[str, Row]:
    """Rows by episode without the columns that hold times."""
    return by_key({name: value for name, value in row.items() if name not in TIMES} for row in found)


def contents(out: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def with_questions(plan: Plan, change: Any) -> Plan:
    """The plan with ``change(questions)`` in place of each instance's questions."""

    def changed(questions: Sequence[Question]) -> tuple[Question, ...]:
        return tuple(change(questions))

    return replace(
        plan,
        benchmarks=[
            LoadedBenchmark(
                loaded.benchmark,
                {
                    name: replace(instance, questions=changed(instance.questions))
                    for name, instance in loaded.instances.items()
                },
            )
            for loaded in plan.benchmarks
        ],
    )
