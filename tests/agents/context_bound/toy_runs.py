"""Episodes of the context-bound agent in the toy world, with any memory."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from flexmem.agents.agent_memory import AgentContext, AgentMemory
from flexmem.agents.context_bound.outcome import Outcome, describe
from flexmem.agents.context_bound.plan import Plan
from flexmem.agents.context_bound.policy import ContextBoundPolicy
from flexmem.agents.context_bound.profiles import PROFILES
from flexmem.agents.context_bound.variation import Variation
from flexmem.agents.environment import Observation, cut_observation
from flexmem.agents.loop import Episode, Limits, run_episode
from flexmem.memory.protocol import MemoryBuild, Query, Rendering
from flexmem.memory.registry import find_method
from flexmem.ports import IndexConfig, Services
from flexmem.retrieval.index import LocalIndex
from tests.agents.context_bound.toy_tasks import TASKS, plan_of
from tests.agents.context_bound.toy_world import Toy
from tests.agents.errands import WordVectors

EMBEDDER = WordVectors()
LIMIT = 60


@dataclass
class ToyEnvironment:
    """A toy world as the loop sees it."""

    world: Toy

    async def act(self, action: str) -> Observation:
        text = self.world.execute(action)
        return Observation(cut_observation(text), len(text), done=self.world.done)


@dataclass(frozen=True)
class Run:
    """An episode that ended."""

    episode: Episode
    world: Toy
    plan: Plan
    policy: ContextBoundPolicy
    memory: AgentMemory
    succeeded: bool
    outcome: Outcome

    @property
    def trajectory(self) -> list[tuple[str, str, str]]:
        """Thoughts, actions and outputs."""
        return [(one.decision.thought, one.decision.action, one.observation.text) for one in self.episode.steps]

    @property
    def contexts(self) -> list[AgentContext]:
        """What each decision saw."""
        return [one.context for one in self.episode.steps]


class Blind:
    """A memory that shows nothing, as if the recent window were empty too."""

    async def context(self) -> AgentContext:
        return AgentContext(None, (), 0)


def build_of(method: str, **options: object) -> MemoryBuild:
    """A method's build that calls no model."""

    def open_index(config: IndexConfig) -> LocalIndex:
        return LocalIndex(config, EMBEDDER)

    return find_method(method).configured(options).build(Services(EMBEDDER, open_index))


def run(
    task: str,
    seed: int,
    profile: str,
    *,
    budget: int | None = None,
    build: MemoryBuild | None = None,
    blind: bool = False,
) -> Run:
    """One episode; without a budget all steps are in sight."""
    plan, variation = plan_of(task, seed), Variation.draw(task, seed)
    policy = ContextBoundPolicy(plan, PROFILES[profile], variation)
    memory = AgentMemory(plan.instruction, budget, EMBEDDER, build, history=f"{task}/{seed}")
    if blind:
        memory.context = Blind().context  # type: ignore[method-assign]
    world, episode = Toy(), Episode()
    asyncio.run(run_episode(episode, memory, policy, ToyEnvironment(world), Limits(steps=LIMIT)))
    steps = episode.steps
    outcome = describe(policy, plan, [one.context for one in steps], [one.observation.text for one in steps])
    return Run(episode, world, plan, policy, memory, TASKS[task].succeeded(world), outcome)


_OTHER_LABELS = {
    r"^### u(\d+) — (.*)$": r"<unit number=\1 of=\"\2\">",
    r"^\[u([^\]]*)\] ": r"* note on \1 * ",
    r"^# (Timeline|Details)$": r"=== \1 ===",
    r"^Step (\d+)$": r"(\1)",
    r"^Thought: ": "I thought: ",
    r"^Action:$": "I did:",
    r"^Output:$": "It said:",
    r"^\[\.\.\.\]$": "(something is left out here)",
    r"^\[output omitted: (\d+) lines\]$": r"(\1 lines were here)",
}


@dataclass
class Relabelled:
    """A build whose renderings have other headings and labels around the same texts."""

    inner: MemoryBuild

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def view(self) -> RelabelledView:
        return RelabelledView(self.inner)


class RelabelledView:
    """Reads as the view of the build does, and puts other lines in the places of its own."""

    def __init__(self, build: MemoryBuild) -> None:
        self._view = build.view()

    async def render(self, query: Query, budget: object) -> Rendering:
        rendering = await self._view.render(query, budget)  # type: ignore[arg-type]
        text = rendering.text
        for own, other in _OTHER_LABELS.items():
            text = re.sub(own, other, text, flags=re.M)
        return Rendering(text, rendering.tokens, ())
