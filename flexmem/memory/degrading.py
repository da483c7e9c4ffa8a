"""Fit-or-degrade as a plug-in over any method that ranks items (FlexA-Mem E.11, F.2.3; docs/methods.md A.10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import Field

from flexmem.memory.assemble import assemble, require_room, total_tokens
from flexmem.memory.base import IndexedBuild
from flexmem.memory.fit_or_degrade import Forms, fit_or_degrade
from flexmem.memory.protocol import Budget, MethodConfig, Query, Rendering
from flexmem.memory.selection import Fragment
from flexmem.memory.unit_forms import Excerpts, raw_fragment


class DegradeRules(MethodConfig):
    """The forms of FlexA-Mem's unit recovery, with its defaults (`flexmem.memory.flexa.config.FlexaConfig`)."""

    excerpts: bool = True
    raw_first: bool = False
    excerpt_cap: int = Field(512, ge=1)
    excerpt_min: int = 40

    @property
    def raw_replaces_record(self) -> bool:
        """Nothing but what is recovered is shown, so there is nothing to replace."""
        return False


class RankedItem(NamedTuple):
    """What a method ranks: its short form, and the units that it stands for, newest first."""

    uids: tuple[int, ...]
    note: Fragment


class DegradingView:
    """Shows a method's ranked items raw where they fit, else as an excerpt, else as the method's own note, else not.

    An item of several units is tried unit by unit; its note stands in the first one's place. Of items that share a unit
    the better one has it.
    """

    def __init__(self, build: IndexedBuild, rank: Callable[[Query], Sequence[RankedItem]], rules: DegradeRules) -> None:
        self._build = build
        self._rank = rank
        self._rules = rules

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """The memory for one call, in time order (`MemoryView.render`)."""
        require_room(budget.room, 0, "nothing")
        notes: dict[int, Fragment | None] = {}
        for item in self._rank(query):
            fresh = [uid for uid in item.uids if uid not in notes]
            notes.update(dict.fromkeys(fresh))
            if fresh:
                notes[fresh[0]] = item.note

        def raw(uid: int) -> Fragment:
            return raw_fragment(self._build, uid)

        forms = Forms(raw, Excerpts(self._build, query, self._rules.excerpt_min), notes.__getitem__, {})
        plan = fit_or_degrade(list(notes), len(self._build.units), budget.room, forms, self._rules)
        while True:
            fragments = [plan.fragments[uid] for uid in sorted(plan.fragments)]
            if total_tokens(fragments) <= budget.room or not fragments:
                break
            plan.drop_last()
        return assemble(fragments, ranking=list(notes), degraded=plan.degraded)
