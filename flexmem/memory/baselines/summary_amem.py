"""``summary_amem``: half of the room for a running summary, half for A-Mem's notes (docs/methods.md B.3)."""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field, field_validator

from flexmem.history import Unit
from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.amem.config import AMemConfig
from flexmem.memory.baselines.amem.showing import show_notes
from flexmem.memory.baselines.amem.store import NoteStore
from flexmem.memory.baselines.running_summary import RunningSummary, SummaryConfig, written_room
from flexmem.memory.protocol import Budget, FidelityCard, MethodConfig, MethodInfo, Query, Rendering
from flexmem.memory.registry import MethodSpec
from flexmem.ports import IndexConfig, Services


class SummaryAMemConfig(MethodConfig):
    """The split, and both parts' own values."""

    summary_share: float = Field(0.5, gt=0, lt=1)
    """The summary's share of the room. FlexA-Mem §1 says that the split is fixed in advance, not where: half (ours)."""
    summary: SummaryConfig = SummaryConfig()
    """As ``summary``."""
    notes: AMemConfig = AMemConfig()
    """As ``amem``, but for ``degrade``: notes are shown whole here."""

    @field_validator("notes")
    @classmethod
    def _notes_whole(cls, notes: AMemConfig) -> AMemConfig:
        if notes.degrade is not None:
            raise ValueError("degrade is an option of amem alone; notes beside a summary are shown whole")
        return notes

    def summary_room(self, room: int) -> int:
        """Tokens of a room that are the summary's."""
        return math.floor(self.summary_share * room)


class SummaryAMemBuild(IndexedBuild):
    """Units, their summary, and a note beside each."""

    def __init__(self, config: SummaryAMemConfig, services: Services) -> None:
        super().__init__("summary_amem", config, services, IndexConfig(dense=False))
        self.config = config
        self.summary = RunningSummary(config.summary, services, self.fallbacks)
        self.store = NoteStore(config.notes, services, self.fallbacks, lambda: self.units)

    def view(self) -> SummaryAMemView:
        return SummaryAMemView(self)

    async def written(self, unit: Unit) -> None:
        """Both parts are made before either is taken: a failure leaves neither."""
        summary = await self.summary.folded(unit, self.config.summary_room(written_room(self.services)))
        self.store.put(await self.store.draft(unit))
        self.summary.text = summary

    def extra(self) -> dict[str, Any]:
        return {"summary": self.summary.text, "notes": self.store.saved(), "fallbacks": dict(self.fallbacks)}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        self.summary.text = extra["summary"]
        await self.store.restore(extra["notes"])
        self.fallbacks.update(extra["fallbacks"])


class SummaryAMemView:
    """Reading changes nothing."""

    def __init__(self, build: SummaryAMemBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """The summary, then notes in time order; neither gets what the other leaves of its share
        (`MemoryView.render`).
        """
        require_room(budget.room, 0, "nothing")
        build = self._build
        share = build.config.summary_room(budget.room)
        summary = build.summary.fragment(len(build.units), share)
        notes = show_notes(build, build.store, build.store.ranking(query), budget.room - share)
        return assemble([*([summary] if summary else []), *notes.fragments], ranking=notes.ranking)


METHODS = (
    MethodSpec(
        MethodInfo(
            name="summary_amem",
            prompts=("summary_fold", "amem_note", "amem_evolve"),
            family="summaries",
            summary="half of the room a running summary, half A-Mem's notes",
            card=FidelityCard(
                source="FlexA-Mem §1, §4.2 (Summary+A-Mem); parts as in summary and amem",
                follows="both kinds of memory side by side, their split fixed in advance",
                ours="half each; neither gets what the other leaves; the summary stands first",
                differs="no reference code could be read; A-Mem's part as in amem",
                tuning="nothing tuned",
            ),
            writes_with_model=True,
            rewrites_text=True,
            build_per_budget=True,
        ),
        SummaryAMemConfig(),
        SummaryAMemBuild,
    ),
)
