"""The loop: steps until the task is closed or a limit is reached."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from flexmem import tokens
from flexmem.agents.agent_memory import AgentMemory
from flexmem.agents.environment import OBSERVATION_TOKENS, cut_observation
from flexmem.agents.loop import Episode, Limits, run_episode
from flexmem.agents.react import ReactPolicy
from flexmem.llm.errors import Transient
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.registry import find_method
from flexmem.ports import ChatRequest, IndexConfig, Services
from flexmem.retrieval.index import LocalIndex
from flexmem.sandbox.errors import SandboxDeadlineError, SandboxError
from tests.agents.errands import Shop, WordVectors

EMBEDDER = WordVectors()
LIMITS = Limits(steps=8)


def block(action: str) -> str:
    return f"Next.\n```shop\n{action}\n```"


def run(
    shop: Shop, replies: ScriptedModel, limits: Limits = LIMITS, method: str | None = None, **more: object
) -> Episode:
    made = None
    if method is not None:

        def open_index(config: IndexConfig) -> LocalIndex:
            return LocalIndex(config, EMBEDDER)

        made = find_method(method).configured({"writer": "rule"}).build(Services(EMBEDDER, open_index))
    memory = AgentMemory(shop.prompt.task, 1_000, EMBEDDER, made, history="h", language="shop")
    policy = ReactPolicy(replies, shop.prompt, "shop", max_tokens=100, effort=None)
    episode = Episode()
    asyncio.run(run_episode(episode, memory, policy, shop, limits, **more))  # type: ignore[arg-type]
    return episode


def test_an_episode_ends_when_the_task_is_closed() -> None:
    shop = Shop(2)
    episode = run(shop, ScriptedModel([block("look 1"), block("buy 2"), block("look 3")]))
    assert (episode.ended, episode.failure, shop.bought) == ("completed", None, 2)
    assert [step.number for step in episode.steps] == [1, 2]
    assert shop.acted == ["look 1", "buy 2"]
    # What the second call saw is what the first one brought.
    assert episode.steps[1].context.window[-1].content.startswith("Output:\n```\nshelf 1\n")


def test_an_episode_ends_at_its_step_limit() -> None:
    episode = run(Shop(2), ScriptedModel(lambda request: block("look 1")), Limits(steps=4))
    assert (episode.ended, episode.failure, len(episode.steps)) == ("steps", "limit", 4)
    assert "within 4 steps" in episode.reason


def test_a_reply_without_action_is_a_step_that_does_nothing() -> None:
    shop = Shop(2)
    episode = run(shop, ScriptedModel(["I wonder.", block("buy 2")]))
    assert shop.acted == ["buy 2"]
    assert len(episode.steps) == 2
    assert "No code block" in episode.steps[1].context.window[-1].content


def test_a_limit_of_the_sandbox_ends_the_episode_with_its_class() -> None:
    shop = Shop(2, failure=SandboxDeadlineError("it took 9 s"))
    episode = run(shop, ScriptedModel([block("look 1"), block("fail")]))
    assert (episode.ended, episode.failure, episode.reason) == ("sandbox", "limit", "it took 9 s")
    assert len(episode.steps) == 2


@pytest.mark.parametrize("error", [SandboxError("gone"), ValueError("the method's own")])
def test_a_failure_outside_the_episode_leaves_its_steps(error: Exception) -> None:
    shop = Shop(2, failure=error)
    episode = Episode()
    memory = AgentMemory("t", 1_000, EMBEDDER, None, history="h")
    policy = ReactPolicy(
        ScriptedModel([block("look 1"), block("fail")]), shop.prompt, "shop", max_tokens=100, effort=None
    )
    with pytest.raises(type(error)):
        asyncio.run(run_episode(episode, memory, policy, shop, Limits()))
    assert [step.decision.action for step in episode.steps] == ["look 1"]
    assert episode.ended is None


def test_a_model_that_fails_leaves_the_steps_before() -> None:
    episode = Episode()
    shop = Shop(2)
    model = ScriptedModel([block("look 1"), Transient("down", attempts=1)])
    memory = AgentMemory("t", 1_000, EMBEDDER, None, history="h")
    policy = ReactPolicy(model, shop.prompt, "shop", max_tokens=100, effort=None)
    with pytest.raises(Transient):
        asyncio.run(run_episode(episode, memory, policy, shop, Limits()))
    assert len(episode.steps) == 1


def test_a_limit_in_usd_and_in_seconds_stops_before_the_next_step() -> None:
    spending = itertools.count()
    episode = run(
        Shop(2),
        ScriptedModel(lambda request: block("look 1")),
        Limits(steps=8, usd=2.5),
        spent_usd=lambda episode: float(next(spending)),
    )
    assert (episode.ended, len(episode.steps)) == ("usd", 3)
    episode = run(Shop(2), ScriptedModel(lambda request: block("look 1")), Limits(steps=8, seconds=0.0))
    assert (episode.ended, episode.failure) == ("seconds", "limit")


def test_tools_of_the_memory_are_steps() -> None:
    def reply(request: ChatRequest) -> str:
        said = request.messages[-1].content
        if "core memory: " in said:
            return block("buy 2")
        return '{"tool": "core_append", "arguments": {"text": "shelf 2"}}'

    shop = Shop(2)
    model = ScriptedModel(reply)
    episode = run(shop, model, method="tool_memory")
    assert shop.acted == ["buy 2"]
    assert [step.decision.tool for step in episode.steps] == ["core_append", None]
    assert "- shelf 2" in model.requests[1].messages[2].content  # the core block, shown at once


def test_the_same_replies_give_the_same_contexts() -> None:
    def texts() -> list[str]:
        replies = ScriptedModel(lambda request: block(f"look {len(request.messages[-1].content) % 7}"))
        episode = run(Shop(2), replies, Limits(steps=7), method="flexa_unit")
        return [message.content for step in episode.steps for message in step.context.messages()]

    assert texts() == texts()


def test_an_observation_is_cut_once_to_head_and_tail() -> None:
    text = "".join(f"line {number}\n" for number in range(100_000))
    cut = cut_observation(text)
    assert tokens.count(cut) <= OBSERVATION_TOKENS
    assert cut.startswith("line 0\n")
    assert cut.endswith("line 99999\n")
    assert cut_observation("short") == "short"
