"""Grading saved outputs with AppWorld's own evaluator, in a process of its own.

Outputs lie as AppWorld saves them: ``OUTPUTS/EXPERIMENT/tasks/TASK/…``. The root is a whole one, with ground truth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flexmem.benchmarks.appworld.errors import GradingError
from flexmem.benchmarks.appworld.grading_process import GradingProcess
from flexmem.benchmarks.appworld.installation import Installation

__all__ = ["Aggregate", "Failure", "Grade", "Grader", "Grading", "grade"]

DEADLINE_S = 120.0
"""Of one task; one takes some 0.2 s of a CPU."""

_RENEWED_AFTER = 200  # tasks: AppWorld keeps a little of each


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that failed, and where it did."""

    requirement: str
    trace: str


@dataclass(frozen=True, slots=True)
class Grade:
    """What AppWorld's evaluator says of a task. ``difficulty`` is 1 to 3; ``passes`` are requirements."""

    success: bool
    passes: tuple[str, ...]
    failures: tuple[Failure, ...]
    num_tests: int
    difficulty: int


@dataclass(frozen=True, slots=True)
class Aggregate:
    """AppWorld's own summary: TGC and SGC in percent, rounded by AppWorld, and its table by difficulty."""

    tgc: float
    sgc: float
    report: str


@dataclass(frozen=True, slots=True)
class Grading:
    """Grades by task. ``ungraded`` says of tasks that AppWorld could not grade why; ``aggregate`` is over the others,
    and None where there is none.
    """

    grades: Mapping[str, Grade]
    ungraded: Mapping[str, str]
    aggregate: Aggregate | None


def grade(
    root: Path,
    experiment: str,
    task_ids: Iterable[str],
    outputs_root: Path,
    *,
    installation: Installation | None = None,
    deadline_s: float = DEADLINE_S,
) -> Grading:
    """Grade an experiment's outputs.

    Args:
        root: AppWorld's root, with ground truth.
        experiment: the folder's name below ``outputs_root``.
        task_ids: whose outputs.
        outputs_root: AppWorld's ``experiments/outputs``, wherever it lies.
        installation: AppWorld's; None: this machine's.
        deadline_s: of one task.

    Raises:
        GradingError: AppWorld's grader can't be started. InstallationError: AppWorld is not installed.
    """
    installation = installation or Installation.find()
    said: dict[str, dict[str, Any]] = {}
    ungraded = {}
    process = GradingProcess(root, installation)
    try:
        for task_id in task_ids:
            if not process.alive:
                process.close()
                process = GradingProcess(root, installation)
            try:
                said[task_id] = process.grade(outputs_root / experiment / "tasks" / task_id, task_id, deadline_s)
            except GradingError as error:
                ungraded[task_id] = str(error)
        if not process.alive:
            process.close()
            process = GradingProcess(root, installation)
        aggregate = _aggregate(process.aggregate(said, deadline_s)) if said else None
    finally:
        process.close()
    return Grading({task_id: _grade(found) for task_id, found in said.items()}, ungraded, aggregate)


class Grader:
    """Grades one task at a time for the tasks of one event loop, off that loop. Its process starts with the first one
    and is renewed where it has failed.
    """

    def __init__(self, root: Path, installation: Installation | None = None, *, deadline_s: float = DEADLINE_S) -> None:
        """See `grade`."""
        self._root = root
        self._installation = installation
        self._deadline_s = deadline_s
        self._process: GradingProcess | None = None
        self._graded = 0
        self._turn = asyncio.Lock()

    async def grade(self, folder: Path, task_id: str) -> Grade:
        """The grade of the outputs in a task's folder.

        Raises:
            GradingError: AppWorld could not grade them. InstallationError: AppWorld is not installed.
        """
        # Whoever waits may be cancelled; the turn lasts until the process has answered.
        return await asyncio.shield(self._in_turn(folder, task_id))

    async def close(self) -> None:
        """End its process."""
        async with self._turn:
            await asyncio.to_thread(self._end)

    async def _in_turn(self, folder: Path, task_id: str) -> Grade:
        async with self._turn:
            return await asyncio.to_thread(self._grade, folder, task_id)

    def _grade(self, folder: Path, task_id: str) -> Grade:
        if self._process is not None and (not self._process.alive or self._graded >= _RENEWED_AFTER):
            self._end()
        if self._process is None:
            self._process = GradingProcess(self._root, self._installation or Installation.find())
            self._graded = 0
        self._graded += 1
        return _grade(self._process.grade(folder, task_id, self._deadline_s))

    def _end(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None


def _grade(said: Mapping[str, Any]) -> Grade:
    return Grade(
        success=bool(said["success"]),
        passes=tuple(row["requirement"] for row in said["passes"]),
        failures=tuple(Failure(row["requirement"], row["trace"]) for row in said["failures"]),
        num_tests=int(said["num_tests"]),
        difficulty=int(said["difficulty"]),
    )


def _aggregate(said: Mapping[str, Any]) -> Aggregate:
    summed = said["aggregate"]
    return Aggregate(summed["task_goal_completion"], summed["scenario_goal_completion"], said["report"])
