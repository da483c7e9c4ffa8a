"""The ReAct policy: a model thinks, then writes one code block, which is its action."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flexmem.agents.agent_memory import AgentContext
from flexmem.agents.policy import Decision
from flexmem.agents.tool_reader import tool_call
from flexmem.memory.tools import Tool
from flexmem.ports import ChatModel, ChatRequest, Message

NO_ACTION = (
    "No code block was found in your reply, so nothing was done. Reply with your thought, then one code block:\n"
    "```$language\n...\n```"
)
CUT_ACTION = "Your reply ended before its code block did, so nothing was done. Write less before the code."
TOOLS = (
    "Your earlier steps are kept in a memory of limited size that you manage with tools. To use one, reply with its "
    'JSON object and no code block: {"tool": "<name>", "arguments": {...}}. That is a step like any other. Tools:\n'
)
_FENCE = re.compile(r"^[ \t]*```(?P<language>[^`\n]*)$", re.MULTILINE)


@dataclass(frozen=True)
class TaskPrompt:
    """What stands before every context: the environment's instruction and the task's own words. Neither counts
    towards the budget (docs/methods.md 0.6).
    """

    system: str
    task: str


class ReactPolicy:
    """Asks a model for each step; the first code block of its reply is the action.

    Args:
        max_tokens: of a reply, reasoning included. effort: of reasoning.
    """

    def __init__(
        self, model: ChatModel, prompt: TaskPrompt, language: str, *, max_tokens: int, effort: str | None
    ) -> None:
        self._model = model
        self._prompt = prompt
        self._language = language
        self._max_tokens = max_tokens
        self._effort = effort

    async def decide(self, context: AgentContext, tools: Sequence[Tool]) -> Decision:
        """One model call (`Policy.decide`)."""
        system = self._prompt.system + (f"\n\n{TOOLS}{_described(tools)}" if tools else "")
        messages = (Message("system", system), Message("user", self._prompt.task), *context.messages())
        reply = await self._model.complete(ChatRequest(messages, "agent", self._max_tokens, effort=self._effort))
        thought, action, closed = first_block(reply.text, self._language)
        if action and closed:
            return Decision(thought, action, reply=reply)
        if action:
            return Decision(thought, "", problem=CUT_ACTION, reply=reply)
        called = tool_call(reply.text, {tool.name: tool for tool in tools}) if tools else None
        if called is not None:
            name, arguments = called
            shown = json.dumps({"tool": name, "arguments": arguments}, ensure_ascii=False)
            return Decision("", shown, tool=name, arguments=arguments, reply=reply)
        return Decision(reply.text, "", problem=NO_ACTION.replace("$language", self._language), reply=reply)


def first_block(text: str, language: str) -> tuple[str, str, bool]:
    """The text before the first code block, the block's code, and whether the block is closed. A block of ``language``
    goes before one that names none; blocks of other languages are no actions. No block: all text, no code.
    """
    blocks = [block for block in _blocks(text) if block.code.strip()]
    for wanted in (language.lower(), ""):
        for block in blocks:
            if block.language == wanted:
                return text[: block.start].strip(), block.code.strip("\n"), block.closed
    return text.strip(), "", True


@dataclass(frozen=True)
class _Block:
    language: str
    start: int
    code: str
    closed: bool


def _blocks(text: str) -> Iterator[_Block]:
    """Fenced blocks in order; a fence with nothing behind it closes the one that is open."""
    language: str | None = None
    start = code = 0
    for fence in _FENCE.finditer(text):
        if language is None:
            language, start, code = fence["language"].strip().lower(), fence.start(), fence.end() + 1
        elif not fence["language"].strip():
            yield _Block(language, start, text[code : fence.start()], True)
            language = None
    if language is not None:
        yield _Block(language, start, text[code:], False)


def react_digest() -> str:
    """Digest of this module's own wording, for fingerprints."""
    return hashlib.sha256("\0".join((NO_ACTION, CUT_ACTION, TOOLS)).encode()).hexdigest()[:16]


def _described(tools: Sequence[Tool]) -> str:
    return "\n".join(
        f"- {tool.name}: {tool.description} Arguments: {json.dumps(tool.parameters['properties'])}" for tool in tools
    )
