"""Chat messages as histories: what belongs together, what is text, and how the newest are cut to fit (docs/methods.md
0.6).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from flexmem import tokens
from flexmem.history import Turn, TurnRole
from flexmem.memory.protocol import BudgetError, MethodError

ChatMessage = Mapping[str, Any]
"""A chat message as chat APIs have it: ``role``, ``content``, and what else the API knows (``tool_calls`` …)."""

Item = tuple[ChatMessage, ...]
"""Messages that a context window must not part: a tool's results stay with the call that asked for them."""

_ROLES: dict[str, TurnRole] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_LEAST_CUT = 32  # tokens that a cut message keeps at least: its head, its tail and the marker


def split_messages(messages: Sequence[ChatMessage]) -> tuple[list[ChatMessage], list[Item]]:
    """The system messages that open a chat, and the rest in items.

    Raises:
        MethodError: a message has no known role.
    """
    for position, message in enumerate(messages):
        if message.get("role") not in _ROLES:
            known = ", ".join(_ROLES)
            raise MethodError(f"message {position} has role {message.get('role')!r}; known roles: {known}")
    opening = 0
    while opening < len(messages) and _ROLES[messages[opening]["role"]] == "system":
        opening += 1
    items: list[Item] = []
    for message in messages[opening:]:
        if _ROLES[message["role"]] == "tool" and items:
            items[-1] = (*items[-1], message)
        else:
            items.append((message,))
    return list(messages[:opening]), items


def message_text(message: ChatMessage) -> str:
    """What a message says: its text parts, and its tool calls as JSON."""
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and "text" in part)
    calls = message.get("tool_calls")
    if calls:
        content = f"{content}\n{json.dumps(calls, ensure_ascii=False, default=str)}".lstrip("\n")
    return content


def message_turn(message: ChatMessage, turn_id: str) -> Turn:
    """A message as a turn; its ``name``, if it has one, is the speaker's."""
    return Turn(turn_id, _ROLES[message["role"]], message_text(message), message.get("name"))


def newest_words(items: Sequence[Item]) -> str:
    """What the next call is about: the newest message of the user, else the newest message."""
    texts = [(message["role"], message_text(message)) for item in items for message in item]
    return next((text for role, text in reversed(texts) if role == "user" and text.strip()), texts[-1][1])


def cut_to_fit(items: Sequence[Item], limit: int) -> tuple[list[Item], int]:
    """Items whose texts have at most ``limit`` tokens: the longest messages are cut to head and tail. Also their
    tokens.

    Raises:
        BudgetError: even cut, the messages don't fit.
    """
    messages = [[dict(message) for message in item] for item in items]
    sizes = {(i, j): tokens.count(message_text(m)) for i, item in enumerate(messages) for j, m in enumerate(item)}
    while sum(sizes.values()) > limit:
        longest = max(sizes, key=lambda place: (sizes[place], place))
        message = messages[longest[0]][longest[1]]
        target = max(_LEAST_CUT, sizes[longest] - (sum(sizes.values()) - limit))
        if not isinstance(message.get("content"), str) or sizes[longest] <= target:
            raise BudgetError(
                f"the {limit} tokens that the budget leaves to recent messages can't hold the newest, even cut; "
                "give a larger budget"
            )
        message["content"] = tokens.head_and_tail(message["content"], target)
        cut = tokens.count(message_text(message))
        if cut >= sizes[longest]:
            raise BudgetError(
                f"the {limit} tokens that the budget leaves to recent messages can't hold the newest, even cut; "
                "give a larger budget"
            )
        sizes[longest] = cut
    return [tuple(item) for item in messages], sum(sizes.values())
