"""A reader that uses a memory's tools before it answers."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from flexmem.agents.tool_reader import TOOL_CALLS, ToolReading, answer_with_tools, tool_call
from flexmem.llm.errors import Refused, Transient
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.protocol import Budget
from flexmem.memory.tools import ToolView
from flexmem.ports import ChatRequest
from tests.memory.examples import chat, clerk, compass_query, wait, written

QUERY = compass_query("Where is the kettle?", "north")


@dataclass(frozen=True)
class Prompt:
    system: str = "Answer shortly."
    question: str = "Where is the kettle?"


def view() -> ToolView:
    build = written("tool_memory", chat(["red north"], ["blue east"]), model=clerk(("red", "blue")))
    found: ToolView = build.view()  # type: ignore[assignment]
    return found


def read(model: ScriptedModel, calls: int = TOOL_CALLS) -> ToolReading:
    return wait(
        answer_with_tools(model, Prompt(), view(), QUERY, Budget(400), max_tokens=100, effort="low", calls=calls)
    )


def using(tool: str, **arguments: object) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})


def test_an_answer_at_once_is_one_call() -> None:
    model = ScriptedModel(["On the stove."])
    found = read(model)
    assert (found.reply.text, found.log, len(found.renderings)) == ("On the stove.", (), 1)
    (request,) = model.requests
    assert (request.role, request.effort, request.max_tokens) == ("reader", "low", 100)
    asked = request.messages[-1].content
    assert asked.startswith("<memory>\n# Stored units\n")
    for part in (
        "Where is the kettle?",
        "You may use tools 5 times",
        "- memory_search: ",
        '"page": {"type": "integer"}',
    ):
        assert part in asked


def test_what_a_tool_changes_is_in_the_memory_of_the_next_call() -> None:
    model = ScriptedModel(
        [using("memory_expand", unit_id=1), "Let me see:\n" + using("core_append", text="x"), "East."]
    )
    found = read(model)
    assert found.reply.text == "East."
    assert found.log == (
        '1. memory_expand {"unit_id": 1} -> u01 is shown whole, as far as there is room',
        '2. core_append {"text": "x"} -> core memory: 1 of 2000 characters',
    )
    asked = [request.messages[-1].content for request in model.requests]
    assert ["### u01 — session 2\nAnn: blue east\n" in text for text in asked] == [False, True, True]
    assert [text.count("Tools used so far") for text in asked] == [0, 1, 1]
    assert "You may use tools 3 times" in asked[2]
    assert len(found.renderings) == 3
    assert found.reply.attempts == len(found.reply.trail) == 3
    assert found.reply.usage.input == sum(sent.usage.input or 0 for sent in found.reply.trail)


def test_after_the_last_tool_whatever_is_said_is_the_answer() -> None:
    model = ScriptedModel(lambda request: using("memory_fold", unit_id=0))
    found = read(model, calls=2)
    assert model.calls.total() == 3
    assert found.reply.text == using("memory_fold", unit_id=0)
    assert len(found.log) == 2
    assert "You have used all tools you may. Answer now." in model.requests[-1].messages[-1].content


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "{",
        "The kettle {red}",
        '{"tool": "rm"}',
        '{"name": "memory_fold"}',
        "[" * 3000,
        '{"a":' * 3000,
        '{"tool": ["x"]}',
    ],
)
def test_what_calls_no_tool_is_an_answer(reply: str) -> None:
    assert tool_call(reply, {tool.name: tool for tool in view().tools()}) is None


def test_arguments_that_are_no_object_are_the_tools_to_refuse() -> None:
    tools = {tool.name: tool for tool in view().tools()}
    assert tool_call('{"tool": "memory_fold", "arguments": 3}', tools) == ("memory_fold", {})
    assert wait(tools["memory_fold"].call({})) == "error: argument unit_id: Field required"


def test_a_refusal_after_paid_calls_carries_what_they_took() -> None:
    model = ScriptedModel([using("memory_expand", unit_id=1), Refused("no")])
    with pytest.raises(Refused) as raised:
        read(model)
    assert len(raised.value.trail) == 1
    assert raised.value.usage is not None
    assert raised.value.usage.input == raised.value.trail[0].usage.input
    with pytest.raises(Transient):
        read(ScriptedModel([Transient("gone")]))


def test_requests_are_told_apart_by_memory_and_log_so_that_none_is_answered_for_another() -> None:
    seen: list[ChatRequest] = []

    def same(request: ChatRequest) -> str:
        seen.append(request)
        return using("memory_fold", unit_id=0)

    read(ScriptedModel(same))
    assert len({request.messages for request in seen}) == len(seen) == TOOL_CALLS + 1
