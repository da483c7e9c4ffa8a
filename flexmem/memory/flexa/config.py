"""FlexA-Mem's configuration: the paper's values, and ours where it is silent (docs/methods.md A.1, A.2)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from flexmem.memory.protocol import MethodConfig


class FlexaConfig(MethodConfig):
    """Every switch of FlexA-Mem. Values without a paper's section are ours: set on development data, or for the reason
    given.
    """

    mode: Literal["unit", "piece"] = "unit"
    """Unit recovery (the paper's for agents) or piece recovery (for questions); FlexA-Mem §3.5."""

    timeline: bool = True
    """False: no timeline, the room is all of M (ablation ``recovery_only``)."""
    recovery: bool = True
    """False: the room beside the timeline stays unused (ablation ``timeline_only``)."""
    excerpts: bool = True
    """False: a unit is raw or a record (ablation ``no_excerpt``; FlexA-Mem E.10)."""
    candidates: Literal["ranked", "random"] = "ranked"
    """``random``: a seeded permutation of all units or pieces in place of the ranking."""
    raw_first: bool = False
    """Two passes: raw for every candidate that fits, then excerpts (FlexA-Mem E.11)."""

    timeline_share: float = Field(0.25, gt=0, lt=1)
    """Rho: the timeline's allowance as a share of M; reproduces the paper's 24 % of records (E.10)."""
    protect_newest: int = Field(2, ge=0)
    """Newest records that are merged only when nothing else is left: the trace stays readable."""
    merge_group: int = Field(4, ge=2)
    """Records merged at a time; FlexA-Mem §3.2."""
    merge_words: int = 120
    """What the merge is asked for; FlexA-Mem App. A."""
    merge_cut_words: int = 150
    """Where a longer merged record is cut; FlexA-Mem App. A."""
    merge_policy: Literal["oldest", "level"] = "oldest"
    """``oldest``: the oldest entries, merged ones included. ``level``: the oldest run of the lowest merge level."""

    record_words: int = 80
    """A record's cut; FlexA-Mem §3.1."""
    writer: Literal["rule", "model"] = "rule"
    """Who writes records and merged records; FlexA-Mem E.8."""

    links_per_unit: int = Field(3, ge=0)
    """Links by cosine, and as many by shared entities."""
    link_cosine: float = 0.45
    """The least cosine of a linked record."""
    link_entities: int = Field(2, ge=1)
    """Rare entities that two linked records share."""
    rare_entity_df: int = Field(5, ge=1)
    """An entity in more records than this is not rare."""
    neighbour_decay: float | None = Field(None, ge=0, le=1)
    """What a linked or adjacent unit keeps of its anchor's score; None: 0.6 for readers, 0.8 for agents."""
    least_anchors: int = Field(10, ge=1)
    """Anchors are at least this many (A-Mem's retrieval default) ..."""
    anchor_room_factor: float = Field(1.5, gt=0)
    """... and this many times the units that the room could hold: a fixed 10 leaves room unused at 32k."""

    excerpt_cap: int = Field(512, ge=1)
    """Tokens of an excerpt at most: one to two excerpts a call, as in the paper's E.10."""
    excerpt_min: int = 40
    """A shorter excerpt is not worth its header."""
    raw_replaces_record: bool = True
    """A raw unit stands in its record's place (FlexA-Mem §2); False keeps the record's line beside it."""

    piece_tokens: int = Field(128, ge=8)
    """Lines are packed into pieces up to this size."""
    least_room: int = 20
    """Piece recovery stops when less room is left ..."""
    most_misses: int = 200
    """... or when this many pieces in a row did not fit."""
    bm25: Literal["flexmem", "rank_bm25"] = "flexmem"
    """The lexical back-end; ``rank_bm25`` is the reference, rebuilt on every append."""

    def decay(self, kind: str) -> float:
        """The neighbour decay for agents' or readers' units."""
        if self.neighbour_decay is not None:
            return self.neighbour_decay
        return 0.8 if kind == "agent" else 0.6
