"""A-Mem's configuration (docs/methods.md B.2)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from flexmem.memory.degrading import DegradeRules
from flexmem.memory.protocol import MethodConfig


class AMemConfig(MethodConfig):
    """A-Mem's values; those marked as ours are not in its paper or code."""

    evolution: bool = True
    """Whether each new note may link itself and change its neighbours: the paper's system. False: notes with metadata
    alone (``amem.no_evolution``)."""
    neighbours: int = Field(5, ge=1)
    """Nearest notes that the evolution call is shown; reference code."""
    top_k: int = Field(10, ge=1)
    """Notes that come first, by cosine; reference code."""
    links_per_note: int = Field(10, ge=0)
    """Links followed of each of them: the reference code follows as many as it retrieves notes."""
    link_order: Literal["after", "beside"] = "after"
    """``after``: links come behind all of the first notes, since a budget may end before the tenth, and a note that is
    near the query should not make way for one that is only linked (ours). ``beside``: each note's links directly behind
    it, as the reference code prints them."""
    fill: bool = True
    """Whether the remaining notes follow by cosine until the room ends (equal filling, ours). False: no more than the
    first notes and their links (``amem.paper_k``)."""
    reply_tokens: int = Field(1_000, ge=1)
    """Limit of each reply; reference code."""
    degrade: DegradeRules | None = None
    """Fit-or-degrade over the ranked notes (FlexA-Mem App. E.11); None: notes are shown whole."""
