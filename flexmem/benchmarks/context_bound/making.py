"""Making recordings where AppWorld is installed: solutions are cut and carried out once for each seed."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from flexmem.agents.context_bound.variation import Variation
from flexmem.benchmarks.appworld.data import SPLITS
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.appworld.places import appworld_cache
from flexmem.benchmarks.appworld.tasks import Task, read_tasks
from flexmem.benchmarks.appworld.world import generator_digest, make_world, own_root
from flexmem.benchmarks.context_bound.appworld_worlds import CONVENTIONS, AppWorldWorlds
from flexmem.benchmarks.context_bound.cutting import cut
from flexmem.benchmarks.context_bound.program import CuttingError, read_program
from flexmem.benchmarks.context_bound.recorder import record
from flexmem.benchmarks.context_bound.recording import NotCarriedOutError
from flexmem.benchmarks.context_bound.recording_files import (
    FORMAT,
    Index,
    read_index,
    recording_path,
    write_index,
    write_recording,
)
from flexmem.benchmarks.protocol import DataMissingError

T = TypeVar("T")
Say = Callable[[str], None]
"""Told what is being done, in a line each."""

_SOLUTION = "compiled_solution.py"
_AT_ONCE = 2


@dataclass(frozen=True)
class Source:
    """Whose solutions are followed: the own world's, or an AppWorld root's."""

    data: Literal["own"] | Path

    def folder(self) -> Path:
        """Where its recordings lie in the cache.

        Raises:
            DataMissingError: the root has no solutions.
        """
        key = f"own-{generator_digest()[:16]}" if self.data == "own" else f"root-{_digest(self.root())[:16]}"
        return appworld_cache().parent / "context_bound" / f"{key}-v{FORMAT}"

    def root(self) -> Path:
        """AppWorld's root; the own world is made if need be.

        Raises:
            DataError, FlexmemError: it can't be made.
        """
        if self.data == "own":
            return make_world(own_root())
        assert isinstance(self.data, Path)
        return self.data.expanduser().absolute()

    @property
    def name(self) -> str:
        """What notes call it."""
        return "the own world's tasks" if self.data == "own" else "AppWorld's tasks"


def make_missing(
    source: Source, folder: Path, tasks: Sequence[str] | None, seeds: int, say: Say = lambda line: None
) -> None:
    """Record what a folder lacks: each of the tasks, or all that can be cut, for seeds 0 to ``seeds`` - 1.

    Takes some ten seconds of one CPU for each task and seed. May be called within a running event loop.

    Raises:
        InstallationError: AppWorld is not installed here. DataError: no such tasks, or one can't be recorded.
    """
    installation = Installation.find()
    root = source.root()
    found = read_tasks(root, SPLITS, tasks)
    solutions = {task.task_id: _solution(root, task.task_id).read_text("utf-8") for task in found}
    refused = {}
    for task_id, solution in solutions.items():
        try:
            read_program(solution, task_id)
        except CuttingError as error:
            refused[task_id] = str(error)
    missing = [
        (task, seed)
        for task in found
        if task.task_id not in refused
        for seed in range(seeds)
        if not recording_path(folder, task.task_id, seed).is_file()
    ]

    async def make() -> None:
        worlds = AppWorldWorlds(root, installation, min(_AT_ONCE, len(missing)))
        waiting = iter(missing)

        async def lane() -> None:
            for task, seed in waiting:
                say(f"recording {task.task_id}, seed {seed}")
                await _make_one(folder, task, solutions[task.task_id], seed, worlds)

        try:
            async with asyncio.TaskGroup() as lanes:
                for _ in range(_AT_ONCE):
                    lanes.create_task(lane())
        finally:
            await worlds.close()

    if missing:
        _run_apart(make)
    known = read_index(folder)
    there = {*(known.tasks if known else ()), *(task.task_id for task in found)} - set(refused)
    refused_before = dict(known.refused) if known else {}
    write_index(folder, Index(source.name, tuple(sorted(there)), {**refused_before, **refused}))


async def _make_one(folder: Path, task: Task, solution: str, seed: int, worlds: AppWorldWorlds) -> None:
    """Where the order that was drawn does not carry out the task, since it matters, the solution's own is taken."""
    drawn = Variation.draw(task.task_id, seed)
    for variation in (drawn, drawn.in_solution_order()):
        async with worlds.open(task.task_id) as world:
            plan = await cut(solution, task.instruction, variation, CONVENTIONS, world.execute)
        try:
            recording = await record(plan, seed, worlds)
        except NotCarriedOutError:
            if variation == drawn.in_solution_order():
                raise
        else:
            write_recording(folder, recording)
            return


def _solution(root: Path, task: str) -> Path:
    return root / "data" / "tasks" / task / "ground_truth" / _SOLUTION


def _digest(root: Path) -> str:
    """SHA-256 of all solutions."""
    paths = sorted((root / "data" / "tasks").glob(f"*/ground_truth/{_SOLUTION}"))
    if not paths:
        raise DataMissingError(
            f"{root / 'data' / 'tasks'}: holds no task with a solution. Name an AppWorld root with ground truth, or "
            "take `data: own`.",
            f"{root} holds no solutions",
        )
    state = hashlib.sha256()
    for path in paths:
        state.update(f"{path.relative_to(root)}\t{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return state.hexdigest()


def _run_apart(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run in an event loop of its own thread, whether or not there is one in this."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            failed.append(error)

    thread = threading.Thread(target=run, name="recording")
    thread.start()
    thread.join()
    if failed:
        first = failed[0]
        raise first.exceptions[0] if isinstance(first, BaseExceptionGroup) else first
    return done[0]
