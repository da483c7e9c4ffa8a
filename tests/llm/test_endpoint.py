"""The scripted endpoint's own script of faults."""

from __future__ import annotations

import asyncio
from collections import Counter

from flexmem.llm.config import ModelConfig
from flexmem.llm.openai_client import OpenAIChat
from flexmem.ports import ChatReply, ChatRequest, Message

from .endpoint import ChatEndpoint, FaultScript, cut_short, raw, replying, reset, status

FAULTS = {
    "429": (0.3, status(429, retry_after_ms="1")),
    "500": (0.2, status(500)),
    "reset": (0.1, reset),
    "cut short": (0.1, cut_short),
    "garbage": (0.1, raw("{")),
}


def storm(seed: int, order: range, *, most: int = 3) -> tuple[dict[str, ChatReply], ChatEndpoint, FaultScript]:
    """Ask prompts in some order, all at once."""
    script = FaultScript(seed, FAULTS, replying(lambda call: f"re: {call.prompt}"), most=most)

    async def no_wait(_: float) -> None:
        await asyncio.sleep(0)

    async def ask(endpoint: ChatEndpoint) -> dict[str, ChatReply]:
        model = OpenAIChat(ModelConfig(model="local", base_url=endpoint.url, attempts=10), sleep=no_wait)
        prompts = [f"prompt {number}" for number in order]
        calls = [model.complete(ChatRequest((Message("user", prompt),), "reader", 9)) for prompt in prompts]
        replies = await asyncio.gather(*calls)
        await model.aclose()
        return dict(zip(prompts, replies, strict=True))

    with ChatEndpoint([script]) as endpoint:
        return asyncio.run(ask(endpoint)), endpoint, script


def outcomes(endpoint: ChatEndpoint) -> dict[str, list[str]]:
    """What became of each prompt, in order."""
    found: dict[str, list[str]] = {}
    for call in endpoint.chats:
        found.setdefault(call.prompt, []).append(call.outcome)
    return found


def test_a_storm_is_the_same_in_any_order_and_another_with_another_seed() -> None:
    replies, endpoint, script = storm(1, range(40))
    assert all(reply.text == f"re: {prompt}" for prompt, reply in replies.items())
    backwards = outcomes(storm(1, range(39, -1, -1))[1])
    assert outcomes(endpoint) == backwards
    assert outcomes(endpoint) != outcomes(storm(2, range(40))[1])
    assert set(script.drawn) == {*FAULTS, "reply"}


def test_the_log_and_the_record_of_attempts_agree() -> None:
    replies, endpoint, script = storm(3, range(40))
    logged = outcomes(endpoint)
    assert {prompt: len(reply.trail) for prompt, reply in replies.items()} == {
        prompt: len(met) for prompt, met in logged.items()
    }
    assert Counter(name for met in logged.values() for name in met) == script.drawn
    assert [call.number for call in endpoint.log] == list(range(1, len(endpoint.log) + 1))


def test_a_prompt_meets_no_more_faults_than_allowed() -> None:
    always = FaultScript(1, {"500": (1.0, status(500))}, replying(lambda call: "at last"), most=2)
    with ChatEndpoint([always]) as endpoint:

        async def ask() -> ChatReply:
            model = OpenAIChat(ModelConfig(model="local", base_url=endpoint.url), uniform=lambda: 0.0)
            reply = await model.complete(ChatRequest((Message("user", "x"),), "reader", 9))
            await model.aclose()
            return reply

        assert asyncio.run(ask()).attempts == 3
    assert [call.outcome for call in endpoint.chats] == ["500", "500", "reply"]
