"""Making the whole world, and running programs in it."""

from __future__ import annotations

import os
import re
from typing import Any

from appworld import AppWorld

from world.base import make_base
from world.idioms import check_solution
from world.running import NO_OP, START, forget_runs, run
from world.scenario import TaskText, tasks_of
from world.scenarios import SCENARIOS
from world.writing import write_task

SPLITS = ("train", "dev", "test_normal", "test_challenge")


def make(root: str) -> dict[str, Any]:
    """Write ``data`` into an empty root; gives the number of tasks.

    Raises:
        IdiomError, WorldError: a task is not as it must be.
    """
    data = os.path.join(root, "data")
    tasks = all_tasks()
    for task in tasks:
        check_solution(task.solution)
        check_solution(task.near_miss)
    os.makedirs(data)
    make_base(data)
    _write_splits(data, tasks)
    for task in tasks:
        write_task(data, task)
    forget_runs()
    return {"tasks": len(tasks)}


def all_tasks() -> list[TaskText]:
    """The tasks of all scenarios."""
    return [task for scenario in SCENARIOS for task in tasks_of(scenario)]


def solve(root: str, programs: list[str]) -> dict[str, Any]:
    """Run programs of every task and leave their outputs in experiments of the programs' names; nothing is graded.

    Gives what AppWorld printed, by program and task.
    """
    printed: dict[str, Any] = {}
    for program in programs:
        printed[program] = {}
        for task_id in _task_ids(root):
            with AppWorld(task_id=task_id, experiment_name=program, load_ground_truth=False) as world:
                printed[program][task_id] = world.execute(_program(root, task_id, program))
    return printed


def calls(root: str) -> dict[str, Any]:
    """What each solution calls and what an agent would see of it, with the documentation of what it calls."""
    told = {}
    for task_id in _task_ids(root):
        code = _program(root, task_id, "right")
        right = run(task_id, code + _documentation(code))
        told[task_id] = {"message": right.message, "calls": [[call.name, call.shown] for call in right.calls]}
    forget_runs()
    return told


def _documentation(code: str) -> str:
    """Code that reads the documentation of each API that a program names, but the supervisor's."""
    names = sorted(set(re.findall(r"apis\.(\w+)\.(\w+)\(", code)))
    lines = [
        f'apis.api_docs.show_api_doc(app_name="{app}", api_name="{function}")'
        for app, function in names
        if app != "supervisor"
    ]
    return "\n" + "\n".join(lines)


def _program(root: str, task_id: str, program: str) -> str:
    if program == "no_op":
        return NO_OP
    name = {"right": "compiled_solution.py", "near_miss": "near_miss.py"}[program]
    path = os.path.join(root, "data", "tasks", task_id, "ground_truth", name)
    with open(path, encoding="utf-8") as file:
        return file.read() + START


def _task_ids(root: str) -> list[str]:
    return sorted(os.listdir(os.path.join(root, "data", "tasks")))


def _write_splits(data: str, tasks: list[TaskText]) -> None:
    folder = os.path.join(data, "datasets")
    os.makedirs(folder)
    for split in SPLITS:
        ids = [task.task_id for task in tasks if task.scenario.split == split]
        with open(os.path.join(folder, f"{split}.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(ids) + "\n")
