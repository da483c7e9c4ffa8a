"""``summary`` and ``summary_amem``: a running summary, alone or in half of the room (docs/methods.md B.3)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.contract.cases import Case, cases, services
from flexmem.history import Unit
from flexmem.llm.errors import ModelError
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.prompts import template
from flexmem.memory.protocol import MethodError, Rendering, Resolution, TaskKind
from flexmem.memory.registry import UnknownMethodError, find_method
from flexmem.ports import ChatRequest, Services
from flexmem.retrieval.index import LocalIndex
from tests.memory.baselines.obliging import Obliging, as_json, fields_of, keeps_the_contract, prompt_of, uid_in
from tests.memory.examples import CompassEmbedder, chat, compass_query, shown, wait, words

RAW, SUMMARY = Resolution.RAW, Resolution.SUMMARY
QUERY = compass_query("What is in the north?", "north")


def at_the_compass(model: ScriptedModel, room: int | None) -> Services:
    embedder = CompassEmbedder()
    return Services(embedder, lambda config: LocalIndex(config, embedder if config.dense else None), model, room=room)


def build_of(name: str, units: Sequence[Unit], model: ScriptedModel, room: int | None, **options: Any) -> Any:
    build = find_method(name).configured(options).build(at_the_compass(model, room))

    async def write() -> None:
        for unit in units:
            await build.write(unit)

    wait(write())
    return build


# ---------------------------------------------------------------- three units, worked by hand
#
# The build's room has 51 tokens: floor(0.6 x 51) = floor(30.6) = 30 words. The model appends to the summary that it was
# shown the unit's words, w00 w01 ..., nothing left out:
#
#   u0 has 12 words                  12 words
#   u1 has 12 words                  24 words
#   u2 has 12 words: 36 come back    cut after 30, so u2's first six are in it
SAID = [" ".join(f"w{12 * uid + place:02d}" for place in range(12)) for uid in range(3)]
UNITS = chat(*[[said] for said in SAID])
ROOM = 51
TEXT = " ".join(f"w{place:02d}" for place in range(30))


def so_far(request: ChatRequest) -> str:
    """The summary that the prompt shows."""
    found = re.search(r"^Summary so far:\n(.*?)\n\nNext stretch:$", prompt_of(request), re.MULTILINE | re.DOTALL)
    assert found is not None
    return "" if found.group(1) == "(none yet)" else found.group(1)


def appending(request: ChatRequest) -> str:
    return f"{so_far(request)} {SAID[uid_in(prompt_of(request))]}"


def test_the_summary_worked_by_hand() -> None:
    model = ScriptedModel(appending)
    build = build_of("summary", UNITS, model, ROOM)
    assert build.summary.text == TEXT
    assert ["at most 30 words" in prompt_of(request) for request in model.requests] == [True] * 3
    rendering = shown(build, QUERY, 1_000)
    assert rendering.text == f"[u00-u02 | summary] {TEXT}\n"
    assert [(block.uids, block.resolution) for block in rendering.blocks] == [((0, 1, 2), SUMMARY)]
    assert not rendering.shown_pieces()
    assert not build.fallbacks


def simulated(words_allowed: int = 30, running: bool = True, cut: bool = True, newest_kept: bool = False) -> str:
    """The example's rules, with one of them changed."""
    text: list[str] = []
    for said in SAID:
        text = [*(text if running else []), *said.split()]
        if cut:
            text = text[-words_allowed:] if newest_kept else text[:words_allowed]
    return " ".join(text)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"words_allowed": 31}, id="0.6 M rounded up"),
        pytest.param({"words_allowed": 51}, id="as many words as tokens"),
        pytest.param({"running": False}, id="a summary of the last unit alone"),
        pytest.param({"cut": False}, id="a longer reply kept whole"),
        pytest.param({"newest_kept": True}, id="a longer reply cut at its start"),
    ],
)
def test_the_example_tells_wrong_variants(wrong: dict[str, Any]) -> None:
    assert simulated() == TEXT
    assert simulated(**wrong) != TEXT


def test_the_reply_has_room_for_the_summary_and_for_reasoning() -> None:
    for room, limit in ((ROOM, 600), (1_000, 2_000)):
        model = ScriptedModel(appending)
        build_of("summary", UNITS[:1], model, room)
        assert [request.max_tokens for request in model.requests] == [limit]


def test_a_room_smaller_than_the_summary_cuts_it_at_its_end() -> None:
    build = build_of("summary", UNITS, ScriptedModel(appending), ROOM)
    rendering = shown(build, QUERY, 30)
    assert 20 < rendering.tokens <= 30
    assert f"[u00-u02 | summary] {TEXT}".startswith(rendering.text.rstrip("\n"))


def test_a_single_units_summary_keeps_its_lines() -> None:
    build = build_of("summary", UNITS[:1], ScriptedModel(["- red\n- blue\n"]), ROOM)
    assert shown(build, QUERY, 100).text == "[u00 | summary] - red\n- blue\n"


def test_the_prompt_has_what_it_needs() -> None:
    model = ScriptedModel(appending)
    build_of("summary", UNITS[:2], model, ROOM)
    assert set(template("summary_fold").get_identifiers()) == {"words", "summary", "unit"}
    assert [so_far(request) for request in model.requests] == ["", f" {SAID[0]}".strip()]
    assert all(unit.text in prompt_of(request) for unit, request in zip(UNITS, model.requests, strict=False))


def test_a_model_that_refuses_leaves_the_newest_words() -> None:
    """Each unit adds "Ann:" and twelve words; of these 39 the last 30 stay: of u0 four."""
    build = build_of("summary", UNITS, ScriptedModel("refuse"), ROOM)
    spoken = " ".join(f"Ann: {said}" for said in SAID).split()
    assert build.summary.text == " ".join(spoken[-30:])
    assert build.summary.text.startswith("w08 w09 w10 w11 Ann: w12")
    assert build.fallbacks == {"unit's words appended to the summary, not folded in by the model": 3}


@pytest.mark.parametrize("name", ["summary", "summary_amem"])
def test_a_build_without_a_room_says_what_is_missing(name: str) -> None:
    build = find_method(name).configured().build(services(ScriptedModel("garbage")))
    with pytest.raises(MethodError, match=r"opened without one \(Services.room"):
        asyncio.run(build.write(UNITS[0]))
    with pytest.raises(MethodError, match="needs a memory model"):
        find_method(name).configured().build(services(room=100))


# ---------------------------------------------------------------- a fixed split, worked by hand
#
# Room 101, the summary's half floor(50.5) = 50, the notes' 51. The model writes the summary, and no metadata: a note is
# its content alone. Three units of 8 + 2 + 12 + 1 = 23 tokens: two of them, 46, fit into 51. The summary's line has 15
# tokens at most, so that 86 would be left for three units of 69 in all if it lent what it leaves.
#
# Question to the north: u1 and u2 point there, u0 does not.
HALVES = chat([words(12)], [f"north {words(11)}"], [f"north {words(11)}"])


def summary_alone(request: ChatRequest) -> str:
    return "no metadata" if request.schema else "red and blue"


def test_the_split_worked_by_hand() -> None:
    build = build_of("summary_amem", HALVES, ScriptedModel(summary_alone), 101)
    rendering = shown(build, QUERY, 101)
    assert rendering.text == "[u00-u02 | summary] red and blue\n" + HALVES[1].text + HALVES[2].text
    assert rendering.ranking == (1, 2, 0)
    assert simulated_notes(101) == [1, 2]


def simulated_notes(room: int, share: float = 0.5, lending: bool = False) -> list[int]:
    """Which of the three notes are shown, with one rule changed."""
    left = room - (15 if lending else int(share * room))
    shown_notes = []
    for uid in (1, 2, 0):
        if left >= 23:
            shown_notes.append(uid)
            left -= 23
    return sorted(shown_notes)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"lending": True}, id="notes get what the summary leaves"),
        pytest.param({"share": 0.25}, id="a quarter for the summary"),
        pytest.param({"share": 0.75}, id="three quarters for the summary"),
    ],
)
def test_the_split_example_tells_wrong_variants(wrong: dict[str, Any]) -> None:
    assert simulated_notes(101, **wrong) != [1, 2]
    build = build_of("summary_amem", HALVES, ScriptedModel(summary_alone), 101)
    assert notes_of(shown(build, QUERY, 101)) == simulated_notes(101)
    if "share" in wrong:
        other = build_of("summary_amem", HALVES, ScriptedModel(summary_alone), 101, summary_share=wrong["share"])
        assert notes_of(shown(other, QUERY, 101)) == simulated_notes(101, **wrong)


def notes_of(rendering: Rendering) -> list[int]:
    return [block.uids[0] for block in rendering.blocks if block.resolution is RAW]


def test_the_summary_is_asked_for_at_the_length_of_its_half() -> None:
    """floor(0.6 x 50) = 30 words of a room of 101."""
    model = ScriptedModel(summary_alone)
    build_of("summary_amem", HALVES, model, 101)
    folds = [prompt_of(request) for request in model.requests if request.schema is None]
    assert len(folds) == 3
    assert all("at most 30 words" in fold for fold in folds)


def test_a_summary_longer_than_its_half_is_cut() -> None:
    build = build_of("summary_amem", HALVES[:1], ScriptedModel(lambda request: words(400)), 1_000)
    rendering = shown(build, QUERY, 101)
    (first, *_) = rendering.blocks
    assert first.resolution is SUMMARY
    assert 40 < first.tokens <= 50
    assert notes_of(rendering) == [0]


def test_a_failure_after_the_summary_leaves_neither_part() -> None:
    script: list[str | ModelError] = ["red", ModelError("down"), "no", "no"]
    model = ScriptedModel(script)
    build: Any = find_method("summary_amem").configured().build(at_the_compass(model, 101))

    async def write() -> None:
        with pytest.raises(ModelError, match="down"):
            await build.write(HALVES[0])
        assert (build.summary.text, build.store.notes) == ("", [])
        await build.write(HALVES[0])

    asyncio.run(write())
    assert (build.summary.text, len(build.store.notes), model.calls.total()) == ("red", 1, 4)


def test_notes_beside_a_summary_are_whole() -> None:
    with pytest.raises(UnknownMethodError, match="degrade is an option of amem alone"):
        find_method("summary_amem").configured({"notes": {"degrade": {}}})


def test_both_states_come_back() -> None:
    for name in ("summary", "summary_amem"):
        build = build_of(name, HALVES, ScriptedModel(summary_alone), 101)
        other = find_method(name).configured().build(at_the_compass(ScriptedModel(summary_alone), 101))
        wait(other.restore(build.state()))
        assert shown(other, QUERY, 101) == shown(build, QUERY, 101)
        assert other.fallbacks == build.fallbacks


# ---------------------------------------------------------------- the contract


def helpful(request: ChatRequest) -> str:
    """The summary grows by five words of the unit; notes get metadata and a link."""
    prompt = prompt_of(request)
    if request.schema is None:
        return f"{so_far(request)}\n{' '.join(prompt.split()[-5:])}"
    if "evolve" not in fields_of(request):
        return as_json(context="a note", keywords=prompt.split()[-2:], tags=["tag"])
    return as_json(
        evolve=True,
        actions=["strengthen", "update_neighbours"],
        connections=[0],
        tags=["linked"],
        neighbour_contexts=["changed"],
        neighbour_tags=[],
    )


@pytest.mark.parametrize("kind", ["reader", "agent"])
@pytest.mark.parametrize("name", ["summary", "summary_amem"])
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_contract_holds_with_a_helpful_model(name: str, kind: TaskKind, data: st.DataObject) -> None:
    case: Case = data.draw(cases(kind))
    keeps_the_contract(Obliging(name, helpful), case)


def test_token_counts_of_the_example() -> None:
    assert [unit.tokens for unit in HALVES] == [23, 23, 23]
    assert tokens.count("[u00-u02 | summary] red and blue\n") <= 15
