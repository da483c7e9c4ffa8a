"""AppWorld's environments of one worker: leased for one episode each, graded by AppWorld when it ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from flexmem.agents.environment import Observation, cut_observation
from flexmem.agents.loop import Episode
from flexmem.agents.policy import Policy
from flexmem.agents.react import TaskPrompt
from flexmem.benchmarks.agent_protocol import Grade, Place
from flexmem.benchmarks.appworld.config import AppWorldConfig
from flexmem.benchmarks.appworld.environment import AppWorldEnvironment, open_pool
from flexmem.benchmarks.appworld.flags import flags_of
from flexmem.benchmarks.appworld.grading import Grader
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.appworld.places import appworld_cache
from flexmem.benchmarks.appworld.prompts import task_prompt
from flexmem.benchmarks.appworld.server import AppWorldServer
from flexmem.benchmarks.appworld.settings import EnvironmentSettings
from flexmem.benchmarks.appworld.setup_loops import count_setup_loops
from flexmem.benchmarks.protocol import Instance, Question
from flexmem.sandbox.errors import ImageMissingError
from flexmem.sandbox.labels import run_name
from flexmem.sandbox.pool import SandboxPool
from flexmem.sandbox.runtime import DockerRuntime
from flexmem.sandbox.sweep import sweep


class AppWorldTask:
    """One task in its leased environment (`flexmem.benchmarks.agent_protocol.AgentTask`)."""

    def __init__(
        self, environment: AppWorldEnvironment, prompt: TaskPrompt, config: AppWorldConfig, grader: Grader, task_id: str
    ) -> None:
        self.prompt = prompt
        self._environment = environment
        self._config = config
        self._grader = grader
        self._task_id = task_id

    def policy(self) -> Policy | None:
        """The sweep's agent acts."""
        return None

    async def act(self, action: str) -> Observation:
        """Run code (`flexmem.agents.environment.Environment.act`)."""
        text = await self._environment.execute(action, self._config.action_s)
        done = await self._environment.completed()
        return Observation(cut_observation(text, self._config.observation_tokens), len(text), done)

    async def grade(self, episode: Episode) -> Grade:
        """Save what the episode has left in the world, and have AppWorld's evaluator look at it."""
        folder = await self._environment.finish()
        grade = await self._grader.grade(folder, self._task_id)
        actions = [step.decision.action for step in episode.steps if step.decision.tool is None]
        loops, repeats = count_setup_loops(actions)
        return Grade(
            {"task_goal": float(grade.success)},
            {
                "tests_passed": float(len(grade.passes)),
                "tests": float(grade.num_tests),
                "setup_loops": float(loops),
                "setup_repeats": float(repeats),
            },
            tuple(sorted({flag for action in actions for flag in flags_of(action)})),
        )


class AppWorldEnvironments:
    """See `flexmem.benchmarks.agent_protocol.Environments`. Servers are started at the first lease."""

    def __init__(
        self,
        config: AppWorldConfig,
        settings: EnvironmentSettings,
        *,
        root: Path,
        out: Path,
        splits: Mapping[str, str],
    ) -> None:
        """``splits``: of each task. ``out``: the run's folder; outputs lie below in AppWorld's own layout."""
        if settings.isolation == "process" and settings.python is None:
            settings = settings.model_copy(update={"python": Installation.find().python})
        self._config = config
        self._settings = settings
        self._root, self._out = root, out
        self._splits = splits
        self._outputs = out / "appworld" / "experiments" / "outputs"
        self._grader = Grader(root)
        self._pool: SandboxPool[AppWorldServer] | None = None
        self._runtime: DockerRuntime | None = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def lease(self, instance: Instance, question: Question, place: Place) -> AsyncIterator[AppWorldTask]:
        """See `flexmem.benchmarks.agent_protocol.Environments.lease`."""
        pool = await self._open()
        # A server outlives its leases: it must be young enough for a whole one.
        longest = self._config.seconds or self._settings.lifetime_s / 2
        async with pool.lease(place.key, longest) as server:
            experiment = experiment_name(place, self._splits[question.question_id])
            environment = AppWorldEnvironment(server, experiment=experiment, outputs=self._outputs)
            start = await environment.start(question.question_id)
            yield AppWorldTask(environment, task_prompt(start), self._config, self._grader, question.question_id)

    async def close(self) -> None:
        """End all servers, and the grader."""
        await self._grader.close()
        if self._pool is not None:
            try:
                await self._pool.close()
            finally:
                self._pool = None
                if self._runtime is not None:
                    self._runtime.daemon.close()

    async def _open(self) -> SandboxPool[AppWorldServer]:
        async with self._opening:
            if self._pool is None:
                if self._settings.isolation == "docker":
                    self._runtime = DockerRuntime()
                await sweep(self._runtime)  # what killed workers have left
                self._pool = await asyncio.to_thread(
                    open_pool,
                    self._settings,
                    root=self._root,
                    cache=appworld_cache(),
                    run=run_name(self._out),
                    runtime=self._runtime,
                )
        return self._pool


async def _check_image(image: str) -> None:
    runtime = DockerRuntime()
    try:
        labels = await runtime.image_labels(image)
    finally:
        runtime.daemon.close()
    if labels is None:
        raise ImageMissingError(
            f"image {image}: is not on this machine. `flexmem appworld image` builds it (containers/README.md)."
        )


def check_isolation(settings: EnvironmentSettings) -> None:
    """Look for what environments run in.

    Raises:
        SandboxError: no Docker daemon, or no image.
        InstallationError: child processes, and no AppWorld on this machine.
    """
    if settings.isolation == "docker":
        asyncio.run(_check_image(settings.image))
    elif settings.python is None:
        Installation.find()


def experiment_name(place: Place, split: str) -> str:
    """Name of the folder of a cell's outputs; AppWorld's packer wants it to end with the split, and takes a path that
    says "memory" for a database in memory.
    """
    budget = "unlimited" if place.budget is None else str(place.budget)
    return re.sub(r"[^\w.-]", "-", f"{place.arm}-{budget}-r{place.repeat}_{split}").replace("memory", "mem")
