"""The driver of one sweep: gives groups to workers and goes on whatever dies."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from flexmem.sweep.advice import Advice
from flexmem.sweep.cluster import episode_slots, machines
from flexmem.sweep.episodes import ServiceFailedError, StopRun
from flexmem.sweep.failures import describe
from flexmem.sweep.finished import FinishedKeys
from flexmem.sweep.group_queue import GroupQueue
from flexmem.sweep.heartbeat import Heartbeat
from flexmem.sweep.memory_limits import memory_limits
from flexmem.sweep.plan import Group, Plan
from flexmem.sweep.pool import RunningGroup, WorkerPool
from flexmem.sweep.progress import OnProgress, Progress, SweepOutcome
from flexmem.sweep.stall import StallGuard
from flexmem.sweep.watch import Watch

_POLL_S = 0.5
_CLOSING_S = 60.0  # a container is removed within a second or two


class Driver:
    """One sweep on one cluster.

    Args:
        ray: Ray, connected.
        plan: what is run.
        out: the output folder, which exists.
        queue: the groups that are left.
        progress: where the sweep stands; kept up to date.
        finished: how many episodes have a row in the folder, of this plan or another.
        on_progress: called now and then.
    """

    def __init__(
        self,
        ray: Any,
        plan: Plan,
        out: Path,
        queue: GroupQueue,
        progress: Progress,
        finished: int,
        on_progress: OnProgress,
    ) -> None:
        self._ray = ray
        self._plan = plan
        self._out = out.resolve()
        self._queue = queue
        self._progress = progress
        self._finished = finished
        self._on_progress = on_progress
        self._heartbeat = Heartbeat(self._out)
        guard = StallGuard(plan.config.engine.stall_s, Advice(plan, self._out))
        self._watch = Watch(progress, on_progress, guard, self._heartbeat)
        self._attempts: Counter[tuple[str, str]] = Counter()
        self._lost: list[str] = []
        self._died = (ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError)

    def run(self, vectors: Path, replay: Path | None = None) -> SweepOutcome:
        """Hand out groups until none is left or a call says that all would fail. ``vectors``: where vectors are kept
        across runs; ``replay``: a reply store that all replies are taken from.
        """
        from flexmem.sweep.services.sweep_actors import SweepActors

        try:
            actors = SweepActors(self._ray, self._plan, self._out, vectors, self._wait, replay)
            try:
                return self._run(actors)
            finally:
                actors.end()
        finally:
            self._heartbeat.end()

    def _run(self, actors: Any) -> SweepOutcome:
        engine = self._plan.config.engine
        count = episode_slots(self._ray, engine)
        limits = memory_limits(engine, count, machines(self._ray))
        pool = WorkerPool(self._ray, actors.worker, actors.release, count, limits)
        self._watch.follow(pool, actors.embedding_steps)
        stopped = ""
        while pool.busy or (self._queue and not stopped):
            while self._queue and not stopped and pool.has_room(alone=self._queue.again_is_next):
                alone = self._queue.again_is_next
                pool.give(self._queue.pop(), alone=alone)
            ended = pool.next_ended(_POLL_S)
            if ended is not None:
                stopped = self._take(*ended, pool, actors) or stopped
            self._watch.look(len(self._queue))
        if self._plan.has_environments:
            pool.close(_CLOSING_S)
        self._wait(actors.writer.barrier.remote(), "results")
        if actors.replies is not None:
            self._ray.get(actors.replies.close.remote())
        notes = [self._wait(actors.writer.finish.remote(merge=not stopped), "results")]
        if pool.recycled and limits is not None:
            notes.append(
                f"{pool.recycled} workers were replaced because they took more than {limits.replace // 2**20:,} MB of "
                "memory; engine.worker_memory_mb sets the limit"
            )
        self._settle()
        return SweepOutcome(
            self._progress.planned,
            self._progress.done,
            self._progress.counts,
            stopped,
            tuple(self._lost),
            notes=tuple(filter(None, notes)),
            recycled=pool.recycled,
        )

    def _take(self, reference: Any, ended: RunningGroup, pool: WorkerPool, actors: Any) -> str:
        """Take in how a group ended; why the run must stop, empty if it need not."""
        try:
            counts = self._ray.get(reference)
        except self._died as error:
            self._again(ended.group, pool.replace_dead(ended.worker, error), actors)
        except self._ray.exceptions.RayTaskError as error:
            cause = _root(error)
            if isinstance(cause, StopRun):
                return str(cause)  # the error's own text is a traceback
            if isinstance(cause, ServiceFailedError):
                self._again(ended.group, cause, actors)
            elif isinstance(cause, OSError):
                return f"results can't be written: {describe(cause)}; make room or rights"
            else:
                raise
        else:
            self._note(ended.group, counts)
        return ""

    def _note(self, group: Group, counts: dict[str, int]) -> None:
        for outcome, number in counts.items():
            self._progress.counts[outcome] = self._progress.counts.get(outcome, 0) + number
        unfinished = counts.get("infrastructure", 0) + counts.get("configuration", 0)
        self._progress.done += len(group.episodes) - unfinished

    def _again(self, group: Group, error: Exception, actors: Any) -> None:
        """Take back what is left of a group whose worker or service failed; give it up when that happened too often."""
        key = (group.build, group.arm)
        self._attempts[key] += 1
        if self._attempts[key] >= self._plan.config.engine.group_attempts:
            self._lost.append(f"{group.benchmark}/{group.instance}, {group.arm}: {describe(error)}")
            return
        self._wait(actors.writer.barrier.remote(), "results")
        done = FinishedKeys.read(self._out)
        left = tuple(task for task in group.episodes if task.key not in done)
        self._progress.done += len(group.episodes) - len(left)
        if left:
            self._queue.push_again(replace(group, episodes=left))

    def _wait(self, reference: Any, stage: str) -> Any:
        """The value of a reference that may take long, watching meanwhile."""
        while not self._ray.wait([reference], timeout=_POLL_S)[0]:
            self._watch.look(len(self._queue), {(stage, ""): 1})
        return self._ray.get(reference)

    def _settle(self) -> None:
        """Count what is on disk: the only thing that is true. All that came to it came from this plan."""
        self._progress.done = self._progress.before + len(FinishedKeys.read(self._out)) - self._finished
        self._progress.stall = None
        self._on_progress(self._progress)


def _root(error: BaseException) -> BaseException:
    """What failed in the first place, in whichever actor; Ray wraps it once for each actor on the way."""
    while isinstance(cause := getattr(error, "cause", None), BaseException):
        error = cause
    return error
