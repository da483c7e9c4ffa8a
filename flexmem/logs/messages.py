"""Chat messages as chat APIs and Inspect have them, brought into one form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flexmem.history import TurnRole
from flexmem.logs.content import ToolCall, read_calls, read_content, read_function_call
from flexmem.logs.dates import read_day
from flexmem.logs.problems import LogError, an_object, expected, text_or_none

ROLES: Mapping[str, TurnRole] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_EXIT = "exit"  # mini-swe-agent closes a log with it; nobody has said it
_REASONING = frozenset({"reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks"})
_READ = frozenset(
    {"role", "content", "refusal", "name", "tool_calls", "function_call", "tool_call_id", "timestamp", "date", "error"}
)
# Names and bookkeeping, of which no memory would show anything.
_PASSED_OVER = frozenset({"id", "type", "object", "index", "source", "model", "status", "function", "cache_control"})


@dataclass(frozen=True, slots=True)
class LoggedMessage:
    """A message: its role, its texts joined by line breaks, who said it, and on which day (as the log has it, ISO
    where that could be read). ``call_id`` names the call that a tool's result answers.
    """

    role: TurnRole
    text: str
    name: str | None = None
    day: str | None = None
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None

    def as_sent(self) -> dict[str, Any]:
        """The message as chat APIs have it (`flexmem.memory.chat.ChatMessage`)."""
        message: dict[str, Any] = {"role": self.role, "content": self.text}
        if self.name is not None:
            message["name"] = self.name
        if self.calls:
            message["tool_calls"] = [call.as_sent() for call in self.calls]
        if self.call_id is not None:
            message["tool_call_id"] = self.call_id
        return message


def read_message(value: Any, place: str, left_out: Counter[str]) -> list[LoggedMessage]:
    """One logged message; results of tools among a user's parts become messages of their own, before the rest of it.

    Raises:
        LogError: no message, a role that is not known, or a field that is not what it should be.
    """
    message = an_object(value, place, "a message: an object with 'role' and 'content'")
    role = message.get("role")
    if role == _EXIT:
        left_out["message of role 'exit'"] += 1
        return []
    if "role" not in message:
        raise LogError(f"{place}: 'role' is missing; expected one of {', '.join(ROLES)}")
    if not isinstance(role, str) or role not in ROLES:
        raise expected(f"{place}.role", f"one of {', '.join(ROLES)}", role)
    calls = read_calls(message.get("tool_calls"), f"{place}.tool_calls")
    if message.get("function_call") is not None:
        calls.append(read_function_call(message["function_call"], f"{place}.function_call"))
    refusal = text_or_none(message.get("refusal"), f"{place}.refusal")
    if "content" not in message and not calls and not refusal:
        raise LogError(f"{place}: 'content' is missing; expected text, a list of parts, or tool calls")
    content = read_content(message.get("content"), f"{place}.content", left_out)
    texts = [text for text in (content.text, refusal, _error(message, place)) if text]
    name = text_or_none(message.get("name"), f"{place}.name") or None
    day = _day(message, place)
    _count_fields(message, left_out)
    read = [LoggedMessage("tool", r.text, day=day, call_id=r.call_id) for r in content.results]
    # A message of results alone has said nothing itself.
    if not content.results or texts or calls or content.calls:
        call_id = text_or_none(message.get("tool_call_id"), f"{place}.tool_call_id") if ROLES[role] == "tool" else ""
        read.append(LoggedMessage(ROLES[role], "\n".join(texts), name, day, (*calls, *content.calls), call_id or None))
    return read


def read_messages(values: list[Any], place: str, left_out: Counter[str]) -> list[LoggedMessage]:
    """The messages of a JSON list; ``place`` is the list's.

    Raises:
        LogError: as `read_message`.
    """
    return [m for n, value in enumerate(values) for m in read_message(value, f"{place}[{n}]", left_out)]


def _error(message: Mapping[str, Any], place: str) -> str:
    """What went wrong with a tool's call, as Inspect keeps it beside the result."""
    error = message.get("error")
    if error is None:
        return ""
    if isinstance(error, str):
        return error
    error = an_object(error, f"{place}.error", "text, or an object with 'type' and 'message'")
    said = text_or_none(error.get("message"), f"{place}.error.message")
    content = message.get("content")
    if isinstance(content, str) and said and said in content:
        return ""
    return f"error ({error.get('type', 'unknown')}): {said}"


def _day(message: Mapping[str, Any], place: str) -> str | None:
    for key in ("timestamp", "date"):
        if message.get(key) is not None:
            return read_day(message[key], f"{place}.{key}")
    return None


def _count_fields(message: Mapping[str, Any], left_out: Counter[str]) -> None:
    """Fields that say something and are not read."""
    for key, value in message.items():
        if key in _REASONING and value:
            left_out["reasoning part"] += 1
        elif value not in (None, "", [], {}) and key not in _READ | _PASSED_OVER | _REASONING:
            left_out[f"field {key!r}"] += 1
