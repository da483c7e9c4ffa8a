"""FlexA-Mem's renderings against a second, plainer implementation of docs/methods.md A.5 to A.7, and against that one
with a single rule broken.
"""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.contract.cases import WordEmbedder, services
from flexmem.history import Unit
from flexmem.memory.flexa.build import FlexaBuild
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.protocol import Budget, Query, TaskKind
from tests.memory.examples import TOPICS, history, speech

from .reference import Reference, Rules


def question(seed: int, kind: TaskKind) -> Query:
    """About a few names and topics, or about a single word, to which most pieces say nothing."""
    drawn = random.Random(-seed - 1)
    return query(f"What of the {speech(drawn, 2) if seed % 2 else drawn.choice(TOPICS)}", kind)


def query(text: str, kind: TaskKind) -> Query:
    async def make() -> Query:
        own, task = await WordEmbedder().embed([text, "Find the violin and the letter."])
        if kind == "reader":
            return Query.question(text, own)
        return Query(text, (own + task) / np.linalg.norm(own + task), text, own, "Find the violin and the letter.")

    return asyncio.run(make())


def texts(config: FlexaConfig, units: list[Unit], calls: list[tuple[Query, Budget]]) -> list[str]:
    """The real renderings, one after the other from one build."""
    build = FlexaBuild(config, services())

    async def run() -> list[str]:
        shown = []
        for unit in units:
            await build.write(unit)
        for query, budget in calls:
            rendering = await build.view().render(query, budget)
            assert rendering.tokens == tokens.count(rendering.text) <= budget.room
            shown.append(rendering.text)
        return shown

    return asyncio.run(run())


def reference(config: FlexaConfig, units: list[Unit], rules: Rules | None = None) -> Reference:
    made = Reference(config, WordEmbedder(), rules or Rules())
    for unit in units:
        made.write(unit)
    return made


OPTIONS = [
    {"mode": "piece"},
    {"mode": "piece", "timeline": False},
    {"mode": "piece", "timeline_share": 0.6},
    {"mode": "unit"},
    {"mode": "unit", "timeline": False},
    {"mode": "unit", "recovery": False},
    {"mode": "unit", "excerpts": False},
    {"mode": "unit", "raw_replaces_record": False},
    {"mode": "unit", "excerpt_cap": 64, "least_anchors": 2, "anchor_room_factor": 0.5},
]


@pytest.mark.parametrize("kind", ["reader", "agent"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(f"{k}={v}" for k, v in options.items()))
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), room=st.integers(64, 900), window=st.integers(0, 2_000), number=st.integers(2, 40))
@example(seed=1, room=300, window=900, number=40)
def test_renderings_equal_the_plain_implementation(
    kind: TaskKind, options: dict[str, object], seed: int, room: int, window: int, number: int
) -> None:
    config = FlexaConfig.model_validate(options)
    units = history(seed, kind, number)
    regular = Budget(2 * room, room // 2)
    budgets = [regular, Budget(room + window, window), regular] if kind == "agent" else [Budget(room), Budget(2 * room)]
    calls = [(question(seed + n, kind), budget) for n, budget in enumerate(budgets)]
    plain = reference(config, units)
    assert texts(config, units, calls) == [plain.render(*call) for call in calls]


# ---------------------------------------------------------------- one rule broken

_SMALL = {"record_words": 14, "merge_words": 20, "least_anchors": 3, "anchor_room_factor": 0.5}
UNIT, PIECE = FlexaConfig(mode="unit", **_SMALL), FlexaConfig(mode="piece", **_SMALL)
SHORT = UNIT.model_copy(update={"excerpt_cap": 64})
WRONG = {
    "stop words kept": (PIECE, Rules(stop_words_dropped=False)),
    "ties by index instead of cosine": (PIECE, Rules(cosine_breaks_ties=False)),
    "a merge of five": (PIECE, Rules(merge_group=5)),
    "newest records not protected": (PIECE, Rules(protected=0)),
    "gap marks not charged": (PIECE, Rules(gap_marks_charged=False)),
    "headers not charged": (PIECE, Rules(headers_charged=False)),
    "unused allowance not lent": (PIECE, Rules(allowance_lent=False)),
    "pieces' units in rank order": (PIECE, Rules(pieces_in_time_order=False)),
    "neighbour decay ignored": (UNIT, Rules(decay_applied=False)),
    "no neighbours": (UNIT, Rules(neighbours_join=False)),
    "hidden entries merged": (UNIT, Rules(merges_to_reference=False)),
    "a raw unit pays for its record's line": (UNIT, Rules(raw_pays_for_its_line=True)),
    "an excerpt replaces its record's line": (UNIT, Rules(excerpt_replaces_line=True)),
    "excerpts without a cap": (SHORT, Rules(excerpts_capped=False)),
    "short excerpts shown": (UNIT, Rules(short_excerpts_refused=False)),
    "recovered units behind the timeline": (UNIT, Rules(recovered_in_place=False)),
    "units by their own vector, not their record's": (UNIT, Rules(units_by_record=False)),
}
AGENTS_ONLY = ("hidden entries merged",)


@pytest.mark.parametrize("name", WRONG)
def test_the_reference_tells_every_wrong_variant(name: str) -> None:
    """On four histories and a few rooms the right rules give the real text, and the broken rule does not always."""
    config, rules = WRONG[name]
    kind: TaskKind = "agent" if name in AGENTS_ONLY else "reader"
    budgets = [Budget(400), Budget(700), Budget(1_000)]
    if kind == "agent":
        budgets = [Budget(1_600, 400), Budget(2_200, 1_600)]
    told = []
    for seed in (2, 3, 4, 5):
        units = history(seed, kind, 50)
        right, wrong = reference(config, units), reference(config, units, rules)
        calls = [(question(seed, kind), budget) for budget in budgets]
        expected = texts(config, units, calls)
        assert [right.render(*call) for call in calls] == expected
        told.append([wrong.render(*call) for call in calls] != expected)
    assert any(told)
