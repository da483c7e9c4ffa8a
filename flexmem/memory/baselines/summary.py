"""``summary``: a running summary of the length that the room holds (docs/methods.md B.3)."""

from __future__ import annotations

from typing import Any

from flexmem.history import Unit
from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.running_summary import RunningSummary, SummaryConfig, written_room
from flexmem.memory.protocol import Budget, FidelityCard, MethodInfo, Query, Rendering
from flexmem.memory.registry import MethodSpec
from flexmem.ports import IndexConfig, Services


class SummaryBuild(IndexedBuild):
    """Units, and the summary of all that were written."""

    def __init__(self, config: SummaryConfig, services: Services) -> None:
        super().__init__("summary", config, services, IndexConfig(dense=False))
        self.summary = RunningSummary(config, services, self.fallbacks)

    def view(self) -> SummaryView:
        return SummaryView(self)

    async def written(self, unit: Unit) -> None:
        self.summary.text = await self.summary.folded(unit, written_room(self.services))

    def extra(self) -> dict[str, Any]:
        return {"summary": self.summary.text, "fallbacks": dict(self.fallbacks)}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        self.summary.text = extra["summary"]
        self.fallbacks.update(extra["fallbacks"])


class SummaryView:
    """Reading changes nothing and depends on no query."""

    def __init__(self, build: SummaryBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """The summary, cut at its end where this call's room is too small for it (`MemoryView.render`)."""
        require_room(budget.room, 0, "nothing")
        shown = self._build.summary.fragment(len(self._build.units), budget.room)
        return assemble([shown] if shown else [])


METHODS = (
    MethodSpec(
        MethodInfo(
            name="summary",
            prompts=("summary_fold",),
            family="summaries",
            summary="one running summary; the model folds each unit into it",
            card=FidelityCard(
                source="FlexA-Mem §4.2 (Summary)",
                follows="a single text, rewritten by the memory model as each unit leaves the window",
                ours="its length, 0.6 words a token of the room, so that a summary as long as was asked for fits; "
                "a longer one is cut; after two unusable replies the unit's words are appended and the oldest give "
                "way, counted",
                differs="no reference code could be read; LangMem's summariser has 256 tokens whatever the budget",
                tuning="nothing tuned",
            ),
            writes_with_model=True,
            rewrites_text=True,
            build_per_budget=True,
        ),
        SummaryConfig(),
        SummaryBuild,
    ),
)
