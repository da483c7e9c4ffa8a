"""The pool of episode workers: who holds which groups, what they say of themselves, and when one is replaced."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flexmem.sweep.activity import ActivityReport, Waiting
from flexmem.sweep.memory_limits import MemoryLimits
from flexmem.sweep.plan import Group

GROUPS_PER_WORKER = 2  # the next one is at hand when one ends


class WorkerMemoryError(Exception):
    """A worker took so much memory that it was killed."""


@dataclass
class _Worker:
    """A worker as the driver knows it; ``asked`` is the reference of a report that is on its way."""

    handle: Any
    up: bool = False
    load: int = 0
    ended: int = 0
    retiring: bool = False
    report: ActivityReport | None = None
    asked: Any = None


@dataclass(frozen=True)
class RunningGroup:
    """A group that a worker holds, and what part of `GROUPS_PER_WORKER` it takes."""

    worker: int
    group: Group
    share: int


class WorkerPool:
    """Workers by number. One that waits for a CPU gets no group, lest that wait with it.

    Args:
        ray: Ray, connected.
        start: starts the worker of a number and gives its handle.
        release: told the number of each worker that is gone.
        count: how many workers.
        limits: of a worker's memory; None: there are none.
    """

    def __init__(
        self,
        ray: Any,
        start: Callable[[int], Any],
        release: Callable[[int], None],
        count: int,
        limits: MemoryLimits | None,
    ) -> None:
        self._ray = ray
        self._start = start
        self._release = release
        self._limits = limits
        self._numbers = itertools.count()
        self._workers: dict[int, _Worker] = {}
        self._starting: dict[Any, int] = {}  # by the reference that is ready when it has come up
        self._running: dict[Any, RunningGroup] = {}  # by the reference that gives its counts
        self._killed: dict[int, WorkerMemoryError] = {}
        self._steps = 0  # of workers that are gone, and what no worker counts
        self.recycled = 0
        for _ in range(count):
            self._add()

    def __len__(self) -> int:
        return len(self._workers)

    @property
    def starting(self) -> int:
        """Workers that have not come up."""
        return len(self._starting)

    @property
    def busy(self) -> bool:
        """Whether any group runs."""
        return bool(self._running)

    @property
    def steps(self) -> int:
        """Steps of all work so far, as far as is known; it changes whenever anything moves."""
        return self._steps + sum(report.steps for report in self._reports())

    @property
    def memory(self) -> int | None:
        """Bytes that the largest worker takes, None while nobody knows."""
        return max((report.memory for report in self._reports() if report.memory), default=None)

    def waiting(self) -> Waiting:
        """What the groups that run wait for, by stage and subject; ``unknown`` where their worker has not said."""
        found: Counter[tuple[str, str]] = Counter()
        said = {number for number, worker in self._workers.items() if worker.report and worker.report.waiting}
        for running in self._running.values():
            if running.worker not in said:
                found["unknown", running.group.arm] += 1
        for number in said & {running.worker for running in self._running.values()}:
            report = self._workers[number].report
            found.update(report.waiting if report else {})
        return found

    def has_room(self, *, alone: bool) -> bool:
        """Whether a worker can take a group."""
        number = self._idlest()
        return number is not None and self._workers[number].load + _share(alone) <= GROUPS_PER_WORKER

    def give(self, group: Group, *, alone: bool) -> None:
        """Hand a group to the worker with the fewest, where there is room. One that runs ``alone`` takes a whole
        worker: if that dies, no other group dies with it.
        """
        number = self._idlest()
        assert number is not None
        worker = self._workers[number]
        worker.load += _share(alone)
        self._running[worker.handle.run.remote(group)] = RunningGroup(number, group, _share(alone))

    def next_ended(self, timeout: float) -> tuple[Any, RunningGroup] | None:
        """Wait for a group to end, for ``timeout`` seconds: the reference that gives its counts or raises, and what
        ran. None when none has ended by then.
        """
        ready, _ = self._ray.wait([*self._running, *self._starting], num_returns=1, timeout=timeout)
        for reference in ready:
            self._steps += 1
            if reference in self._starting:  # one that failed to start fails its first group
                self._workers[self._starting.pop(reference)].up = True
                return None
            ended = self._running.pop(reference)
            worker = self._workers.get(ended.worker)
            if worker is not None:
                worker.load -= ended.share
                worker.ended += 1
            return reference, ended
        return None

    def look(self) -> None:
        """Take in what workers say of themselves, and replace or kill those that take too much memory. Waits for none:
        the last word of one that is late stands.
        """
        asked = {worker.asked: worker for worker in self._workers.values() if worker.asked is not None}
        ready, _ = self._ray.wait([*asked], num_returns=len(asked), timeout=0) if asked else ([], [])
        for reference in ready:
            worker = asked[reference]
            worker.asked = None
            try:
                worker.report = self._ray.get(reference)
            except self._ray.exceptions.RayError:
                continue  # it died, as its groups will tell
        for number, worker in [*self._workers.items()]:
            if worker.up and worker.asked is None:
                worker.asked = worker.handle.activity.remote()
            self._check_memory(number, worker)

    def replace_dead(self, number: int, error: Exception) -> Exception:
        """Start another worker in place of a dead one, once, however many groups tell of its death; what it died of."""
        if number in self._workers:
            self._replace(number)
        return self._killed.get(number, error)

    def close(self, timeout: float) -> None:
        """Have all workers end what they have started, for ``timeout`` seconds at most: what is left then is swept by
        whoever starts such a thing next.
        """
        closing = [worker.handle.aclose.remote() for worker in self._workers.values() if worker.up]
        if closing:
            self._ray.wait(closing, num_returns=len(closing), timeout=timeout)

    def _idlest(self) -> int | None:
        ready = (number for number, worker in self._workers.items() if worker.up and not worker.retiring)
        return min(ready, key=lambda number: self._workers[number].load, default=None)

    def _reports(self) -> Iterator[ActivityReport]:
        return (worker.report for worker in self._workers.values() if worker.report)

    def _check_memory(self, number: int, worker: _Worker) -> None:
        memory = worker.report.memory if worker.report else None
        if self._limits is None or memory is None or number in self._killed:
            return
        if memory > self._limits.kill and worker.load:
            self._kill(number, worker, memory, self._limits)
        elif memory > self._limits.replace and worker.ended and not worker.retiring:
            # One that has run nothing yet would be replaced for ever.
            worker.retiring = True
            self.recycled += 1
        if worker.retiring and not worker.load:
            self._ray.kill(worker.handle)
            self._replace(number)

    def _kill(self, number: int, worker: _Worker, memory: int, limits: MemoryLimits) -> None:
        self._killed[number] = WorkerMemoryError(
            f"its worker was killed at {memory // 2**20:,} MB of memory; engine.worker_memory_mb is "
            f"{limits.replace // 2**20:,}, and over {limits.kill // 2**20:,} none may go on: raise it, or mend the "
            "method if it leaks"
        )
        self.recycled += not worker.retiring
        self._ray.kill(worker.handle)  # its groups will tell

    def _replace(self, number: int) -> None:
        gone = self._workers.pop(number)
        self._steps += 1 + (gone.report.steps if gone.report else 0)
        self._release(number)
        self._add()

    def _add(self) -> None:
        number = next(self._numbers)
        worker = self._start(number)
        self._workers[number] = _Worker(worker)
        self._starting[worker.pid.remote()] = number


def _share(alone: bool) -> int:
    return GROUPS_PER_WORKER if alone else 1
