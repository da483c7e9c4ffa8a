"""FlexA-Mem's registered forms: its two modes, its ablations and variants (docs/methods.md A.9)."""

from __future__ import annotations

from dataclasses import replace

from flexmem.memory.flexa.build import FlexaBuild
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.model_writer import PROMPTS
from flexmem.memory.protocol import FidelityCard, MethodInfo
from flexmem.memory.registry import MethodSpec, variant

_CARD = FidelityCard(
    source="FlexA-Mem, arXiv 2610.33274",
    follows="units, record length, merging by four to 120 words cut at 150, hiding, in-place recovery in strict rank "
    "order, excerpts, piece recovery with BM25 and cosine ties, lending",
    ours="the timeline's share, piece size, anchors, links, neighbour decay, excerpt sizes, the rule writer, and what "
    "the budget covers (docs/methods.md A.2)",
    differs="the paper's code could not be read; records are written by rule unless a memory model is configured",
    tuning="free values set on development data or from the paper's reported shares (docs/methods.md A.2, E.6c)",
)


def _declares(config: FlexaConfig, info: MethodInfo) -> MethodInfo:
    by_model = config.writer == "model"
    return replace(info, writes_with_model=by_model, reads_with_model=by_model and config.timeline)


def _spec(name: str, summary: str, config: FlexaConfig) -> MethodSpec:
    return MethodSpec(
        MethodInfo(name=name, family="FlexA-Mem", summary=summary, card=_CARD, prompts=PROMPTS),
        config,
        FlexaBuild,
        _declares,
    )


UNIT = _spec(
    "flexa_unit",
    "a timeline of records, and units recovered in place: raw, excerpt or record (the paper's mode for agents)",
    FlexaConfig(mode="unit"),
)
PIECE = _spec(
    "flexa_piece",
    "a timeline of records, and the history's best pieces beside it (the paper's mode for questions)",
    FlexaConfig(mode="piece"),
)

METHODS = (
    UNIT,
    PIECE,
    variant(UNIT, "timeline_only", "the timeline alone; the room beside it stays unused", recovery=False),
    variant(UNIT, "recovery_only", "no timeline; recovered units fill the room", timeline=False),
    variant(UNIT, "no_excerpt", "a unit is raw or a record, never an excerpt", excerpts=False),
    variant(
        UNIT, "random_candidates", "control: units in seeded random order in place of the ranking", candidates="random"
    ),
    variant(UNIT, "short_excerpt", "excerpts of at most 256 tokens", excerpt_cap=256),
    variant(UNIT, "raw_first", "raw for every candidate that fits, then excerpts", raw_first=True),
    variant(UNIT, "keep_record", "a raw unit's record line stays beside it", raw_replaces_record=False),
    variant(UNIT, "merge_level", "merges the oldest run of the lowest merge level", merge_policy="level"),
    variant(PIECE, "random_candidates", "control: pieces in seeded random order", candidates="random"),
    variant(PIECE, "merge_level", "merges the oldest run of the lowest merge level", merge_policy="level"),
)
