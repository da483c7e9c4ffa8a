"""An agent's context as its history grows: memory of what left the recent window, and the window itself (FlexA-Mem §3,
App. A; docs/methods.md 0.3, 0.6).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flexmem import tokens
from flexmem.history import AGENT_UNIT_TOKENS, Step, StepPacker, Unit
from flexmem.memory.chat import cut_to_fit
from flexmem.memory.protocol import Budget, BudgetError, MemoryBuild, MemoryView, Query, Rendering
from flexmem.memory.window import newest_unit_limit, window_units
from flexmem.ports import Embedder, Message, VectorArray

LEAST_BUDGET = 256
"""B of which three quarters hold a newest step cut to its shortest, and a quarter says something of the others."""
EMPTY = "(an empty reply)"
PREFACE = "Memory of your earlier steps:\n"


@dataclass(frozen=True)
class AgentContext:
    """What one call shows of the steps so far.

    ``rendering`` is the memory's, None where nothing is shown of it. ``window`` are the newest steps as messages, of
    ``window_tokens`` tokens: R, with the memory's heading.
    """

    rendering: Rendering | None
    window: tuple[Message, ...]
    window_tokens: int

    def messages(self) -> list[Message]:
        """Memory, then the recent window."""
        memory = self.rendering.text if self.rendering is not None else ""
        return [*([Message("user", PREFACE + memory)] if memory else []), *self.window]


class AgentMemory:
    """One episode's memory: steps go in, contexts come out.

    Args:
        build, view: of one method, both this episode's own; None: nothing is remembered beyond the window.
        budget: B in tokens; None: the window holds every step.
        language: of the actions' code fence.
        unit_tokens: size of a unit; None: 1,000, or a quarter of a budget below 4,000.
    """

    def __init__(
        self,
        task: str,
        budget: int | None,
        embedder: Embedder,
        build: MemoryBuild | None,
        *,
        history: str,
        language: str = "python",
        unit_tokens: int | None = None,
    ) -> None:
        if unit_tokens is None:
            # Under 4,000 tokens units shrink with the budget: the newest is shown whole, and memory needs its room.
            unit_tokens = AGENT_UNIT_TOKENS if budget is None else max(1, min(AGENT_UNIT_TOKENS, budget // 4))
        self._task = task
        self._budget = budget
        self._embedder = embedder
        self._build = build
        self.view: MemoryView | None = build.view() if build is not None else None
        self._language = language
        self._packer = StepPacker(history=history, limit=unit_tokens)
        self._steps: list[Step] = []
        self._written: list[Unit] = []
        self._task_vector: VectorArray | None = None
        self._newest: tuple[str, VectorArray] | None = None

    @property
    def steps(self) -> Sequence[Step]:
        """All steps so far."""
        return self._steps

    @property
    def units(self) -> Sequence[Unit]:
        """All units so far, the open one last."""
        return self._packer.units()

    @property
    def written(self) -> Sequence[Unit]:
        """The units that left the window and were written."""
        return self._written

    def append(self, step: Step) -> None:
        """Add the newest step."""
        self._steps.append(step)
        self._packer.append(step)

    async def context(self) -> AgentContext:
        """What the next call shows: writes the units that left the window, then renders.

        Raises:
            BudgetError: the budget can't hold the newest step, even cut, and the method's frame.
        """
        units = self._packer.units()
        if self._budget is None:
            window = self._messages(self._steps)
            return AgentContext(None, window, _count(window))
        # A unit once written is never recent again.
        first = max(len(units) - window_units([unit.tokens for unit in units], self._budget), len(self._written))
        for unit in units[len(self._written) : first]:
            if self._build is not None:
                await self._build.write(unit)
            self._written.append(unit)
        window, used = self._cut(self._messages(self._steps[self._packer.first_item(first) :]))
        if self.view is None or not (self._written or hasattr(self.view, "tools")):
            return AgentContext(None, window, used)
        used += tokens.count(PREFACE)
        if used > self._budget:
            raise BudgetError(f"a budget of {self._budget} tokens leaves no room beside {used} of recent steps")
        rendering = await self.view.render(await self._query(units), Budget(self._budget, used))
        return AgentContext(rendering, window, used)

    def _messages(self, steps: Sequence[Step]) -> tuple[Message, ...]:
        return tuple(message for step in steps for message in step_messages(step, self._language))

    def _cut(self, window: tuple[Message, ...]) -> tuple[tuple[Message, ...], int]:
        """The window within its limit: a newest unit over three quarters of B is shown head and tail."""
        assert self._budget is not None
        items = [({"role": message.role, "content": message.content},) for message in window]
        kept, used = cut_to_fit(items, newest_unit_limit(self._budget))
        return tuple(Message(m["role"], m["content"]) for item in kept for m in item), used

    async def _query(self, units: Sequence[Unit]) -> Query:
        if self._task_vector is None:
            self._task_vector = (await self._embedder.embed([self._task]))[0]
        text = unit_content(units[-1]) if units else ""
        if self._newest is None or self._newest[0] != text:
            self._newest = (text, (await self._embedder.embed([text]))[0])
        newest = self._newest[1]
        return Query(
            text=text,
            vector=_normalised(self._task_vector + newest),
            excerpt_text=text,
            excerpt_vector=newest,
            task=self._task,
        )


def step_messages(step: Step, language: str) -> tuple[Message, Message]:
    """A step as the messages that it was: the agent's thought and code block, and the environment's output."""
    thought = f"{step.thought.rstrip()}\n" if step.thought.strip() else ""
    action = _fenced(step.action, language) if step.action.strip() else ""
    # Endpoints refuse an empty message.
    return Message("assistant", thought + action or EMPTY), Message("user", f"Output:\n{_fenced(step.output)}")


def _fenced(text: str, language: str = "") -> str:
    """A code block, its fence longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def unit_content(unit: Unit) -> str:
    """A unit's text without the words that packing adds."""
    return "".join(unit.text[block.content_start : block.end] for block in unit.blocks)


def _count(messages: Sequence[Message]) -> int:
    return sum(tokens.count(message.content) for message in messages)


def _normalised(vector: VectorArray) -> VectorArray:
    length = float(np.linalg.norm(vector))
    return vector if length == 0 else (vector / length).astype(np.float32)
