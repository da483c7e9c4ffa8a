"""Benchmarks that compare with a baseline measured in the same run: a value, its unit, the baseline's, and their
ratio.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measurement:
    """One line of the table. ``ratio`` is what the name promises: baseline / value where faster is better, else value
    / baseline.
    """

    name: str
    value: float
    unit: str
    baseline: float
    ratio: float
    note: str = ""


Benchmark = Callable[[], Iterator[Measurement]]


def seconds(action: Callable[[], object], *, repeats: int, inner: int = 1) -> float:
    """Median time of one call, over ``repeats`` runs of ``inner`` calls, the collector off."""
    times = []
    gc.disable()
    try:
        for _ in range(repeats):
            start = time.perf_counter()
            for _ in range(inner):
                action()
            times.append((time.perf_counter() - start) / inner)
    finally:
        gc.enable()
    return statistics.median(times)


def print_table(measurements: list[Measurement]) -> None:
    """The table on standard output."""
    rows = [("name", "value", "baseline", "ratio", "")]
    rows += [
        (one.name, f"{one.value:.4g} {one.unit}", f"{one.baseline:.4g} {one.unit}", f"{one.ratio:.3g}", one.note)
        for one in measurements
    ]
    print("ratio: of `render.piece.N` the speed-up over the baseline; of all others value / baseline\n")
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4], sep="  ")


def write_json(measurements: list[Measurement], path: Path) -> None:
    """The array that ``bench.json`` holds."""
    keys = ("name", "value", "unit", "baseline", "ratio")
    path.write_text(json.dumps([{key: asdict(one)[key] for key in keys} for one in measurements], indent=1) + "\n")
