"""A model's replies as actions."""

from __future__ import annotations

import asyncio
import json

import pytest

from flexmem.agents.agent_memory import AgentContext
from flexmem.agents.policy import Decision
from flexmem.agents.react import ReactPolicy, TaskPrompt, first_block
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.asking import ReplyForm
from flexmem.memory.tools import Tool
from flexmem.ports import Message

CONTEXT = AgentContext(None, (Message("assistant", "before"), Message("user", "Output:\n```\nok\n```")), 12)


class Unit(ReplyForm):
    unit_id: int


async def _expand(form: Unit) -> str:
    return f"u{form.unit_id:02d} is shown"


EXPAND = Tool("memory_expand", "Show a unit.", Unit, _expand)


def decide(reply: str, tools: tuple[Tool, ...] = ()) -> tuple[Decision, ScriptedModel]:
    model = ScriptedModel([reply])
    policy = ReactPolicy(model, TaskPrompt("Be careful.", "Do it."), "python", max_tokens=90, effort="medium")
    return asyncio.run(policy.decide(CONTEXT, tools)), model


@pytest.mark.parametrize(
    ("reply", "thought", "code", "closed"),
    [
        ("I log in.\n```python\na = 1\n```\nThen more.\n```python\nb = 2\n```", "I log in.", "a = 1", True),
        ("```Python\na = 1\n\nb = 2\n```", "", "a = 1\n\nb = 2", True),
        ("See:\n```json\n{}\n```\nso\n```python\na = 1\n```", "See:\n```json\n{}\n```\nso", "a = 1", True),
        ("Plain.\n```\na = 1\n```", "Plain.", "a = 1", True),
        ("Cut.\n```python\na = 1", "Cut.", "a = 1", False),
        ("Only words, `a = 1` inline.", "Only words, `a = 1` inline.", "", True),
        ("```python\n\n```\nempty", "```python\n\n```\nempty", "", True),
        ("```bash\nls\n```", "```bash\nls\n```", "", True),
    ],
)
def test_the_first_block_of_the_language_is_the_action(reply: str, thought: str, code: str, closed: bool) -> None:
    assert first_block(reply, "python") == (thought, code, closed)


def test_the_model_sees_the_instruction_the_task_and_the_context() -> None:
    decision, model = decide("Go.\n```python\nx()\n```")
    assert (decision.thought, decision.action, decision.problem) == ("Go.", "x()", "")
    (request,) = model.requests
    shown = [message.content for message in request.messages]
    assert shown == ["Be careful.", "Do it.", "before", "Output:\n```\nok\n```"]
    assert (request.role, request.max_tokens, request.effort) == ("agent", 90, "medium")


def test_a_reply_without_a_block_does_nothing_and_is_told_so() -> None:
    decision, _ = decide("I am done.")
    assert decision.action == ""
    assert decision.thought == "I am done."
    assert "No code block" in decision.problem
    assert "```python" in decision.problem


def test_a_block_that_is_cut_is_not_run() -> None:
    decision, _ = decide("Go.\n```python\npay(100")
    assert decision.action == ""
    assert "ended before its code block did" in decision.problem


def test_a_memory_tool_is_called_by_its_object() -> None:
    reply = json.dumps({"tool": "memory_expand", "arguments": {"unit_id": 3}})
    decision, model = decide(f"I want it whole.\n{reply}", (EXPAND,))
    assert (decision.tool, decision.arguments) == ("memory_expand", {"unit_id": 3})
    assert json.loads(decision.action) == json.loads(reply)
    assert "- memory_expand: Show a unit." in model.requests[0].messages[0].content


def test_code_goes_before_tools_and_no_tool_is_called_where_there_is_none() -> None:
    reply = '{"tool": "memory_expand", "arguments": {"unit_id": 3}}'
    assert decide(f"```python\nx({reply})\n```", (EXPAND,))[0].tool is None
    assert decide(reply)[0].tool is None
