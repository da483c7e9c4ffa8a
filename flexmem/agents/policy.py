"""Who decides an agent's next action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from flexmem.agents.agent_memory import AgentContext
from flexmem.memory.tools import Tool
from flexmem.ports import ChatReply


@dataclass(frozen=True)
class Decision:
    """The next action. ``tool`` names the memory's tool that it calls, with ``arguments``, in place of acting in the
    environment; without one an empty ``action`` means that none could be read. ``problem`` is then what to tell.
    """

    thought: str
    action: str
    tool: str | None = None
    arguments: dict[str, object] | None = None
    problem: str = ""
    reply: ChatReply | None = None


class Policy(Protocol):
    """Decides from a context alone: what it shows is all that there is."""

    async def decide(self, context: AgentContext, tools: Sequence[Tool]) -> Decision:
        """The next action.

        Raises:
            ModelError: a model was asked and can't answer.
        """
        ...
