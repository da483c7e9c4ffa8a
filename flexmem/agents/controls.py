"""Control arms: what the harness itself shows in place of a method (docs/methods.md B.1). They may see gold; methods
never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flexmem.agents.choice_controls import CHOICE_CONTROLS
from flexmem.agents.evidence import EvidenceMap
from flexmem.memory.assemble import assemble, total_tokens
from flexmem.memory.base import IndexedBuild
from flexmem.memory.protocol import MethodConfig, Rendering
from flexmem.memory.selection import Selection, Stop, selection_fragments
from flexmem.memory.unit_forms import raw_fragment
from flexmem.ports import IndexConfig, Services

CONTROLS: Mapping[str, str] = {
    "no_memory": "nothing is shown",
    "full_history": "everything is shown, whatever the budget",
    "oracle_evidence": "the gold evidence turns are shown, in time order, as far as the budget allows",
    **CHOICE_CONTROLS,
}
AGENT_CONTROLS: frozenset[str] = frozenset({"no_memory", "full_history"})
"""Those that an agent can act with: no memory beside the recent window, and every step in it."""
WITHOUT_BUDGET: frozenset[str] = frozenset({"no_memory", "full_history", *CHOICE_CONTROLS})


class ControlBuild(IndexedBuild):
    """The history, cut as methods cut it."""

    def __init__(self, services: Services) -> None:
        super().__init__("control", MethodConfig(), services, IndexConfig(dense=False))


def nothing() -> Rendering:
    """The arm ``no_memory``."""
    return assemble([])


def full_history(build: IndexedBuild) -> Rendering:
    """The arm ``full_history``: every unit whole."""
    return assemble([raw_fragment(build, unit.uid) for unit in build.units])


def oracle_evidence(build: IndexedBuild, places: EvidenceMap, evidence: Iterable[str], room: int) -> Rendering:
    """The arm ``oracle_evidence``: the evidence turns' pieces while they fit into ``room`` tokens, earlier turns
    first.
    """
    pieces = sorted({piece for turn_id in evidence for piece in places.pieces_of(turn_id)})
    selection = Selection(build.table)
    selection.fill(pieces, room, Stop(least_room=0, most_misses=len(pieces) + 1))
    while total_tokens(fragments := selection_fragments(build.table, selection)) > room:
        selection.drop_last()
    return assemble(fragments, ranking=selection.order)
