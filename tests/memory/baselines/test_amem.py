"""``amem`` and its forms: notes that link themselves and change their neighbours (docs/methods.md B.2)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.contract.cases import Case, cases, services
from flexmem.history import Unit
from flexmem.llm.errors import ModelError, Refused
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.baselines.amem.notes import Note
from flexmem.memory.baselines.amem.writing import EvolutionReply, evolved
from flexmem.memory.prompts import template
from flexmem.memory.protocol import MemoryBuild, MethodError, Rendering, Resolution, TaskKind
from flexmem.memory.registry import find_method
from flexmem.ports import ChatRequest
from tests.memory.baselines.obliging import (
    Obliging,
    as_json,
    fields_of,
    keeps_the_contract,
    numbers_in,
    prompt_of,
    uid_in,
)
from tests.memory.examples import CompassEmbedder, chat, compass_query, shown, wait, words, written

NAMES = ("amem", "amem.no_evolution", "amem.paper_k", "fit_or_degrade.amem")
RAW, EXCERPT, NOTE = Resolution.RAW, Resolution.EXCERPT, Resolution.NOTE

# ---------------------------------------------------------------- four notes, worked by hand
#
# Directions as (north, east); what is indexed is content, context, keywords and tags. Two neighbours are shown.
#
#   u0  "red east"                          its own direction (0, 1)
#   u1  sixty words without a direction     none (0, 0)
#   u2  "green north"                       (1, 0)
#   u3  "one two north east"                (1, 1)
#
# u1 is written: its one neighbour is u0; the model wants no evolution.
# u2 is written: e(content) is north; u0 and u1 have cosine 0, so by id: neighbours 0 and 1. The model links u2 with
#     note 1, and describes both neighbours anew: u0 becomes (0, 1) + "north north" = (2, 1); u1 stays without.
# u3 is written: e(content) is (1, 1). Cosines: u0 (2 + 1) / (√2 √5) = 0.95; u2 1 / √2 = 0.71; u1 0. So its neighbours
#     are notes 0 and 2. The model links it with 2 and with 7, which is no neighbour's id; it leaves the first
#     neighbour, note 0, as it is (a blank) and gives the second, note 2, "east east east": (1, 3).
#
# Question to the east: u0 (2, 1) 1 / √5 = 0.45; u1 0; u2 (1, 3) 3 / √10 = 0.95; u3 1 / √2 = 0.71.
# By cosine: 2, 3, 0, 1. The first two notes are 2 and 3; 2 is linked with 1, 3 with 2; the one that is left is 0.
CONTENTS = ["red east", words(60), "green north", "one two north east"]
UNITS = chat(*[[text] for text in CONTENTS])
RANKING = [2, 3, 1, 0]
QUERY = compass_query("What is in the east?", "east")
DECISIONS: dict[int, dict[str, Any]] = {
    1: {"evolve": False, "neighbour_contexts": ["east"]},
    2: {"connections": [1], "neighbour_contexts": ["north north", "sixty"], "neighbour_tags": [["t0"], ["new"]]},
    3: {"connections": [2, 7], "tags": ["fresh"], "neighbour_contexts": ["", "east east east"], "neighbour_tags": [[]]},
}


def metadata(uid: int) -> str:
    return as_json(context=f"note {uid}", keywords=[f"k{uid}", " ", f"k{uid}"], tags=[f"t{uid}"])


def evolution(**decided: object) -> str:
    base = {"evolve": True, "actions": ["strengthen", "update_neighbours"], "connections": [], "tags": []}
    return json.dumps({**base, "neighbour_contexts": [], "neighbour_tags": [], **decided})


def scripted(request: ChatRequest) -> str:
    uid = uid_in(prompt_of(request))
    return evolution(**DECISIONS[uid]) if "evolve" in fields_of(request) else metadata(uid)


def build_of(
    name: str = "amem", units: Sequence[Unit] = UNITS, model: ScriptedModel | None = None, **options: Any
) -> Any:
    options = {"neighbours": 2, "top_k": 2, **options}
    return written(name, units, model=model or ScriptedModel(scripted), **options)


def ranking(build: MemoryBuild) -> list[int]:
    return list(shown(build, QUERY, 10_000).ranking)


def test_the_ranking_worked_by_hand() -> None:
    build = build_of()
    assert build.store.notes == [
        Note("north north", ("k0",), ("t0",)),
        Note("sixty", ("k1",), ("new",)),
        Note("east east east", ("k2",), ("t2",), (1,)),
        Note("note 3", ("k3",), ("fresh",), (2,)),
    ]
    assert ranking(build) == RANKING
    assert not build.fallbacks


def simulated(
    by_id: bool = True, current: bool = True, evolution: bool = True, links: str = "after", fill: bool = True
) -> list[int]:
    """The example's rules in plain numbers, with one of them changed."""
    own = [(0, 1), (0, 0), (1, 0), (1, 1)]
    added = [(0, 0)] * 4
    if evolution and current:
        added[0] = (2, 0)
        added[2 if by_id else 1] = (0, 3)
    linked = {2: [1], 3: [2]} if evolution else {}
    pointing = [np.add(*pair) for pair in zip(own, added, strict=True)]
    cosines = [float(v[1] / np.linalg.norm(v)) if any(v) else 0.0 for v in pointing]
    order = sorted(range(4), key=lambda uid: (-cosines[uid], uid))
    first = order[:2]
    if links == "beside":
        ranked = [each for uid in first for each in (uid, *linked.get(uid, []))]
    else:
        ranked = first + [each for uid in first for each in linked.get(uid, []) if links == "after"]
    return list(dict.fromkeys(ranked + (order if fill else [])))


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"by_id": False}, id="neighbours taken by their place among the results"),
        pytest.param({"current": False}, id="vectors of notes as they were first written"),
        pytest.param({"evolution": False}, id="no evolution"),
        pytest.param({"links": "none"}, id="links not followed"),
        pytest.param({"links": "beside"}, id="links ahead of better notes"),
        pytest.param({"fill": False}, id="nothing behind the links"),
    ],
)
def test_the_example_tells_wrong_variants(wrong: dict[str, Any]) -> None:
    assert simulated() == RANKING
    assert simulated(**wrong) != RANKING


def test_forms_and_options_are_the_examples_other_rankings() -> None:
    assert ranking(build_of("amem.no_evolution")) == simulated(evolution=False) == [0, 3, 1, 2]
    assert ranking(build_of("amem.paper_k")) == simulated(fill=False) == [2, 3, 1]
    assert ranking(build_of(link_order="beside")) == simulated(links="beside") == [2, 1, 3, 0]
    assert ranking(build_of(links_per_note=0)) == simulated(links="none") == [2, 3, 0, 1]


# Rank order 2, 3, 1, 0: notes 2 and 3 fit, note 1 with its sixty words doesn't, note 0 does. Shown in time order.
FILLED = """\
[u00 | session 1] north north
Keywords: k0
Tags: t0
### u00 — session 1
Ann: red east
[u02 | session 3] east east east
Keywords: k2
Tags: t2
### u02 — session 3
Ann: green north
[u03 | session 4] note 3
Keywords: k3
Tags: fresh
### u03 — session 4
Ann: one two north east
"""


def test_notes_fill_the_room_by_rank_and_stand_in_time_order() -> None:
    rendering = shown(build_of(), QUERY, tokens.count(FILLED))
    assert rendering.text == FILLED
    assert rendering.tokens == tokens.count(FILLED)
    assert [block.resolution for block in rendering.blocks] == [NOTE, RAW] * 3
    assert rendering.shown_pieces() == {0, 2, 3}
    less = shown(build_of(), QUERY, tokens.count(FILLED) - 1)
    assert [block.uids[0] for block in less.blocks] == [2, 2, 3, 3]


def test_a_note_that_was_shown_is_shown_as_later_ones_changed_it() -> None:
    build = build_of(units=UNITS[:2])
    assert "[u00 | session 1] note 0\n" in shown(build, QUERY, 10_000).text
    for unit in UNITS[2:]:
        wait(build.write(unit))
    assert shown(build, QUERY, 10_000) == shown(build_of(), QUERY, 10_000)


def test_a_best_note_larger_than_the_room_is_cut_at_its_end() -> None:
    """Head ``[u00 | session 1] note 0`` and two lines; then pieces of the content, a line of 24 tokens each at most:
    the header has 8 tokens, each line "Ann: " and nine words 2 + 9 + 1.
    """
    (unit,) = chat([words(9), words(9), words(9)])
    build = build_of(units=[unit])
    head = "[u00 | session 1] note 0\nKeywords: k0\nTags: t0\n"
    for lines in (1, 2):
        room = tokens.count(head) + 8 + 12 * lines + 11
        rendering = shown(build, QUERY, room)
        assert rendering.text == head + "### u00 — session 1\n" + f"Ann: {words(9)}\n" * lines
        assert [(block.resolution, len(block.pieces)) for block in rendering.blocks] == [(NOTE, 0), (EXCERPT, lines)]
    assert shown(build, QUERY, tokens.count(head) + 19).text == head
    without_head = shown(build, QUERY, tokens.count(head) - 1)  # 21 tokens hold the header and a line
    assert tokens.count(head) >= 21
    assert [block.resolution for block in without_head.blocks] == [EXCERPT]


def test_where_nothing_of_the_best_note_fits_others_may() -> None:
    first = chat([words(40) + " east"])[0]
    second = chat(["x"], ["one"])[1]
    build = build_of("amem.no_evolution", units=[first, second], model=ScriptedModel("garbage"))
    rendering = shown(build, QUERY, 11)  # the second unit: 8 + 2 + 1 + 1 tokens
    assert rendering.text == ""
    assert shown(build, QUERY, 12).text == second.text
    assert rendering.ranking == (0, 1)


# ---------------------------------------------------------------- what the model is asked


def test_a_first_note_has_metadata_alone_and_later_ones_evolve_among_the_nearest() -> None:
    model = ScriptedModel(scripted)
    build_of(model=model)
    asked = [(uid_in(prompt_of(request)), "evolve" in fields_of(request)) for request in model.requests]
    assert asked == [(0, False), (1, False), (1, True), (2, False), (2, True), (3, False), (3, True)]
    last = prompt_of(model.requests[-1])
    assert UNITS[3].text in last
    assert "the 2 notes nearest to it, each with its id (0, 2)" in last
    assert f"Note 0\nContext: north north\nKeywords: k0\nTags: t0\nContent:\n{UNITS[0].text}" in last
    assert f"Note 2\nContext: note 2\nKeywords: k2\nTags: t2\nContent:\n{UNITS[2].text}" in last
    assert UNITS[1].text not in last
    assert UNITS[3].text in prompt_of(model.requests[-2])
    assert all((r.role, r.effort, r.temperature, r.max_tokens) == ("memory", "low", 0.0, 1_000) for r in model.requests)


@pytest.mark.parametrize(("name", "placeholders"), [("amem_note", 1), ("amem_evolve", 4)])
def test_prompts_have_the_placeholders_that_are_filled(name: str, placeholders: int) -> None:
    assert len(template(name).get_identifiers()) == placeholders


def reply(**decided: object) -> EvolutionReply:
    return EvolutionReply.model_validate_json(evolution(**decided))


OLD = (Note("a", ("k",), ("x",)), Note("b", ("k",), ("y",)), Note("c", ("k",), ("z",)))


@pytest.mark.parametrize(
    ("decided", "note", "changed"),
    [
        ({"evolve": False, "connections": [0], "neighbour_contexts": ["new"]}, Note("n", (), ("t",)), {}),
        ({"actions": [], "connections": [0], "neighbour_contexts": ["new"]}, Note("n", (), ("t",)), {}),
        ({"connections": [2, 1, 2, 0, -1, 9]}, Note("n", (), ("t",), (2, 0)), {}),  # 1, -1 and 9 were not shown
        ({"tags": ["u", " u ", ""]}, Note("n", (), ("u",)), {}),
        (
            {"neighbour_contexts": ["p", "q", "r"]},
            Note("n", (), ("t",)),
            {2: Note("p", ("k",), ("z",)), 0: Note("q", ("k",), ("x",))},
        ),
        ({"neighbour_tags": [[" "], ["v"]]}, Note("n", (), ("t",)), {0: Note("a", ("k",), ("v",))}),
        ({"neighbour_contexts": ["c"]}, Note("n", (), ("t",)), {}),  # the same as before: nothing changed
        ({"actions": ["strengthen"], "neighbour_contexts": ["p"]}, Note("n", (), ("t",)), {}),
        ({"actions": ["update_neighbours"], "connections": [0], "tags": ["u"]}, Note("n", (), ("t",)), {}),
    ],
)
def test_what_a_reply_changes(decided: dict[str, object], note: Note, changed: dict[int, Note]) -> None:
    """Notes 2 and 0 were shown, in this order."""
    assert evolved(Note("n", (), ("t",)), [2, 0], OLD, reply(**decided)) == (note, changed)


# ---------------------------------------------------------------- models that are no help


@pytest.mark.parametrize("rule", ["garbage", "refuse"])
def test_without_usable_replies_notes_are_their_contents(rule: str) -> None:
    build = build_of(model=ScriptedModel(rule))
    assert build.fallbacks == {"note left without metadata": 4, "note left without evolution": 3}
    rendering = shown(build, QUERY, 10_000)
    assert rendering.text == "".join(unit.text for unit in UNITS)
    assert list(rendering.ranking) == simulated(evolution=False)


def test_metadata_alone_that_are_unusable_leave_the_evolution() -> None:
    def half(request: ChatRequest) -> str:
        return scripted(request) if "evolve" in fields_of(request) else "no"

    build = build_of(model=ScriptedModel(half))
    assert build.fallbacks == {"note left without metadata": 4}
    assert [note.links for note in build.store.notes] == [(), (), (1,), (2,)]
    assert build.store.notes[0] == Note("north north", (), ("t0",))


def test_a_failure_between_the_two_calls_asks_and_counts_nothing_twice() -> None:
    script: list[str | ModelError] = ["no", "no", "no", "no", ModelError("down"), evolution(evolve=False)]
    model = ScriptedModel(script)
    build = find_method("amem").configured().build(services(model))

    async def write() -> None:
        await build.write(UNITS[0])
        with pytest.raises(ModelError, match="down"):
            await build.write(UNITS[1])
        await build.write(UNITS[1])

    asyncio.run(write())
    assert build.fallbacks == {"note left without metadata": 2}
    assert model.calls.total() == 6


def test_a_refusal_is_no_failure() -> None:
    script: list[str | ModelError] = [Refused("no"), metadata(0)]
    assert not build_of(units=UNITS[:1], model=ScriptedModel(script)).fallbacks


@pytest.mark.parametrize("name", NAMES)
def test_it_says_that_it_needs_a_model(name: str) -> None:
    with pytest.raises(MethodError, match="needs a memory model"):
        find_method(name).configured().build(services())


# ---------------------------------------------------------------- fit or degrade


def test_with_fit_or_degrade_a_unit_is_raw_or_an_excerpt_or_its_note() -> None:
    """Rank order 2, 3, 1, 0 in a room of 100 less what 2 and 3 take raw, 8 + 2 + 2 + 1 and 8 + 2 + 4 + 1: 72 are left.
    u1 raw has 8 + 2 + 60 + 1 = 71 and fits: 1 is left, and neither u0 nor its note fits. In a room of 98, u1 doesn't
    fit: it is one piece, so there is no excerpt of it, but its note; then u0 is raw.
    """
    whole = shown(build_of("fit_or_degrade.amem"), QUERY, 100)
    assert [(block.uids[0], block.resolution) for block in whole.blocks] == [(1, RAW), (2, RAW), (3, RAW)]
    degraded = shown(build_of("fit_or_degrade.amem"), QUERY, 98)
    assert [(block.uids[0], block.resolution) for block in degraded.blocks] == [(0, RAW), (1, NOTE), (2, RAW), (3, RAW)]
    assert "[u01 | session 2] sixty\nKeywords: k1\nTags: new\n" in degraded.text
    assert degraded.ranking == tuple(RANKING)


def forms(rendering: Rendering) -> dict[int, Resolution]:
    return {block.uids[0]: block.resolution for block in rendering.blocks}


def test_without_the_plug_in_the_same_room_has_whole_notes_alone() -> None:
    """Notes 2 and 3 have 13 and 15 tokens of content and heads of some 20 each; what is left, 28 or so, holds neither
    note 0 (12 and its head) nor note 1.
    """
    rendering = shown(build_of(), QUERY, 98)
    assert forms(rendering) == {2: RAW, 3: RAW}
    assert 60 < rendering.tokens < 80


# ---------------------------------------------------------------- state and contract


def test_a_restored_build_has_changed_notes_links_and_vectors() -> None:
    build = build_of()
    other = find_method("amem").configured({"neighbours": 2, "top_k": 2}).build(services_at_the_compass())
    wait(other.restore(build.state()))
    assert ranking(other) == RANKING
    assert shown(other, QUERY, 10_000) == shown(build, QUERY, 10_000)


def services_at_the_compass() -> Any:
    return replace(services(ScriptedModel(scripted)), embedder=CompassEmbedder())


def helpful(request: ChatRequest) -> str:
    """Metadata of a few words; every evolution links and rewrites what the ids allow."""
    if "evolve" not in fields_of(request):
        some = prompt_of(request).split()[-5:]
        return as_json(context=" ".join(some), keywords=some[:2], tags=[f"tag{len(some[0])}"])
    ids = numbers_in(request, r"^Note (\d+)$")
    return evolution(
        evolve=len(prompt_of(request)) % 4 > 0,
        connections=ids[::2],
        tags=["linked"],
        neighbour_contexts=[f"beside {uid}" for uid in ids[:2]],
        neighbour_tags=[[], ["changed"]],
    )


@pytest.mark.parametrize("kind", ["reader", "agent"])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_contract_holds_with_a_helpful_model(name: str, kind: TaskKind, data: st.DataObject) -> None:
    case: Case = data.draw(cases(kind))
    keeps_the_contract(Obliging(name, helpful), case)
