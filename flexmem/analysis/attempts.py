"""Attempts that left no outcome: episodes that are still to be run, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from flexmem.analysis.frames import Run
from flexmem.analysis.manifest import CellKey


@dataclass(frozen=True)
class OpenFailures:
    """Episodes without an outcome by the error class of their last attempt. The table of failures names no reader:
    where a benchmark, arm and budget have several, the cell can't be told and the episodes are in ``elsewhere``.
    """

    by_cell: dict[CellKey, Counter[str]] = field(default_factory=dict)
    elsewhere: Counter[str] = field(default_factory=Counter)


def open_failures(run: Run, keys: Iterable[CellKey]) -> OpenFailures:
    """The failures of ``run`` that no later attempt made good; ``by_cell`` has every one of ``keys``.

    Raises:
        RunError: a table can't be read.
    """
    found = OpenFailures({key: Counter() for key in keys})
    cells: dict[tuple[str, str, int | None], list[CellKey]] = {}
    for key in found.by_cell:
        cells.setdefault((key.benchmark, key.arm, key.budget), []).append(key)
    finished = set(run.episodes.labels("episode").names)
    last: dict[str, dict[str, object]] = {}
    columns = ["episode", "benchmark", "arm", "budget", "error_class", "failed_at"]
    order = np.argsort(run.failures.times("failed_at"), kind="stable")
    for row in run.failures.table.select(columns).take(order).to_pylist():
        if row["episode"] not in finished:
            last[row["episode"]] = row
    for row in last.values():
        candidates = cells.get((row["benchmark"], row["arm"], row["budget"]), [])  # type: ignore[arg-type]
        counter = found.by_cell[candidates[0]] if len(candidates) == 1 else found.elsewhere
        counter[str(row["error_class"] or "unknown")] += 1
    return found
