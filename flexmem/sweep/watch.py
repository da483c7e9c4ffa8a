"""Watching a sweep: what it waits for, whether it moves, and the activity file that says so."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict

from flexmem.sweep.activity import Waiting
from flexmem.sweep.heartbeat import Heartbeat
from flexmem.sweep.pool import WorkerPool
from flexmem.sweep.progress import OnProgress, Progress
from flexmem.sweep.stall import StallGuard

LOOK_EVERY_S = 2.0


class Watch:
    """Looks at the workers every few seconds, however often it is asked to.

    Args:
        progress: is told of a stall.
        on_progress: called with it.
        guard: notices stalls.
        heartbeat: keeps the activity file.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        progress: Progress,
        on_progress: OnProgress,
        guard: StallGuard,
        heartbeat: Heartbeat,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._progress = progress
        self._on_progress = on_progress
        self._guard = guard
        self._heartbeat = heartbeat
        self._clock = clock
        self._looked = clock() - LOOK_EVERY_S
        self._pool: WorkerPool | None = None
        self._other_steps: Callable[[], int] = int

    def follow(self, pool: WorkerPool, other_steps: Callable[[], int]) -> None:
        """Look at a pool from now on; ``other_steps`` counts what others than workers do for it."""
        self._pool = pool
        self._other_steps = other_steps

    def look(self, groups_waiting: int, driver_waits: Waiting | None = None) -> None:
        """Take note of where things stand. ``driver_waits``: what the driver itself waits for."""
        now = self._clock()
        if now - self._looked >= LOOK_EVERY_S:
            self._looked = now
            self._take_note(groups_waiting, driver_waits or {})
        self._on_progress(self._progress)

    def _take_note(self, groups_waiting: int, driver_waits: Waiting) -> None:
        waiting = Counter(driver_waits)
        steps = recycled = 0
        workers: dict[str, int | None] = {"number": 0, "starting": 0, "memory_mb": None}
        if self._pool is not None:
            self._pool.look()
            waiting.update(self._pool.waiting())
            steps = self._pool.steps + self._other_steps()
            workers = _workers(self._pool)
            recycled = self._pool.recycled
        in_flight = _by_stage(waiting)
        if groups_waiting and workers["starting"]:
            waiting["workers", ""] = workers["starting"]
        stall = self._progress.stall = self._guard.look(steps, waiting)
        self._heartbeat.beat(
            {
                "in_flight": in_flight,
                "groups_waiting": groups_waiting,
                "workers": workers,
                "recycled": recycled,
                "stall": asdict(stall) if stall else None,
            }
        )


def _workers(pool: WorkerPool) -> dict[str, int | None]:
    memory = pool.memory
    return {
        "number": len(pool),
        "starting": pool.starting,
        "memory_mb": None if memory is None else memory // 2**20,  # of the largest
    }


def _by_stage(waiting: Waiting) -> dict[str, int]:
    found: Counter[str] = Counter()
    for (stage, _), number in waiting.items():
        found[stage] += number
    return dict(sorted(found.items()))
