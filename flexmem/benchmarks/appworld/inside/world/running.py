"""Running a program in a task's world, and what it called and got."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from typing import Any

from appworld import AppWorld
from appworld.common.path_store import path_store

START = "\nsolution(apis, requester)"
NO_OP = "apis.supervisor.complete_task()"
EXPERIMENT = "own-world"
"""Where runs are saved; removed afterwards."""

_SHORT = 100  # characters up to which AppWorld's `print` keeps a reply on one line


@dataclass(frozen=True)
class Call:
    """One API call: ``name`` is ``app.function``, ``shown`` what an agent sees of the reply when it prints it."""

    name: str
    shown: str


@dataclass(frozen=True)
class Run:
    """A finished program. ``requests`` are its calls as AppWorld logs them; ``message`` is what AppWorld printed."""

    message: str
    completed: bool
    requests: list[dict[str, Any]]
    calls: list[Call]
    success: bool
    passes: list[dict[str, Any]]
    failures: list[dict[str, Any]]


def run(task_id: str, code: str) -> Run:
    """Run a program in a fresh world of the task and evaluate it."""
    with AppWorld(task_id=task_id, experiment_name=EXPERIMENT, ground_truth_mode="full") as world:
        calls = _record(world.requester)
        message = world.execute(code)
        requests = [json.loads(json.dumps(request, default=str)) for request in world.requester.requests]
        completed = world.task_completed()
        tracker = world.evaluate()
        return Run(
            message=message,
            completed=completed,
            requests=requests,
            calls=calls,
            success=bool(tracker.success),
            passes=list(tracker.passes),
            failures=list(tracker.failures),
        )


def forget_runs() -> None:
    """Remove what runs have saved."""
    shutil.rmtree(os.path.join(path_store.experiment_outputs, EXPERIMENT), ignore_errors=True)


def _record(requester: Any) -> list[Call]:
    """Have a requester note the calls that it makes from now on."""
    calls: list[Call] = []
    request = requester.request

    def noting(_app_name: str, _api_name: str, **data: Any) -> Any:
        reply = request(_app_name=_app_name, _api_name=_api_name, **data)
        if data.get("track", True):
            calls.append(Call(f"{_app_name}.{_api_name}", shown(reply)))
        return reply

    requester.request = noting
    return calls


def shown(reply: Any) -> str:
    """A reply as AppWorld's ``print`` shows it."""
    if not isinstance(reply, list | tuple | dict):
        return str(reply)
    return json.dumps(reply, indent=1 if len(json.dumps(reply)) >= _SHORT else None)
