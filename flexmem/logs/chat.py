"""Chat messages: a JSON list, an object with ``messages``, or one message a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from flexmem.logs.files import LogFile
from flexmem.logs.log import Log
from flexmem.logs.messages import LoggedMessage, read_message, read_messages
from flexmem.logs.problems import LogError, a_list, expected

_FORMS = "a list of messages, an object with 'messages', or one message a line"


def load_chat(file: LogFile) -> Log:
    """The file's messages, with the fields of chat APIs (OpenAI's and Anthropic's): texts and text parts, tool calls
    and results, ``name``, ``timestamp`` or ``date``; ``system`` beside ``messages`` opens the chat.

    Raises:
        LogError: it has another form, or no message.
    """
    left_out: Counter[str] = Counter()
    messages = _messages(file, left_out)
    if not messages:
        raise LogError(f"{file.source}: it has no message; expected {_FORMS}")
    return Log(file.source, "chat", tuple(messages), left_out=dict(left_out))


def _messages(file: LogFile, left_out: Counter[str]) -> list[LoggedMessage]:
    value = file.value
    if isinstance(value, list):
        _refuse_conversations(file)
        return [m for n, item in enumerate(value) for m in read_message(item, file.place(n), left_out)]
    if not isinstance(value, Mapping):
        raise expected(file.source, _FORMS, value)
    if "messages" not in value and "role" in value:
        return read_message(value, f"{file.source}: line 1", left_out)
    if "messages" not in value:
        raise expected(file.source, _FORMS, value)
    place = f"{file.source}: messages"
    messages = read_messages(a_list(value["messages"], place, "a list of messages"), place, left_out)
    return [*_system(value, file.source, left_out), *messages]


def _system(value: Mapping[str, Any], source: str, left_out: Counter[str]) -> list[LoggedMessage]:
    """The system prompt that Anthropic's API takes beside the messages."""
    if not value.get("system"):
        return []
    return read_message({"role": "system", "content": value["system"]}, f"{source}: system", left_out)


def _refuse_conversations(file: LogFile) -> None:
    first = file.value[0] if file.value else None
    if isinstance(first, Mapping) and "messages" in first and "role" not in first:
        raise LogError(
            f"{file.place(0)}: a conversation, not a message; expected {_FORMS}. Put one conversation into a file of "
            "its own"
        )
