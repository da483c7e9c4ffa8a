"""A reader whose memory has tools: it may search, expand and fold before it answers (docs/methods.md B.7)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass, replace

from flexmem.agents.reader import ReaderPrompt, messages
from flexmem.llm.errors import ModelError
from flexmem.memory.protocol import Budget, Query, Rendering
from flexmem.memory.tools import Tool, ToolView
from flexmem.ports import ChatModel, ChatReply, ChatRequest, Message, Usage

TOOL_CALLS = 5
"""Tools a question may use; ours."""

INTRODUCTION = (
    "The memory above is managed with tools. To use one, reply with its JSON object and nothing else: "
    '{"tool": "<name>", "arguments": {...}}. What it changes is shown in the memory next time. You may use tools '
    "$calls times, then answer. If you can answer now, do so at once, in the form that was asked for."
)
LOG = "Tools used so far:\n"
LAST = "You have used all tools you may. Answer now."


@dataclass(frozen=True)
class ToolReading:
    """The answer, with the usage and attempts of all calls; what the memory showed for each; and the tools' lines."""

    reply: ChatReply
    renderings: tuple[Rendering, ...]
    log: tuple[str, ...]


async def answer_with_tools(
    model: ChatModel,
    prompt: ReaderPrompt,
    view: ToolView,
    query: Query,
    budget: Budget,
    *,
    max_tokens: int,
    effort: str | None,
    calls: int = TOOL_CALLS,
) -> ToolReading:
    """Ask a question; each reply that calls a tool has it run and the memory rendered anew, ``calls`` times at most.

    Every request stands by itself: instruction, memory as it is now, question, and a line for each tool used. What
    tools find is in the memory and its budget, not in the messages.

    Raises:
        ModelError: as `ChatModel.complete`. BudgetError: as `MemoryView.render`.
    """
    tools = {tool.name: tool for tool in view.tools()}
    renderings: list[Rendering] = []
    replies: list[ChatReply] = []
    log: list[str] = []
    while True:
        renderings.append(await view.render(query, budget))
        left = calls - len(log)
        asked = _with_tools(messages(prompt, renderings[-1].text), tools.values(), log, left)
        try:
            replies.append(await model.complete(ChatRequest(asked, "reader", max_tokens, effort=effort)))
        except ModelError as error:
            if replies:  # what was paid before stays counted
                error.trail = (*_summed(replies).trail, *error.trail)
                error.usage = _usage([*(reply.usage for reply in replies), error.usage or Usage(0, 0, 0, 0, 0)])
            raise
        call = tool_call(replies[-1].text, tools) if left else None
        if call is None:
            return ToolReading(_summed(replies), tuple(renderings), tuple(log))
        name, arguments = call
        said = await tools[name].call(arguments)
        log.append(f"{len(log) + 1}. {name} {json.dumps(arguments, ensure_ascii=False)} -> {said}")


def tool_call(reply: str, tools: dict[str, Tool]) -> tuple[str, dict[str, object]] | None:
    """The tool that a reply calls; None where it answers. Text around the object is forgiven, as models add some."""
    if "{" not in reply:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(reply[reply.index("{") :])
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("tool"), str) or found["tool"] not in tools:
        return None
    arguments = found.get("arguments", {})
    return str(found["tool"]), arguments if isinstance(arguments, dict) else {}


def tool_digest() -> str:
    """Digest of this module's own wording, for fingerprints of arms whose memory has tools."""
    return hashlib.sha256("\0".join((INTRODUCTION, LOG, LAST, str(TOOL_CALLS))).encode()).hexdigest()[:16]


def _with_tools(
    asked: Sequence[Message], tools: Collection[Tool], log: Sequence[str], left: int
) -> tuple[Message, ...]:
    described = "\n".join(
        f"- {tool.name}: {tool.description} Arguments: {json.dumps(tool.parameters['properties'])}" for tool in tools
    )
    parts = [asked[-1].content, INTRODUCTION.replace("$calls", str(left)) + "\n" + described if left else LAST]
    if log:
        parts.append(LOG + "\n".join(log))
    return (*asked[:-1], replace(asked[-1], content="\n\n".join(parts)))


def _summed(replies: Sequence[ChatReply]) -> ChatReply:
    """The last reply with the usage, latency and attempts of all."""
    return replace(
        replies[-1],
        usage=_usage([reply.usage for reply in replies]),
        latency_s=sum(reply.latency_s for reply in replies),
        attempts=sum(reply.attempts for reply in replies),
        trail=tuple(sent for reply in replies for sent in reply.trail),
    )


def _usage(usages: Sequence[Usage]) -> Usage:
    """The sum, field by field; one with an unknown part is unknown."""
    fields = zip(*(astuple(usage) for usage in usages), strict=True)
    return Usage(*(None if None in parts else sum(parts) for parts in fields))
