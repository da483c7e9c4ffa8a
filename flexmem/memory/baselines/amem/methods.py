"""``amem`` and its forms (docs/methods.md B.2)."""

from __future__ import annotations

from typing import Any

from flexmem.history import Unit
from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.amem.config import AMemConfig
from flexmem.memory.baselines.amem.showing import show_notes
from flexmem.memory.baselines.amem.store import NoteStore
from flexmem.memory.degrading import DegradeRules, DegradingView, RankedItem
from flexmem.memory.protocol import Budget, FidelityCard, MemoryView, MethodInfo, Query, Rendering
from flexmem.memory.registry import MethodSpec, registered_as, variant
from flexmem.ports import IndexConfig, Services


class AMemBuild(IndexedBuild):
    """Units, and a note beside each. Only fit-or-degrade, whose excerpts compare pieces, needs their vectors."""

    def __init__(self, config: AMemConfig, services: Services) -> None:
        super().__init__("amem", config, services, IndexConfig(dense=config.degrade is not None))
        self.config = config
        self.store = NoteStore(config, services, self.fallbacks, lambda: self.units)

    def view(self) -> MemoryView:
        if self.config.degrade is not None:
            return DegradingView(self, self._ranked, self.config.degrade)
        return AMemView(self)

    async def written(self, unit: Unit) -> None:
        self.store.put(await self.store.draft(unit))

    def extra(self) -> dict[str, Any]:
        return {"notes": self.store.saved(), "fallbacks": dict(self.fallbacks)}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        await self.store.restore(extra["notes"])
        self.fallbacks.update(extra["fallbacks"])

    def _ranked(self, query: Query) -> list[RankedItem]:
        return [RankedItem((uid,), self.store.head(uid)) for uid in self.store.ranking(query)]


class AMemView:
    """Reading changes nothing."""

    def __init__(self, build: AMemBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """Notes by rank while they fit, shown in time order (`MemoryView.render`)."""
        require_room(budget.room, 0, "nothing")
        store = self._build.store
        shown = show_notes(self._build, store, store.ranking(query), budget.room)
        return assemble(shown.fragments, ranking=shown.ranking)


AMEM = MethodSpec(
    MethodInfo(
        name="amem",
        prompts=("amem_note", "amem_evolve"),
        family="A-Mem",
        summary="a note a unit, with metadata and links by the model, which may change earlier notes; ten by cosine, "
        "their links, then the others",
        card=FidelityCard(
            source="A-Mem, arXiv 2502.12110, and its public code (WujiangXu/A-mem, WujiangXu/A-mem-sys, "
            "agiresearch/A-mem), read for facts",
            follows="a metadata call a note; an evolution call over the 5 nearest notes, which links the new note, "
            "replaces its tags, and overwrites contexts and tags of neighbours; what is embedded (content, context, "
            "keywords, tags); 10 notes and their links; what of a note is shown; replies of at most 1,000 tokens",
            ours="a note's content is a unit; links come behind the ten notes; further notes by cosine fill the room; "
            "a best note larger than the room is cut; blank suggestions change nothing; two unusable replies leave "
            "a note without metadata or without evolution, counted",
            differs="neighbours carry their notes' ids, since places in a list of results overwrote the store's first "
            "notes in one version; metadata are always read, which a missing import prevented in another; vectors "
            "follow every change at once, not after 100 evolutions; the query is the call's own vector, not keywords "
            "that a model makes of it; temperature 0, not 0.7",
            tuning="nothing tuned: the reference code's values",
        ),
        writes_with_model=True,
    ),
    AMemConfig(),
    AMemBuild,
)

METHODS = (
    AMEM,
    variant(AMEM, "no_evolution", "A-Mem without evolution: notes with metadata, no links", evolution=False),
    variant(AMEM, "paper_k", "ten notes by cosine and their links, no more", fill=False),
    registered_as(
        AMEM,
        "fit_or_degrade.amem",
        "A-Mem's ranking; each unit raw, as an excerpt, or as its note without content",
        degrade=DegradeRules(),
    ),
)
