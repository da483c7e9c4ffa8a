"""A message's content: a text, or a list of parts of which some are no text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flexmem.logs.problems import a_list, an_object, expected, member, text_or_none

_TEXT = {"text", "input_text", "output_text", None}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; ``arguments`` as they were logged: an object, or its JSON as text."""

    name: str
    arguments: Mapping[str, Any] | str
    call_id: str | None

    def by_name(self) -> Mapping[str, Any] | str:
        """The arguments by name; a model may have written what is no JSON object, which stays the text that it is."""
        if not isinstance(self.arguments, str):
            return self.arguments
        try:
            found = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return self.arguments
        return found if isinstance(found, dict) else self.arguments

    def as_sent(self) -> dict[str, Any]:
        """The call as chat APIs have it."""
        arguments = self.arguments
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        return {"id": self.call_id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's result that stands among another message's parts."""

    text: str
    call_id: str | None


@dataclass
class Content:
    """What a content holds: ``texts`` in order, calls, and results of tools."""

    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The texts, each on lines of its own."""
        return "\n".join(self.texts)


def read_content(value: Any, place: str, left_out: Counter[str]) -> Content:
    """Read a message's content; parts that are no text are counted in ``left_out``.

    Raises:
        LogError: it is neither text nor a list of parts.
    """
    content = Content()
    if value is None or isinstance(value, str):
        content.texts.append(value or "")
        return content
    if not isinstance(value, list):
        raise expected(place, "text or a list of parts", value)
    for number, part in enumerate(value):
        _read_part(part, f"{place}[{number}]", content, left_out)
    return content


def _read_part(part: Any, place: str, content: Content, left_out: Counter[str]) -> None:
    if isinstance(part, str):
        content.texts.append(part)
        return
    part = an_object(part, place, "a part: text, or an object with 'type'")
    kind = part.get("type")
    if kind is not None and not isinstance(kind, str):
        raise expected(f"{place}.type", "text", kind)
    if kind in _TEXT:
        text = member(part, "text", place, "a part with 'type', or with 'text'")
        content.texts.append(text_or_none(text, f"{place}.text"))
    elif kind == "refusal":
        content.texts.append(text_or_none(part.get("refusal"), f"{place}.refusal"))
    elif kind == "tool_use" and "input" in part:
        content.calls.append(_call(part, "name", "input", place))
    elif kind == "tool_use":  # Inspect's, of a tool on the model's own side: call and result in one
        called = _call(part, "name", "arguments", place)
        result = text_or_none(part.get("result"), f"{place}.result")
        content.texts.append(f"{called.name} {called.as_sent()['function']['arguments']}\n{result}")
    elif kind == "tool_result":
        inner = read_content(part.get("content"), f"{place}.content", left_out)
        content.results.append(ToolResult(inner.text, _id(part.get("tool_use_id"), f"{place}.tool_use_id")))
    else:
        left_out[f"{kind} part"] += 1


def read_calls(value: Any, place: str) -> list[ToolCall]:
    """A message's ``tool_calls``: of chat APIs (``function`` with name and arguments), or of Inspect (a function's
    name beside its arguments); null is none.

    Raises:
        LogError: one of them is neither.
    """
    calls = []
    for number, call in enumerate(a_list([] if value is None else value, place, "a list of tool calls")):
        at = f"{place}[{number}]"
        call = an_object(call, at, "a tool call: an object with 'function'")
        function = member(call, "function", at, "a tool call: an object with 'function'")
        if isinstance(function, Mapping):
            calls.append(_call({**function, "id": call.get("id")}, "name", "arguments", at))
        else:
            calls.append(_call(call, "function", "arguments", at))
    return calls


def read_function_call(value: Any, place: str) -> ToolCall:
    """A ``function_call``, the older form of a tool call.

    Raises:
        LogError: it has no name.
    """
    return _call(an_object(value, place, "an object with 'name' and 'arguments'"), "name", "arguments", place)


def _call(value: Mapping[str, Any], name: str, arguments: str, place: str) -> ToolCall:
    called = member(value, name, place, "the name of the tool that was called")
    if not isinstance(called, str) or not called:
        raise expected(f"{place}.{name}", "the name of the tool that was called", called)
    given = value.get(arguments)
    if given is None:
        given = {}
    elif not isinstance(given, str | Mapping):
        raise expected(f"{place}.{arguments}", "an object, or its JSON as text", given)
    return ToolCall(called, given, _id(value.get("id"), f"{place}.id"))


def _id(value: Any, place: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise expected(place, "text", value)
    return value
