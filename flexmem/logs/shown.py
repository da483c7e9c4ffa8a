"""What was shown of a log in one call, with the tokens of everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.chat import ChatMessage
from flexmem.memory.protocol import MethodError, Rendering
from flexmem.ports import ChatModel, Embedder, IndexConfig, Services
from flexmem.retrieval.index import LocalIndex


class ShowingError(MethodError):
    """A method can't be shown on this log, with what there is."""


@dataclass(frozen=True)
class Tools:
    """What memories are made with; ``model`` is the memory model's, for methods that need one."""

    embedder: Embedder
    model: ChatModel | None = None

    def services(self, room: int | None) -> Services:
        """A build's services, its index in this process."""
        return Services(self.embedder, lambda config: self._index(config), self.model, room=room)

    def _index(self, config: IndexConfig) -> LocalIndex:
        return LocalIndex(config, self.embedder if config.dense else None)


@dataclass(frozen=True)
class Shown:
    """What one call shows. ``units`` are the history's, of which the first ``written`` are in memory; ``rendering`` is
    None where nothing is shown of them yet.

    ``window`` are the recent messages (empty for a question), R = ``window_tokens`` their tokens with the memory's
    heading. ``outside`` are the tokens that the budget does not pay for: task, or opening system messages, or question.
    ``calls`` counts the calls that were made, the last included. ``fallbacks`` tells how often the method did other
    than asked, by reason; None where that can't be seen.
    """

    method: str
    budget: int
    units: Sequence[Unit]
    written: int
    rendering: Rendering | None
    window: tuple[ChatMessage, ...] = ()
    window_tokens: int = 0
    outside: int = 0
    calls: int = 1
    fallbacks: Mapping[str, int] | None = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The memory's text."""
        return "" if self.rendering is None else self.rendering.text

    @property
    def memory_tokens(self) -> int:
        """T of the text, counted here and not by the method."""
        return tokens.count(self.text)

    @property
    def room(self) -> int:
        """M = B - R."""
        return self.budget - self.window_tokens

    @property
    def over(self) -> int:
        """Tokens beyond the room: a method's defect."""
        return max(0, self.memory_tokens - self.room)

    @property
    def utilisation(self) -> float | None:
        """The share of the room that the memory uses; None where none is shown."""
        return None if self.rendering is None or self.room <= 0 else self.memory_tokens / self.room
