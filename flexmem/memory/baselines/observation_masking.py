"""``observation_masking``: thoughts and actions stay, old outputs become a line (docs/methods.md B.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import Field

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.assemble import assemble, require_room, total_tokens
from flexmem.memory.base import IndexedBuild
from flexmem.memory.protocol import Budget, FidelityCard, MethodConfig, MethodInfo, Query, Rendering, Resolution
from flexmem.memory.registry import MethodSpec
from flexmem.memory.selection import Fragment
from flexmem.ports import IndexConfig, Services


class ObservationMaskingConfig(MethodConfig):
    """How many outputs stay, and whether old thoughts do."""

    newest_outputs: int = Field(10, ge=0)
    """The window of the study that made masking known; SWE-agent's own default is 5."""
    keep_thoughts: bool = True
    """False drops the thoughts of steps whose output is masked."""


@dataclass(frozen=True)
class MaskableStep:
    """A step's verbatim fragments and what stands for its output."""

    uid: int
    header: Fragment
    thought: Fragment | None
    action: Fragment
    output: Fragment
    placeholder: Fragment


class ObservationMaskingBuild(IndexedBuild):
    """Steps, each with its output's placeholder."""

    def __init__(self, config: ObservationMaskingConfig, services: Services) -> None:
        super().__init__("observation_masking", config, services, IndexConfig(dense=False))
        self.config = config
        self.steps: list[MaskableStep] = []

    def view(self) -> ObservationMaskingView:
        return ObservationMaskingView(self)

    async def written(self, unit: Unit) -> None:
        self.steps += self._steps(unit)

    async def restore_extra(self, extra: dict[str, object]) -> None:
        self.steps = [step for unit in self.units for step in self._steps(unit)]

    def _steps(self, unit: Unit) -> Iterator[MaskableStep]:
        pieces: dict[int, list[int]] = {}
        for index in self.index.unit_pieces(unit.uid):
            pieces.setdefault(self.index.pieces[index].block, []).append(index)
        header = Fragment(unit.header, tokens.count(unit.header), (unit.uid,), Resolution.FRAME)
        by_source: dict[str, dict[str, Fragment]] = {}
        for number, block in enumerate(unit.blocks):
            text = unit.text[block.start : block.end]
            shown = Fragment(text, tokens.count(text), (unit.uid,), Resolution.RAW, tuple(pieces.get(number, ())))
            by_source.setdefault(block.source, {})[block.kind] = shown
            if block.kind == "output":
                by_source[block.source]["placeholder"] = _placeholder(unit, block.content_start, block.end)
        for parts in by_source.values():
            yield MaskableStep(
                unit.uid, header, parts.get("thought"), parts["action"], parts["output"], parts["placeholder"]
            )


def _placeholder(unit: Unit, start: int, end: int) -> Fragment:
    line = f"[output omitted: {len(unit.text[start:end].splitlines())} lines]\n"
    return Fragment(line, tokens.count(line), (unit.uid,), Resolution.PLACEHOLDER)


class ObservationMaskingView:
    """Reading changes nothing."""

    def __init__(self, build: ObservationMaskingBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """As many of the newest outputs as fit, ten at most; where not even the actions fit, the oldest steps are
        dropped (`MemoryView.render`).
        """
        require_room(budget.room, 0, "nothing")
        steps = self._build.steps
        for kept in range(min(self._build.config.newest_outputs, len(steps)), -1, -1):
            fragments = self._mask(steps, kept)
            if total_tokens(fragments) <= budget.room:
                return assemble(fragments)
        first = self._first_that_fits(steps, budget.room)
        return assemble(self._mask(steps[first:], 0))

    def _mask(self, steps: Sequence[MaskableStep], kept: int) -> list[Fragment]:
        fragments: list[Fragment] = []
        unit = None
        for position, step in enumerate(steps):
            masked = position < len(steps) - kept
            if step.uid != unit:
                fragments.append(step.header)
                unit = step.uid
            fragments += self._show(step, masked)
        return fragments

    def _show(self, step: MaskableStep, masked: bool) -> list[Fragment]:
        thought = [step.thought] if step.thought and (self._build.config.keep_thoughts or not masked) else []
        return [*thought, step.action, step.placeholder if masked else step.output]

    def _first_that_fits(self, steps: Sequence[MaskableStep], room: int) -> int:
        """The oldest step from which on all steps fit with every output masked."""
        used = 0
        unit = None
        for position in range(len(steps) - 1, -1, -1):
            step = steps[position]
            used += total_tokens(self._show(step, masked=True))
            if step.uid != unit:
                used += step.header.tokens
                unit = step.uid
            if used > room:
                return position + 1
        return 0


_CARD = FidelityCard(
    source="observation masking (arXiv 2508.21433), a baseline of FlexA-Mem §4.2; SWE-agent's last_n_observations",
    follows="thoughts and actions stay, the newest outputs stay, an older one becomes a line with its number of lines",
    ours="under a budget fewer outputs are kept until the rest fits; if none can be, the oldest steps are dropped",
    differs="SWE-agent also keeps the very first observation: there it is the task, which here is outside the memory",
    tuning="nothing tuned",
)

METHODS = (
    MethodSpec(
        MethodInfo(
            name="observation_masking",
            family="no written memory",
            summary="thoughts and actions of all steps, the newest outputs verbatim, older ones as a line",
            card=_CARD,
            tasks=("agent",),
        ),
        ObservationMaskingConfig(),
        ObservationMaskingBuild,
    ),
    MethodSpec(
        MethodInfo(
            name="observation_masking.no_thoughts",
            family="no written memory",
            summary="as observation_masking, the thoughts of masked steps dropped as well",
            card=_CARD,
            tasks=("agent",),
        ),
        ObservationMaskingConfig(keep_thoughts=False),
        ObservationMaskingBuild,
    ),
)
