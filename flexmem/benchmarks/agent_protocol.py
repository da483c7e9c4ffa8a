"""What a benchmark of agent tasks gives the harness beside instances: environments to act in, and grades.

Its instances have no sessions: an instance is what tasks are clustered by in paired tests, its questions are the tasks,
``text`` the task's words and ``details`` all that changes how an episode goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeGuard

from flexmem.agents.environment import Environment
from flexmem.agents.loop import Episode, Limits
from flexmem.agents.policy import Policy
from flexmem.agents.react import TaskPrompt
from flexmem.benchmarks.protocol import Benchmark, Instance, Question
from flexmem.errors import FlexmemError


class GradingError(FlexmemError):
    """What an episode has left could not be graded, for a reason outside it: it is run again."""

    failure: ClassVar[Literal["infrastructure"]] = "infrastructure"


@dataclass(frozen=True)
class Grade:
    """How an episode was graded: ``scores`` in [0, 1] by metric, ``measures`` other numbers by name, ``flags`` what a
    reader of the result must know of it.
    """

    scores: Mapping[str, float]
    measures: Mapping[str, float] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """Where an episode stands: its cell, by arm, budget and repeat, and its key."""

    arm: str
    budget: int | None
    repeat: int
    key: str


class AgentTask(Environment, Protocol):
    """One task's environment, leased for one episode."""

    @property
    def prompt(self) -> TaskPrompt: ...

    def policy(self) -> Policy | None:
        """Who acts; None: the sweep's agent model."""
        ...

    async def grade(self, episode: Episode) -> Grade:
        """End the episode and grade it.

        Raises:
            SandboxError, EpisodeEndedError: see `Environment.act`.
        """
        ...


class Environments(Protocol):
    """The environments of one worker."""

    def lease(self, instance: Instance, question: Question, place: Place) -> AbstractAsyncContextManager[AgentTask]:
        """An environment for one episode.

        Raises:
            SandboxError: none can be started.
        """
        ...

    async def close(self) -> None:
        """End all that was started."""
        ...


class AgentBenchmark(Benchmark, Protocol):
    """A benchmark of agent tasks."""

    @property
    def language(self) -> str:
        """Of the actions' code fence."""
        ...

    @property
    def limits(self) -> Limits: ...

    @property
    def by_rule(self) -> bool:
        """Whether its own policy acts, and no model."""
        ...

    def environments(self, settings: Mapping[str, Any], out: Path, servers: int) -> Environments:
        """Make the environments of one worker, ``servers`` of them at a time; starts nothing.

        Args:
            settings: ``engine.environment`` of the sweep.
            out: the run's folder, which outputs go below.
        """
        ...

    def check_environment(self, settings: Mapping[str, Any]) -> None:
        """Look whether environments can be had on this machine, before anything is paid.

        Raises:
            FlexmemError: they can't; the message says what is missing and what to do.
        """
        ...


def is_agent_benchmark(benchmark: Benchmark) -> TypeGuard[AgentBenchmark]:
    """Whether a benchmark's tasks are an agent's."""
    return hasattr(benchmark, "environments")
