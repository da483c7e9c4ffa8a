"""``truncation``: the newest units, contiguous (docs/methods.md B.1)."""

from __future__ import annotations

from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.protocol import Budget, FidelityCard, MethodConfig, MethodInfo, Query, Rendering, Resolution
from flexmem.memory.registry import MethodSpec
from flexmem.memory.selection import Fragment, Selection, Stop, group_fragment
from flexmem.memory.unit_forms import raw_fragment
from flexmem.ports import IndexConfig, Services

_UP_TO_THE_FIRST_MISS = Stop(least_room=0, most_misses=1)


class TruncationConfig(MethodConfig):
    """Nothing to set."""


class TruncationBuild(IndexedBuild):
    """Units as they are."""

    def __init__(self, config: TruncationConfig, services: Services) -> None:
        super().__init__("truncation", config, services, IndexConfig(dense=False))

    def view(self) -> TruncationView:
        return TruncationView(self)


class TruncationView:
    """Reading changes nothing."""

    def __init__(self, build: TruncationBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """Newest units whole while they fit; the next older one is cut from its start, its header kept
        (`MemoryView.render`).
        """
        require_room(budget.room, 0, "nothing")
        left = budget.room
        fragments: list[Fragment] = []
        for unit in reversed(self._build.units):
            if unit.tokens <= left:
                fragments.append(raw_fragment(self._build, unit.uid))
                left -= unit.tokens
                continue
            tail = self._tail(unit.uid, left)
            if tail is not None:
                fragments.append(tail)
            break
        fragments.reverse()
        return assemble(fragments, ranking=[fragment.uids[0] for fragment in reversed(fragments)])

    def _tail(self, uid: int, room: int) -> Fragment | None:
        """The unit's last pieces that fit, under its header."""
        table = self._build.table
        selection = Selection(table)
        selection.fill(reversed(self._build.index.unit_pieces(uid)), room, _UP_TO_THE_FIRST_MISS)
        while selection.order:
            fragment = group_fragment(table, uid, selection.groups()[uid], Resolution.EXCERPT)
            if fragment.tokens <= room:
                return fragment
            selection.drop_last()
        return None


METHODS = (
    MethodSpec(
        MethodInfo(
            name="truncation",
            family="no written memory",
            summary="the newest units that fit; the oldest shown is cut from its start",
            card=FidelityCard(
                source="FlexA-Mem §4.2 (recency truncation)",
                follows="newest first, contiguous",
                ours="the unit that does not fit is cut at piece boundaries, its header kept",
                differs="no reference code could be read",
                tuning="nothing tuned",
            ),
        ),
        TruncationConfig(),
        TruncationBuild,
    ),
)
