"""Messages of an agent that calls tools, as steps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from flexmem.history import Step
from flexmem.logs.content import ToolCall
from flexmem.logs.messages import LoggedMessage


def has_calls(messages: Sequence[LoggedMessage]) -> bool:
    """Whether an assistant calls a tool in them."""
    return any(message.calls for message in messages if message.role == "assistant")


def task_of(messages: Sequence[LoggedMessage]) -> str:
    """What the user says before the assistant's first message."""
    return "\n\n".join(m.text for m in messages[: _first_reply(messages)] if m.role == "user" and m.text)


def before_first_step(messages: Sequence[LoggedMessage]) -> Sequence[LoggedMessage]:
    """Messages ahead of the assistant's first that are not the task's: they are in no step."""
    return [m for m in messages[: _first_reply(messages)] if m.role != "user"]


def as_steps(messages: Sequence[LoggedMessage]) -> list[Step]:
    """A step for each message of the assistant: its text is the thought, its calls are the action, and what follows up
    to its next message is the output.
    """
    steps: list[Step] = []
    rest = messages[_first_reply(messages) :]
    replies = [n for n, message in enumerate(rest) if message.role == "assistant"]
    for number, (at, past) in enumerate(zip(replies, [*replies[1:], len(rest)], strict=True), 1):
        reply = rest[at]
        action = "\n\n".join(action_text(call) for call in reply.calls)
        steps.append(Step(number, action, _output(rest[at + 1 : past], reply.calls), reply.text))
    return steps


def action_text(call: ToolCall) -> str:
    """A call with its texts word for word: the tool's name, then each argument; one of several lines starts on a line
    of its own. JSON would escape the line breaks that pieces are cut at.
    """
    arguments = call.by_name()
    if not isinstance(arguments, Mapping):
        return f"{call.name}\n{arguments}"
    lines = [call.name]
    for name, value in arguments.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"{name}:\n{shown}" if "\n" in shown else f"{name}: {shown}")
    return "\n".join(lines)


def _output(messages: Sequence[LoggedMessage], calls: Sequence[ToolCall]) -> str:
    """What came back. With several calls each result is headed by the name of the tool that it came from."""
    if len(calls) < 2:
        return "\n".join(message.text for message in messages)
    names = {call.call_id: call.name for call in calls if call.call_id is not None}
    parts = []
    for message in messages:
        name = names.get(message.call_id) if message.call_id is not None else None
        parts.append(f"{name}:\n{message.text}" if name is not None else message.text)
    return "\n".join(parts)


def _first_reply(messages: Sequence[LoggedMessage]) -> int:
    return next((n for n, message in enumerate(messages) if message.role == "assistant"), len(messages))
