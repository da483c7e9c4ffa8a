"""What a loader makes of a file: a chat's messages or an agent's steps, and an account of what it left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from flexmem.history import Kind, Step
from flexmem.logs.messages import LoggedMessage
from flexmem.logs.problems import LogError

LogFormat = Literal["chat", "swe-agent", "inspect", "run"]
FORMATS: tuple[LogFormat, ...] = get_args(LogFormat)


@dataclass(frozen=True)
class Log:
    """One history out of a file: ``steps`` of an agent, or ``messages`` of a chat where there are none.

    ``task`` is what the agent was asked to do, "" where the log doesn't say; ``language`` is that of its code fences.
    ``left_out`` counts what the file holds beyond what was read, by kind.
    """

    source: str
    format: LogFormat
    messages: tuple[LoggedMessage, ...] = ()
    steps: tuple[Step, ...] = ()
    task: str = ""
    language: str = ""
    sample: str | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """Whose history it is: an agent's, or a reader's (a chat)."""
        return "agent" if self.steps else "reader"

    @property
    def item(self) -> str:
        """What it is counted in: ``step`` or ``message``."""
        return "step" if self.steps else "message"

    @property
    def length(self) -> int:
        """How many steps or messages it has."""
        return len(self.steps or self.messages)

    def cut(self, length: int) -> Log:
        """The log as it was after so many steps or messages.

        Raises:
            LogError: it was never that long, or nothing had been said yet.
        """
        if not 1 <= length <= self.length:
            raise LogError(f"{self.source}: there is no {self.item} {length}; it has {self.length} {self.item}s")
        return replace(self, messages=self.messages[:length], steps=self.steps[:length])
