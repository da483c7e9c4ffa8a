"""A shared rate budget against each worker's own retries, at an endpoint that enforces a limit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from harness import Measurement

from flexmem.sweep.cluster import ray_cluster
from flexmem.sweep.config import EngineEntry

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.perf.limiter_load import AT_ONCE, CALLS, LIMIT, WORKERS, run_load


def benchmarks() -> Iterator[Measurement]:
    """``llm.limiter.share``: of the limit that is used; ``llm.limiter.rejected``: of the requests that were sent."""
    with ray_cluster(EngineEntry()) as ray:
        shared, alone = run_load(ray, budget=True), run_load(ray, budget=False)
    note = (
        f"{CALLS:,} calls, {WORKERS} workers of {AT_ONCE} at a time, {LIMIT} requests a minute, 10 at once; "
        f"answered {shared.answered:,}; baseline: the SDK's own retries, answered {alone.answered:,}"
    )
    yield Measurement("llm.limiter.share", shared.share, "", alone.share, shared.share / alone.share, note)
    yield Measurement(
        "llm.limiter.rejected", shared.rejected, "", alone.rejected, shared.rejected / alone.rejected, note
    )
