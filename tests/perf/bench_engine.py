"""What the engine costs beside an episode's own work: batches dispatched to workers, rows written to Parquet."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import Measurement

from flexmem.sweep.config import parse_config
from flexmem.sweep.engine import Progress, run_sweep
from flexmem.sweep.plan import make_plan
from flexmem.sweep.results import make_table, write_parts

EPISODES = 20_000
BATCH = 1_000


def benchmarks() -> Iterator[Measurement]:
    """``engine.noop_episode``: episodes that show nothing and ask nobody, from the first results to the last."""
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        engine = _engine(Path(folder) / "engine")
        plain = asyncio.run(_plain(Path(folder) / "plain"))
    note = f"{EPISODES:,} episodes on all CPUs, wall clock; baseline: one asyncio loop that writes the rows"
    yield Measurement("engine.noop_episode", engine * 1e3, "ms", plain * 1e3, engine / plain, note)


def _engine(out: Path) -> float:
    synthetic = {"name": "synthetic", "options": {"conversations": 10, "tokens": 4_000, "questions": 40}}
    content = {"name": "noop", "benchmarks": [synthetic], "arms": ["no_memory"], "budgets": [1_000]}
    plan = make_plan(parse_config({**content, "repeats": EPISODES // 400}, "bench"))
    seen: list[tuple[float, int]] = []

    def note(progress: Progress) -> None:
        if progress.done:
            seen.append((time.perf_counter(), progress.done))

    outcome = run_sweep(plan, out, note)
    assert outcome.complete
    return (seen[-1][0] - seen[0][0]) / (seen[-1][1] - seen[0][1])


async def _plain(out: Path) -> float:
    start = time.perf_counter()
    rows: list[dict[str, Any]] = []
    for number in range(EPISODES):
        rows.append(await _episode(number))
        if len(rows) == BATCH:
            write_parts(out, f"{number:06d}", {"episodes": make_table("episodes", rows)})
            rows = []
    return (time.perf_counter() - start) / EPISODES


async def _episode(number: int) -> dict[str, Any]:
    return {"episode": f"{number:032d}", "arm": "no_memory", "outcome": "ok", "finished_at": datetime.now(UTC)}
