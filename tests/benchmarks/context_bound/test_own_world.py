"""The own world's tasks in AppWorld: each is cut, recorded, and carried out with all in sight, and what is recorded is
what is real. Recordings are made once and kept in the cache, as the benchmark keeps them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flexmem.agents.agent_memory import AgentMemory
from flexmem.agents.context_bound.profiles import PROFILES
from flexmem.agents.loop import Episode, run_episode
from flexmem.benchmarks.agent_protocol import Grade, Place
from flexmem.benchmarks.context_bound.benchmark import ContextBoundBenchmark
from flexmem.benchmarks.context_bound.config import ContextBoundConfig
from flexmem.benchmarks.context_bound.environments import BEYOND_RECORDING, ContextBoundTask, unbounded_trajectory
from flexmem.benchmarks.context_bound.recording_files import read_recording, recording_path
from flexmem.benchmarks.protocol import Question
from tests.agents.context_bound.toy_runs import EMBEDDER, build_of
from tests.benchmarks.appworld.installed import demand_installation, demand_world

SCENARIOS = ("own1a2b", "own2c3d", "own3e4f", "own4a5b", "own5c6d", "own6e7f", "own7a8b", "own8c9d")
METHODS = {"truncation": {}, "observation_masking": {}, "flexa_unit": {"writer": "rule"}}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(
        not os.environ.get("FLEXMEM_ALL_TASKS"),
        reason="records every task of the own world, which takes some ten minutes: set FLEXMEM_ALL_TASKS=1",
    ),
]


def benchmark(scenario: str, **options: Any) -> ContextBoundBenchmark:
    """The benchmark over a scenario's three tasks, recorded if need be."""
    demand_world(demand_installation())
    tasks = tuple(f"{scenario}_{number}" for number in (1, 2, 3))
    return ContextBoundBenchmark(ContextBoundConfig(tasks=tasks, **options))


@asynccontextmanager
async def leased(
    made: ContextBoundBenchmark, question: Question, settings: dict[str, Any], out: Path
) -> AsyncIterator[ContextBoundTask]:
    instance = next(one for one in made.instances() if question in one.questions)
    environments = made.environments(settings, out, 1)
    try:
        async with environments.lease(instance, question, Place("arm", 4_000, 0, "key")) as task:
            yield task
    finally:
        await environments.close()
        await asyncio.sleep(0.2)  # the pipes of a killed server close in the loop's next turns


async def acted(task: ContextBoundTask, budget: int | None, method: str) -> tuple[Episode, Grade]:
    """An episode with a memory, and its grade."""
    build = build_of(method, **METHODS[method]) if budget is not None else None
    memory = AgentMemory(task.prompt.task, budget, EMBEDDER, build, history="h")
    episode = Episode()
    await run_episode(episode, memory, task.policy(), task, ContextBoundBenchmark().limits)
    return episode, await task.grade(episode)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_with_all_in_sight_every_task_is_done_in_the_fewest_steps(scenario: str) -> None:
    made = benchmark(scenario)
    folder = made.environments({}, Path(), 1)._folder
    for instance in made.instances():
        for question in instance.questions:
            digest = str(question.details["recording"])
            recording = read_recording(recording_path(folder, instance.instance_id, 0), digest)
            taken = unbounded_trajectory(recording, str(question.details["profile"]))
            codes = [step.action for step in taken]
            assert len(set(codes)) == len(codes) <= made.limits.steps
            assert all("Execution failed" not in step.output for step in taken)
            assert len(codes) >= len(recording.plan.closure) + len({api[:2] for api in recording.plan.apis})


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_recorded_world_is_the_real_one_byte_for_byte(scenario: str, tmp_path: Path) -> None:
    python = str(demand_installation().python)
    recorded, real = benchmark(scenario), benchmark(scenario, world="real")
    settings = {"isolation": "process", "python": python}
    profiles = {1: ("P1", None, ""), 2: ("P5", 2_500, "truncation"), 3: ("P3", 4_000, "flexa_unit")}

    async def run(made: ContextBoundBenchmark, question: Question, budget: int | None, method: str) -> Any:
        async with leased(made, question, settings if made is real else {}, tmp_path / question.question_id) as task:
            episode, grade = await acted(task, budget, method)
        return [(one.decision.thought, one.decision.action, one.observation.text) for one in episode.steps], grade

    for number, (profile, budget, method) in profiles.items():
        wanted = f"{scenario}_{number}/{profile}/0"
        pair = []
        for made in (recorded, real):
            (question,) = [q for one in made.instances() for q in one.questions if q.question_id == wanted]
            pair.append(asyncio.run(run(made, question, budget, method)))
        (replayed, replayed_grade), (trajectory, grade) = pair
        if BEYOND_RECORDING not in replayed_grade.flags:
            assert replayed == trajectory
            assert dict(replayed_grade.measures) == dict(grade.measures)
            assert replayed_grade.scores == grade.scores
        else:
            assert replayed_grade.scores == {"completed": 0.0}
        if budget is None:
            assert grade.scores == {"completed": 1.0}
            assert set(PROFILES) == {question.question_type for question in recorded.instances()[0].questions}
