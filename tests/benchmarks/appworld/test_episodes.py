"""Whole episodes: an agent that acts in AppWorld's containers, its rows, and AppWorld's own word on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.appworld.data import SPLITS, task_ids
from flexmem.benchmarks.appworld.grading import grade
from flexmem.benchmarks.appworld.scores import percent, sgc, tgc
from flexmem.llm.scripted import RULES
from flexmem.ports import ChatRequest
from flexmem.sweep.plan import make_plan
from tests.sweep.harness import InProcess, rows, sweep

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_500)]

PROGRAMS = {
    "right": "solution.py",
    "near_miss": "near_miss.py",
    "no_op": None,
}


def agent(world: Path, program: str) -> Callable[[ChatRequest], str]:
    """Looks around for a step, then runs a whole program of the task that it is told of."""
    tasks = {}
    for folder in sorted((world / "data" / "tasks").iterdir()):
        name = PROGRAMS[program]
        code = "apis.supervisor.complete_task()"
        if name is not None:
            code = (folder / "ground_truth" / name).read_text("utf-8") + "\nsolution(apis, requester)"
        instruction = _json(folder / "specs.json")["instruction"]
        tasks[instruction] = code

    def reply(request: ChatRequest) -> str:
        if len(request.messages) == 2:
            return "I look around.\n```python\nprint(apis.supervisor.show_profile())\n```"
        instruction = request.messages[1].content.partition("Task: ")[2]
        return f"All at once.\n```python\n{tasks[instruction]}\n```"

    return reply


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_containers_tell_right_from_wrong_for_every_task(
    program: str, world_root: Path, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RULES, "echo", agent(world_root, program))
    config = sweep(
        benchmarks=[{"name": "appworld", "options": {"world": "own", "root": str(world_root), "splits": list(SPLITS)}}],
        arms=["no_memory"],
        budgets=[4_000],
        models={"agent": {"model": {"provider": "scripted", "model": "echo"}}},
        engine={"environments": 2, "environment": {"isolation": "docker", "image": image}},
    )
    plan = make_plan(config)
    process = InProcess(plan, tmp_path)
    counts = process.run()
    assert counts == {"ok": 24}
    episodes = rows(tmp_path, "episodes")
    wanted = 1.0 if program == "right" else 0.0
    assert {row["question"]: row["score"] for row in episodes if row["score"] != wanted} == {}
    assert {(row["steps"], row["ended"]) for row in episodes} == {(2, "completed")}
    if program != "no_op":
        assert {tuple(row["flags"]) for row in episodes} == {("uses the requester",)}
    # AppWorld's own summary of the outputs, which lie in its layout, is ours.
    for split in SPLITS:
        experiment = f"no_mem-4000-r0_{split}"
        outputs = tmp_path / "appworld" / "experiments" / "outputs"
        graded = grade(world_root, experiment, task_ids(world_root, split), outputs)
        assert graded.aggregate is not None
        of_split = {row["question"]: bool(row["score"]) for row in episodes if row["question"] in graded.grades}
        assert len(of_split) == 6
        assert (graded.aggregate.tgc, graded.aggregate.sgc) == (percent(tgc(of_split)), percent(sgc(of_split)))
