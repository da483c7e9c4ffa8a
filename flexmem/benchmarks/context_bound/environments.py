"""The worlds of one worker, recorded or real, each leased with the policy that acts in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from flexmem.agents.agent_memory import step_messages
from flexmem.agents.context_bound.outcome import describe
from flexmem.agents.context_bound.policy import ContextBoundPolicy
from flexmem.agents.context_bound.profiles import PROFILES
from flexmem.agents.context_bound.variation import Variation
from flexmem.agents.environment import Observation, cut_observation
from flexmem.agents.loop import Episode
from flexmem.agents.react import TaskPrompt
from flexmem.benchmarks.agent_protocol import Environments, Grade, Place
from flexmem.benchmarks.context_bound.config import ContextBoundConfig
from flexmem.benchmarks.context_bound.recording import Recording
from flexmem.benchmarks.context_bound.recording_files import read_recording, recording_path
from flexmem.benchmarks.context_bound.replay import Replay
from flexmem.benchmarks.protocol import Instance, Question
from flexmem.history import Step as HistoryStep

_MOST_STEPS = 1_000


BEYOND_RECORDING = "beyond the recording"
"""Flag of an episode that did what no recording foresees: its verdict is no, what came after that is a guess."""


class _World(Protocol):
    async def act(self, action: str) -> Observation: ...

    async def verdict(self, episode: Episode) -> tuple[bool, tuple[str, ...]]:
        """Whether the task was carried out, and flags."""
        ...


@dataclass
class ContextBoundTask:
    """One episode's world and policy (`flexmem.benchmarks.agent_protocol.AgentTask`)."""

    recording: Recording
    world: _World
    acting: ContextBoundPolicy
    optimal: int

    @property
    def prompt(self) -> TaskPrompt:
        """The task's own words; nobody reads an instruction."""
        return TaskPrompt("", self.recording.plan.instruction)

    def policy(self) -> ContextBoundPolicy:
        """The rule that acts."""
        return self.acting

    async def act(self, action: str) -> Observation:
        """See `flexmem.agents.environment.Environment.act`."""
        return await self.world.act(action)

    async def grade(self, episode: Episode) -> Grade:
        """Whether the task was carried out, and what was lost on the way."""
        success, flags = await self.world.verdict(episode)
        contexts = [step.context for step in episode.steps]
        outcome = describe(self.acting, self.recording.plan, contexts, [one.observation.text for one in episode.steps])
        steps = float(len(episode.steps))
        measures = {"optimal_steps": float(self.optimal), "steps_over_optimal": steps / self.optimal}
        return Grade({"completed": float(success)}, {**measures, **outcome.measures()}, flags)


class ContextBoundEnvironments:
    """See `flexmem.benchmarks.agent_protocol.Environments`; ``real`` are AppWorld's, None where recordings answer."""

    def __init__(self, config: ContextBoundConfig, folder: Path, real: Environments | None) -> None:
        self._config = config
        self._folder = folder
        self._real = real

    @asynccontextmanager
    async def lease(self, instance: Instance, question: Question, place: Place) -> AsyncIterator[ContextBoundTask]:
        """See `flexmem.benchmarks.agent_protocol.Environments.lease`."""
        details = question.details
        task, seed, profile = str(details["task"]), int(details["seed"]), str(details["profile"])
        recording = read_recording(recording_path(self._folder, task, seed), str(details["recording"]))
        policy = ContextBoundPolicy(recording.plan, PROFILES[profile], Variation.draw(task, seed))
        optimal = optimal_steps(recording_path(self._folder, task, seed), str(details["recording"]), profile)
        if self._real is None:
            replayed = _Recorded(Replay(recording), self._config.observation_tokens)
            yield ContextBoundTask(recording, replayed, policy, optimal)
            return
        own = replace(place, arm=f"{place.arm}-{profile}-{seed}")  # outputs of a cell lie in one folder
        async with self._real.lease(instance, replace(question, question_id=task), own) as world:
            yield ContextBoundTask(recording, _Real(world), policy, optimal)

    async def close(self) -> None:
        """End AppWorld's servers."""
        if self._real is not None:
            await self._real.close()


@dataclass
class _Recorded:
    replay: Replay
    observation_tokens: int

    async def act(self, action: str) -> Observation:
        text = self.replay.execute(action)
        return Observation(cut_observation(text, self.observation_tokens), len(text), self.replay.done)

    async def verdict(self, episode: Episode) -> tuple[bool, tuple[str, ...]]:
        return self.replay.verdict(), () if self.replay.exact else (BEYOND_RECORDING,)


class _GradedTask(Protocol):
    async def act(self, action: str) -> Observation: ...

    async def grade(self, episode: Episode) -> Grade: ...


@dataclass
class _Real:
    world: _GradedTask

    async def act(self, action: str) -> Observation:
        return await self.world.act(action)

    async def verdict(self, episode: Episode) -> tuple[bool, tuple[str, ...]]:
        grade = await self.world.grade(episode)
        return grade.scores["task_goal"] == 1.0, grade.flags


@lru_cache(maxsize=4_096)
def optimal_steps(path: Path, digest: str, profile: str) -> int:
    """How many steps the policy takes with all of its steps in sight.

    Raises:
        DataError: see `read_recording`.
    """
    recording = read_recording(path, digest)
    return len(unbounded_trajectory(recording, profile))


def unbounded_trajectory(recording: Recording, profile: str) -> list[HistoryStep]:
    """The policy's steps in the recorded world, with all of them in sight."""
    plan, replay = recording.plan, Replay(recording)
    policy = ContextBoundPolicy(plan, PROFILES[profile], Variation.draw(plan.task, recording.seed))
    taken: list[HistoryStep] = []
    texts: list[str] = []
    while not replay.done and len(taken) < _MOST_STEPS:
        code = policy.choose("\n".join(texts), len(taken)).cell.code
        step = HistoryStep(len(taken) + 1, code, cut_observation(replay.execute(code)))
        taken.append(step)
        texts += [message.content for message in step_messages(step, "python")]
    return taken
