"""The agent's loop, the same for every method, policy and environment: context, decision, action, observation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Literal, cast

from flexmem.agents.agent_memory import AgentContext, AgentMemory
from flexmem.agents.environment import Environment, Observation
from flexmem.agents.policy import Decision, Policy
from flexmem.history import Step
from flexmem.memory.tools import Tool, ToolView
from flexmem.sandbox.errors import EpisodeEndedError

Ended = Literal["completed", "steps", "seconds", "usd", "sandbox"]
"""Why an episode ended: the agent closed its task, a limit was reached, or its sandbox's limits ended it."""
During = Callable[[str], AbstractContextManager[None]]
"""Marks what the work waits for: ``rendering``, ``agent`` or ``environment``."""


@dataclass(frozen=True)
class Limits:
    """An episode's own limits. ``usd`` is of its agent's calls; where a price is unknown it can't be kept."""

    steps: int = 60
    seconds: float | None = None
    usd: float | None = None


@dataclass(frozen=True)
class StepTaken:
    """One step as it went. ``number`` counts from 1; seconds are the harness's own time for the context, the
    decision's, and the environment's.
    """

    number: int
    decision: Decision
    observation: Observation
    context: AgentContext
    context_s: float
    decide_s: float
    act_s: float


@dataclass
class Episode:
    """What has happened so far; complete up to where an exception left it."""

    steps: list[StepTaken] = field(default_factory=list)
    ended: Ended | None = None
    failure: Literal["limit", "agent"] | None = None
    reason: str = ""

    def end(self, how: Ended, failure: Literal["limit", "agent"], reason: str) -> None:
        """Close it before its task was."""
        self.ended, self.failure, self.reason = how, failure, reason


async def run_episode(
    episode: Episode,
    memory: AgentMemory,
    policy: Policy,
    environment: Environment,
    limits: Limits,
    spent_usd: Callable[[Episode], float | None] = lambda episode: None,
    during: During = lambda stage: nullcontext(),
) -> None:
    """Run until the task is closed or a limit is reached; ``episode`` holds every step, also when this raises.

    Raises:
        ModelError: the policy's model can't answer.
        SandboxError: the environment failed for reasons outside the episode.
        Exception: whatever the memory method raises.
    """
    start = time.perf_counter()
    tools = _tools(memory)
    for number in range(1, limits.steps + 1):
        if limits.seconds is not None and time.perf_counter() - start > limits.seconds:
            episode.end("seconds", "limit", f"its {limits.seconds:g} s are over after {number - 1} steps")
            return
        spent = spent_usd(episode) if limits.usd is not None else None
        if limits.usd is not None and spent is not None and spent >= limits.usd:
            episode.end("usd", "limit", f"its {limits.usd:g} USD are spent after {number - 1} steps")
            return
        began = time.perf_counter()
        with during("rendering"):
            context = await memory.context()
        rendered = time.perf_counter()
        with during("agent"):
            decision = await policy.decide(context, tools)
        decided = time.perf_counter()
        with during("environment"):
            try:
                observation = await _carry_out(decision, environment, tools)
            except EpisodeEndedError as error:
                observation = Observation(f"[{error}]", 0)
                episode.end("sandbox", error.failure, str(error))
        acted = time.perf_counter()
        memory.append(Step(number, decision.action, observation.text, decision.thought))
        episode.steps.append(
            StepTaken(number, decision, observation, context, rendered - began, decided - rendered, acted - decided)
        )
        if episode.ended is not None:
            return
        if observation.done:
            episode.ended = "completed"
            return
    episode.end("steps", "limit", f"the task was not closed within {limits.steps} steps")


async def _carry_out(decision: Decision, environment: Environment, tools: Sequence[Tool]) -> Observation:
    if decision.tool is not None:
        tool = next(tool for tool in tools if tool.name == decision.tool)
        said = await tool.call(decision.arguments or {})
        return Observation(said, len(said))
    if not decision.action:
        return Observation(decision.problem, len(decision.problem))
    return await environment.act(decision.action)


def _tools(memory: AgentMemory) -> Sequence[Tool]:
    return cast(ToolView, memory.view).tools() if hasattr(memory.view, "tools") else ()
