"""The scripted model: rules, scripts, limits, latency."""

from __future__ import annotations

import asyncio
import json
import statistics
from dataclasses import replace
from typing import Any

import pytest

from flexmem import tokens
from flexmem.llm.config import ModelConfig, make_model
from flexmem.llm.errors import ModelConfigurationError, RateLimited, Refused
from flexmem.llm.prices import TokenPrice
from flexmem.llm.scripted import RULES, ScriptedModel
from flexmem.memory.prompts import template
from flexmem.ports import Attempt, ChatModel, ChatReply, ChatRequest, Message, Role


def request(text: str, role: Role = "reader", max_tokens: int = 1_000) -> ChatRequest:
    return ChatRequest((Message("system", "be brief"), Message("user", text)), role, max_tokens)


def ask(model: ChatModel, text: str, role: Role = "reader", max_tokens: int = 1_000) -> ChatReply:
    return asyncio.run(model.complete(request(text, role, max_tokens)))


def test_calls_are_counted_by_role_and_kept() -> None:
    model = ScriptedModel("echo")
    assert isinstance(model, ChatModel)
    assert ask(model, "one").text == "one"
    ask(model, "two", "memory")
    ask(model, "three", "memory")
    assert model.calls == {"reader": 1, "memory": 2}
    assert [kept.messages[-1].content for kept in model.requests] == ["one", "two", "three"]


def test_usage_counts_tokens() -> None:
    usage = ask(ScriptedModel("first_sentence"), "Where is it? In Paris.").usage
    assert usage.input == tokens.count("be brief") + tokens.count("Where is it? In Paris.")
    assert usage.output == tokens.count("Where is it?")


def test_a_reply_over_the_limit_is_cut() -> None:
    reply = ask(ScriptedModel("echo"), "one two three four five six seven eight", max_tokens=4)
    assert reply.finish == "length"
    assert tokens.count(reply.text) <= 4
    assert "one two three four five six seven eight".startswith(reply.text)
    assert ask(ScriptedModel("echo"), "one", max_tokens=4).finish == "stop"


def test_a_script_is_used_up_in_order() -> None:
    model = ScriptedModel(["a", RateLimited("slow"), "b"])
    assert ask(model, "x").text == "a"
    with pytest.raises(RateLimited):
        ask(model, "x")
    assert ask(model, "x").text == "b"
    with pytest.raises(ModelConfigurationError, match="3 replies and none is left"):
        ask(model, "x")


def test_a_function_of_the_request() -> None:
    model = ScriptedModel(lambda request: f"{request.role}!")
    assert ask(model, "x", "judge").text == "judge!"


def record_of(prompt: str) -> dict[str, Any]:
    asked = replace(request(prompt, "memory"), schema={"type": "object"})
    record: dict[str, Any] = json.loads(asyncio.run(ScriptedModel("json_record").complete(asked)).text)
    return record


@pytest.mark.parametrize("kind", ["agent", "reader"])
def test_json_record_answers_the_record_writers_prompts(kind: str) -> None:
    text = "On 2024-05-01 Maria Lopez opened /srv/data/log.txt about sailing, sailing! " * 20
    values = {"words": 80, "keywords": 8, "entities": 12, "previous": "(none)", "unit": text}
    record = record_of(template(f"flexa_record_{kind}").substitute(values))
    assert list(record) == ["record", "keywords", "entities"]
    assert record["record"].startswith("On 2024-05-01 Maria")
    assert len(record["record"].split()) == 80
    assert record["keywords"][0] == "sailing"
    assert len(record["keywords"]) <= 8
    assert {"2024-05-01", "Maria Lopez", "/srv/data/log.txt"} <= set(record["entities"])
    assert len(record["entities"]) <= 12


def test_json_record_of_another_prompt() -> None:
    assert record_of("hello there")["record"] == "hello there"


def test_json_record_merges_in_plain_text() -> None:
    prompt = template("flexa_merge").substitute(words=120, records="[1] Ada left.\n[2] Bob came.")
    assert ask(ScriptedModel("json_record"), prompt).text == "[1] Ada left. [2] Bob came."


def test_garbage_is_deterministic_and_no_json() -> None:
    first, again = (ask(ScriptedModel("garbage"), "x").text for _ in range(2))
    assert first == again != ask(ScriptedModel("garbage"), "y").text
    with pytest.raises(json.JSONDecodeError):
        json.loads(first)


def test_refuse() -> None:
    model = ScriptedModel("refuse")
    with pytest.raises(Refused):
        ask(model, "x")
    assert model.calls["reader"] == 1


def test_latency_is_seeded_and_independent_of_order() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def latencies(seed: int, order: range) -> list[float]:
        model = ScriptedModel("echo", latency_s=2.0, seed=seed, sleep=sleep)
        drawn = {number: ask(model, str(number)).latency_s for number in order}
        return [drawn[number] for number in sorted(drawn)]

    one = latencies(1, range(200))
    assert slept == one
    assert one == latencies(1, range(199, -1, -1))
    assert one != latencies(2, range(200))
    assert 1.5 < statistics.median(one) < 2.5


def test_describe_tells_scripts_apart_and_not_latency() -> None:
    assert ScriptedModel("echo").describe() == {"provider": "scripted", "model": "echo", "rule": "echo"}
    assert ScriptedModel("echo").describe() == ScriptedModel("echo", latency_s=1.0).describe()
    assert ScriptedModel(["a"]).describe() == ScriptedModel(["a"]).describe()
    assert ScriptedModel(["a"]).describe() != ScriptedModel(["b"]).describe()
    assert ScriptedModel(request).describe()["rule"].endswith(".request")  # type: ignore[arg-type]


def test_a_reply_costs_nothing_unless_a_price_is_made_up() -> None:
    free = ScriptedModel("first_sentence", wall=lambda: 7.0)
    reply = ask(free, "Where is it? In Paris.")
    assert reply.trail == (Attempt(1, 7.0, 0.0, "reply", None, reply.usage, 0.0),)
    assert free.most_usd(request("x")) == 0.0
    price = TokenPrice(input=1_000.0, output=10_000.0)
    priced = ask(ScriptedModel("first_sentence", price=price), "Where is it? In Paris.")
    assert reply.usage.input is not None
    assert reply.usage.output is not None
    assert priced.trail[0].usd == pytest.approx(reply.usage.input * 0.001 + reply.usage.output * 0.01)
    most = ScriptedModel("first_sentence", price=price).most_usd(request("Where is it? In Paris.", max_tokens=50))
    assert most == pytest.approx(reply.usage.input * 0.001 + 50 * 0.01)


def test_unknown_rule() -> None:
    with pytest.raises(ModelConfigurationError, match="known: echo, first_sentence, garbage, json_record, refuse"):
        ScriptedModel("no such rule")


@pytest.mark.parametrize("rule", sorted(set(RULES) - {"refuse"}))
def test_by_configuration(rule: str) -> None:
    model = make_model(ModelConfig(provider="scripted", model=rule))
    assert model.name == rule
    reply, other = ask(model, "Hello. You."), ask(ScriptedModel(rule), "Hello. You.")
    assert replace(reply, trail=()) == replace(other, trail=())
