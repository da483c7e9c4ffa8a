"""The driver: gives groups to workers, watches them, and goes on from where an earlier run stopped."""

from __future__ import annotations

import itertools
import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir

from flexmem.sweep.cluster import episode_slots, ray_cluster
from flexmem.sweep.config import SweepConfig
from flexmem.sweep.episodes import ServiceFailedError, StopRun
from flexmem.sweep.failures import describe
from flexmem.sweep.manifest import plan_manifest, write_manifest
from flexmem.sweep.plan import Group, Plan
from flexmem.sweep.preflight import check_models
from flexmem.sweep.recovery import recover
from flexmem.sweep.results import finished_keys, lock_for_writing

GROUPS_PER_WORKER = 2  # the next one is at hand when one ends
REPLIES = "replies.sqlite"
_POLL_S = 0.5
_RATE_AFTER_S = 15.0  # start-up is no measure of what follows


@dataclass
class Progress:
    """Where a sweep stands. ``planned`` counts all episodes of the plan, ``done`` those with a row, earlier runs'
    included.
    """

    planned: int
    done: int
    counts: dict[str, int] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    before: int = 0

    @property
    def rate(self) -> float:
        """Episodes a second in this run."""
        return (self.done - self.before) / max(1e-9, time.monotonic() - self.started)

    @property
    def eta_s(self) -> float | None:
        """Seconds to go at that rate; None until the rate says something."""
        if self.done - self.before < 0.01 * self.planned or time.monotonic() - self.started < _RATE_AFTER_S:
            return None
        return (self.planned - self.done) / self.rate


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class SweepOutcome:
    """How a sweep ended. ``stopped`` says why it gave up, empty if it did not; ``lost`` names groups whose workers
    kept dying; ``notes`` say what else a user should know.
    """

    planned: int
    done: int
    counts: dict[str, int]
    stopped: str = ""
    lost: tuple[str, ...] = ()
    torn: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return self.done >= self.planned


def vector_cache_path() -> Path:
    """Where vectors are kept across runs: in $FLEXMEM_CACHE, else the user's cache folder."""
    return Path(os.environ.get("FLEXMEM_CACHE") or user_cache_dir("flexmem")) / "vectors.sqlite"


def run_sweep(plan: Plan, out: Path, on_progress: OnProgress | None = None) -> SweepOutcome:
    """Run what is missing of a plan in an output folder; the same call again goes on where this one stopped.

    Raises:
        RunFolderError: the folder holds results of something else.
        ModelError: a configured endpoint can't be used.
        FolderBusyError: another run writes into the folder.
    """
    manifest = plan_manifest(out, plan)
    done, torn = _finished_so_far(out)
    planned = sum(cell["n"] for cell in plan.cells())
    groups = deque(plan.groups(done))
    missing = sum(len(group.episodes) for group in groups)
    progress = Progress(planned, planned - missing, before=planned - missing)
    if on_progress is not None:
        on_progress(progress)
    if groups:
        check_models(plan.config)
    write_manifest(out, manifest)  # not before: a folder made from a wrong address would refuse the right one
    if not groups:
        return SweepOutcome(planned, planned, {}, torn=torn)
    with ray_cluster(plan.config.engine) as ray:
        return replace(_Driver(ray, plan, out, progress, on_progress).run(groups), torn=torn)


def _finished_so_far(out: Path) -> tuple[set[str], tuple[str, ...]]:
    """Keys of the episodes that have a row, and torn parts that were set aside; looked at while nobody writes."""
    if not out.exists():
        return set(), ()
    with lock_for_writing(out):
        torn = tuple(map(str, recover(out)))
        return finished_keys(out), torn


def _root(error: BaseException) -> BaseException:
    """What failed in the first place, in whichever actor; Ray wraps it once for each actor on the way."""
    while isinstance(cause := getattr(error, "cause", None), BaseException):
        error = cause
    return error


class _Workers:
    """Episode workers by number. One that waits for a CPU gets no group, lest that wait with it."""

    def __init__(self, start: Callable[[int], Any], count: int) -> None:
        self._start = start
        self._numbers = itertools.count()
        self._handles: dict[int, Any] = {}
        self._loads: dict[int, int] = {}  # groups of each that has come up
        self.starting: dict[Any, int] = {}  # by the reference that is ready when it has
        for _ in range(count):
            self._add()

    def come_up(self, reference: Any) -> None:
        """Take note that a worker can be given groups; one that failed to start fails its first group."""
        self._loads[self.starting.pop(reference)] = 0

    def idlest(self) -> int | None:
        """The worker with the fewest groups; None if all have enough."""
        number = min(self._loads, key=self._loads.__getitem__, default=None)
        return None if number is None or self._loads[number] >= GROUPS_PER_WORKER else number

    def give(self, number: int, group: Group) -> Any:
        """Hand a group to a worker; the reference gives its counts."""
        self._loads[number] += 1
        return self._handles[number].run.remote(group)

    def take_back(self, number: int) -> None:
        """Take note that a group of a worker has ended."""
        if number in self._loads:
            self._loads[number] -= 1

    def replace(self, number: int) -> None:
        """Start another worker in place of a dead one, once, however many groups tell of its death."""
        if self._handles.pop(number, None) is not None:
            del self._loads[number]
            self._add()

    def _add(self) -> None:
        number = next(self._numbers)
        self._handles[number] = worker = self._start(number)
        self.starting[worker.pid.remote()] = number


class _Driver:
    """One sweep on one cluster."""

    def __init__(self, ray: Any, plan: Plan, out: Path, progress: Progress, on_progress: OnProgress | None) -> None:
        from flexmem.sweep.services.actor import SERVICE, start_actor
        from flexmem.sweep.services.results import ResultActor, ResultClient

        self._ray = ray
        self._plan = plan
        self._out = out.resolve()
        self._progress = progress
        self._on_progress = on_progress or (lambda progress: None)
        self._writer = start_actor(ResultActor, str(self._out), **SERVICE)
        self._results = ResultClient(self._writer)
        self._session = uuid.uuid4().hex
        self._replies = self._start_replies()
        self._attempts: dict[tuple[str, str], int] = {}
        self._lost: list[str] = []

    def run(self, groups: deque[Group]) -> SweepOutcome:
        """Hand out groups until none is left or a call says that all would fail."""
        try:
            return self._run(groups)
        finally:
            self._ray.kill(self._writer)  # it holds the folder until it ends, which may be long after the last handle

    def _run(self, groups: deque[Group]) -> SweepOutcome:
        stopped = ""
        workers = self._start_workers(self._plan.config)
        running: dict[Any, tuple[int, Group]] = {}
        while running or (groups and not stopped):
            while groups and not stopped and (idle := workers.idlest()) is not None:
                group = groups.popleft()
                running[workers.give(idle, group)] = (idle, group)
            ready, _ = self._ray.wait([*running, *workers.starting], num_returns=1, timeout=_POLL_S)
            for reference in ready:
                if reference in workers.starting:
                    workers.come_up(reference)
                    continue
                number, group = running.pop(reference)
                workers.take_back(number)
                try:
                    counts = self._ray.get(reference)
                except self._ray.exceptions.RayActorError as error:
                    self._release(number)
                    workers.replace(number)
                    groups.extend(self._again(group, error))
                except self._ray.exceptions.RayTaskError as error:
                    cause = _root(error)
                    if isinstance(cause, StopRun):
                        stopped = str(cause)  # the error's own text is a traceback
                    elif isinstance(cause, ServiceFailedError):
                        groups.extend(self._again(group, cause))
                    elif isinstance(cause, OSError):
                        stopped = f"results can't be written: {describe(cause)}; make room or rights"
                    else:
                        raise
                else:
                    self._note(group, counts)
            self._on_progress(self._progress)
        self._ray.get(self._writer.barrier.remote())
        problem = "" if stopped else self._ray.get(self._writer.finish.remote())
        if self._replies is not None:
            self._ray.get(self._replies.close.remote())
        self._settle()
        return SweepOutcome(
            self._progress.planned,
            self._progress.done,
            self._progress.counts,
            stopped,
            tuple(self._lost),
            notes=(problem,) if problem else (),
        )

    def _start_workers(self, config: SweepConfig) -> _Workers:
        from flexmem.sweep.services.actor import SERVICE, start_actor
        from flexmem.sweep.services.embedding import EmbeddingActor, EmbeddingClient
        from flexmem.sweep.services.index import IndexActor, IndexClient

        entry = config.embedding
        gpus = 1 if entry.device is None and self._ray.cluster_resources().get("GPU") else 0
        model = (entry.model, entry.device, entry.batch_size, str(vector_cache_path()))
        name = f"flexmem-embedding-{uuid.uuid4().hex}"
        # The handle is kept: an actor found by name alone ends with the last handle of those who started it.
        self._embedding = start_actor(EmbeddingActor, *model, **SERVICE, num_gpus=gpus, name=name)
        try:
            dimension = self._ray.get(self._embedding.dimension.remote())
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None  # what the user can mend, without the traceback of another process
        self._embedder = EmbeddingClient(name, self._plan.embedder, dimension)
        self._index = IndexClient(start_actor(IndexActor, name, self._plan.embedder, dimension, **SERVICE))
        self._instances = {
            (loaded.name, instance.instance_id): self._ray.put(instance)
            for loaded in self._plan.benchmarks
            for instance in loaded.instances.values()
        }
        return _Workers(self._new_worker, episode_slots(self._ray, config.engine))

    def _start_replies(self) -> Any:
        """The reply store, where the sweep has a model whose replies cost something."""
        from flexmem.sweep.services.actor import SERVICE, start_actor
        from flexmem.sweep.services.replies import ReplyActor

        models = self._plan.config.models
        if models.reader is None and models.memory is None:
            return None
        return start_actor(ReplyActor, str(self._out / REPLIES), self._session, **SERVICE)

    def _owner(self, number: int) -> str:
        """A worker's name in the reply store."""
        return f"{self._session}/{number}"

    def _release(self, number: int) -> None:
        """Let others make the calls of a worker that died."""
        if self._replies is not None:
            self._ray.get(self._replies.release.remote(self._owner(number)))

    def _new_worker(self, number: int) -> Any:
        from flexmem.sweep.services.actor import start_actor
        from flexmem.sweep.services.replies import ReplyClient
        from flexmem.sweep.services.workers import WorkerActor

        replies = ReplyClient(self._replies) if self._replies is not None else None
        services = (self._embedder, self._index, self._results, replies, self._owner(number))
        arguments = (self._plan.config, str(self._out), self._instances, *services)
        return start_actor(WorkerActor, *arguments, num_cpus=1, max_concurrency=64)

    def _note(self, group: Group, counts: dict[str, int]) -> None:
        for outcome, number in counts.items():
            self._progress.counts[outcome] = self._progress.counts.get(outcome, 0) + number
        unfinished = counts.get("infrastructure", 0) + counts.get("configuration", 0)
        self._progress.done += len(group.episodes) - unfinished

    def _again(self, group: Group, error: Exception) -> Iterator[Group]:
        """What is left of a group whose worker or service failed; nothing when that happened too often."""
        key = (group.build, group.arm)
        self._attempts[key] = self._attempts.get(key, 0) + 1
        if self._attempts[key] >= self._plan.config.engine.group_attempts:
            self._lost.append(f"{group.benchmark}/{group.instance}, {group.arm}: {describe(error)}")
            return
        self._ray.get(self._writer.barrier.remote())
        done = finished_keys(self._out)
        left = tuple(task for task in group.episodes if task.key not in done)
        self._progress.done += len(group.episodes) - len(left)
        if left:
            yield Group(group.benchmark, group.instance, group.arm, group.repeat, group.build, left)

    def _settle(self) -> None:
        """Count what is on disk: the only thing that is true."""
        done = finished_keys(self._out)
        missing = sum(len(group.episodes) for group in self._plan.groups(done))
        self._progress.done = self._progress.planned - missing
        self._on_progress(self._progress)
