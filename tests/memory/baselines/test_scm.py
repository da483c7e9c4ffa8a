"""``scm``: raw units and summaries, and a controller that chooses between them (docs/methods.md B.8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem.contract.cases import Case, cases, services
from flexmem.llm.errors import ModelError
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.prompts import template
from flexmem.memory.protocol import MethodError, Rendering, Resolution, TaskKind
from flexmem.memory.registry import find_method
from flexmem.ports import ChatRequest
from tests.memory.baselines.obliging import Obliging, as_json, keeps_the_contract, prompt_of, uid_in
from tests.memory.examples import chat, compass_query, shown, words, written

NAMES = ("scm", "scm.paper_k")
RAW, RECORD = Resolution.RAW, Resolution.RECORD
QUERY = compass_query("Who sang?", "north")

# ---------------------------------------------------------------- six units, worked by hand
#
# A unit of n words has 8 + 2 + n + 1 tokens; the line of its summary, four words, has 12.
#
#   unit                       raw     cosine with the question, to the north
#   u0  north, 29 more          41     1
#   u1  north east, 18 more     31     1 / √2 = 0.71
#   u2  north north east, 37    51     2 / √5 = 0.89
#   u3  east, 9 more            21     0
#   u4  3 words                 14     0
#   u5  5 words                 16     the previous unit: below 500 tokens, so raw
#
# Activated: u0, u2, u1. With u5 they have 41 + 51 + 31 + 16 = 139 tokens, more than the room of 110: they are judged.
# The model says of u0 that it helps and its summary doesn't suffice, of u2 that its summary does, of u1 that it is no
# help: u0 raw 41, u2's summary 12, u1 dropped; with u5 69. Of the 41 left, u3 takes 21 raw and u4 14; u1 does not come
# back.
UNITS = chat(
    [f"north {words(29)}"],
    [f"north east {words(18)}"],
    [f"north north east {words(37)}"],
    [f"east {words(9)}"],
    [words(3)],
    [words(5)],
)
ROOM = 110
SIZES = (41, 31, 51, 21, 14, 16)
SUMMARY = words(4)
ACTIVE, OTHERS, PREVIOUS = (0, 2, 1), (3, 4), 5
JUDGED = {0: (True, False), 2: (True, True), 1: (False, True)}
SHOWN = {0: RAW, 2: RECORD, 3: RAW, 4: RAW, 5: RAW}


def judging(judged: Mapping[int, tuple[bool, bool]] = JUDGED) -> ScriptedModel:
    """Summaries of four words; units are judged as given, the others not at all."""

    def answer(request: ChatRequest) -> str:
        if request.schema is None:
            return SUMMARY
        uid = uid_in(prompt_of(request))
        if uid not in judged:
            return "well"
        return as_json(raw_helps=judged[uid][0], summary_suffices=judged[uid][1])

    return ScriptedModel(answer)


def build_of(name: str = "scm", model: ScriptedModel | None = None, **options: Any) -> Any:
    return written(name, UNITS, model=model or judging(), **options)


def forms(rendering: Rendering) -> dict[int, Resolution]:
    return {block.uids[0]: block.resolution for block in rendering.blocks}


def test_the_choice_worked_by_hand() -> None:
    assert tuple(unit.tokens for unit in UNITS) == SIZES
    model = judging()
    rendering = shown(build_of(model=model), QUERY, ROOM)
    assert forms(rendering) == SHOWN
    assert rendering.tokens == 41 + 12 + 21 + 14 + 16
    assert rendering.ranking == (5, 0, 2, 1, 3, 4)
    assert rendering.text == f"{UNITS[0].text}[u02 | session 3] {SUMMARY}\n" + "".join(
        UNITS[uid].text for uid in (3, 4, 5)
    )
    assert model.calls.total() == 6 + 3


def simulated(
    judged: Mapping[int, tuple[bool, bool]] = JUDGED,
    drops: bool = True,
    suffices: bool = True,
    fills: bool = True,
    previous_apart: bool = True,
    dropped_may_fill: bool = False,
    worst_first: bool = True,
) -> dict[int, Resolution]:
    """The example's rules in plain numbers, with one of them changed."""
    active, others = (ACTIVE, OTHERS) if previous_apart else (ACTIVE[:2], (1, *OTHERS))
    plan: dict[int, Resolution] = {PREVIOUS: RAW, **dict.fromkeys(active, RAW)}

    def total() -> int:
        return sum(SIZES[uid] if form is RAW else 12 for uid, form in plan.items())

    if total() > ROOM:
        for uid in active:
            helps, enough = judged.get(uid, (True, False))
            if not helps and drops:
                del plan[uid]
            elif enough and suffices:
                plan[uid] = RECORD
        ranked = [PREVIOUS, *active]
        for uid in reversed(ranked) if worst_first else ranked:
            if uid in plan and total() > ROOM:
                plan[uid] = RECORD
    for uid in (*((1,) if dropped_may_fill else ()), *others) if fills else ():
        if uid not in plan:
            for form, size in ((RAW, SIZES[uid]), (RECORD, 12)):
                if size <= ROOM - total():
                    plan[uid] = form
                    break
    return dict(sorted(plan.items()))


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"drops": False}, id="what is no help stays"),
        pytest.param({"suffices": False}, id="raw although the summary suffices"),
        pytest.param({"fills": False}, id="the room left over stays empty"),
        pytest.param({"dropped_may_fill": True}, id="a dropped unit comes back to fill the room"),
        pytest.param({"previous_apart": False}, id="the previous unit is one of the three"),
    ],
)
def test_the_example_tells_wrong_variants(wrong: dict[str, bool]) -> None:
    assert simulated() == SHOWN
    assert simulated(**wrong) != SHOWN


# All judged as helpful and their summaries as not enough: 139 tokens of raw units in 110. From the lowest rank on they
# become summaries: u1 saves 31 - 12, 120; u2 51 - 12, 81. The 29 left hold u3 raw, 21, and then nothing of u4.
SHRUNK = {0: RAW, 1: RECORD, 2: RECORD, 3: RAW, 5: RAW}


def test_raw_units_become_summaries_from_the_lowest_rank_on() -> None:
    needed = dict.fromkeys(ACTIVE, (True, False))
    assert forms(shown(build_of(model=judging(needed)), QUERY, ROOM)) == SHRUNK
    assert simulated(needed) == SHRUNK
    assert simulated(needed, worst_first=False) != SHRUNK


def test_what_fits_is_not_judged() -> None:
    """139 tokens for the four; of 150 the 11 left hold nothing of u3."""
    model = judging()
    assert forms(shown(build_of(model=model), QUERY, 150)) == {0: RAW, 1: RAW, 2: RAW, 5: RAW}
    assert forms(shown(build_of(model=model), QUERY, 160)) == {0: RAW, 1: RAW, 2: RAW, 3: RAW, 5: RAW}
    assert all(request.schema is None for request in model.requests)


def test_what_does_not_fit_even_as_summaries_is_given_up_by_rank() -> None:
    """All summaries, of the previous unit too: 48 tokens; in 40 u1's goes, in 20 u2's and u0's as well."""
    needed = dict.fromkeys(ACTIVE, (True, False))
    assert forms(shown(build_of(model=judging(needed)), QUERY, 40)) == {0: RECORD, 2: RECORD, 5: RECORD}
    assert forms(shown(build_of(model=judging(needed)), QUERY, 20)) == {5: RECORD}
    cut = shown(build_of(model=judging(needed)), QUERY, 11)
    assert f"[u05 | session 6] {SUMMARY}".startswith(cut.text.rstrip("\n"))
    assert 8 < cut.tokens <= 11


def test_the_previous_unit_is_raw_below_its_limit_alone() -> None:
    """u5 has 16 tokens."""
    assert forms(shown(build_of(previous_tokens=17), QUERY, 200))[5] is RAW
    assert forms(shown(build_of(previous_tokens=16), QUERY, 200))[5] is RECORD
    (large,) = chat([words(489)])
    (small,) = chat([words(488)])
    assert (large.tokens, small.tokens) == (500, 499)
    for unit, form in ((large, RECORD), (small, RAW)):
        assert forms(shown(written("scm", [unit], model=judging()), QUERY, 900)) == {0: form}


def test_with_the_papers_number_there_are_no_more_than_four() -> None:
    """A limit of 110 within a room of 1,000; then the room alone counts, where it is the smaller one."""
    assert forms(shown(build_of("scm.paper_k", limit=ROOM), QUERY, 1_000)) == simulated(fills=False)
    assert forms(shown(build_of("scm.paper_k"), QUERY, 1_000)) == {0: RAW, 1: RAW, 2: RAW, 5: RAW}
    rendering = shown(build_of("scm.paper_k"), QUERY, ROOM)
    assert forms(rendering) == {0: RAW, 2: RECORD, 5: RAW}
    assert rendering.ranking == (5, 0, 2, 1)
    assert find_method("scm.paper_k").configured().config.model_dump()["limit"] == 2_500


def test_a_summary_longer_than_its_unit_takes_no_ones_place() -> None:
    """u0 is "red", 12 tokens; its summary has 80 words. Room 25 for u0 and u1 of 14 and 12: u0 goes."""
    units = chat(["red blue green"], ["red"])
    build = written("scm", units, model=ScriptedModel(lambda r: words(80) if r.schema is None else "well"))
    assert forms(shown(build, QUERY, 25)) == {1: RAW}


# ---------------------------------------------------------------- what the model is asked


def test_a_judgement_is_asked_with_both_forms_and_the_question() -> None:
    model = judging()
    shown(build_of(model=model), QUERY, ROOM)
    judged = [prompt_of(request) for request in model.requests if request.schema]
    assert [uid_in(prompt) for prompt in judged] == [0, 2, 1]
    assert all(f"What it has to deal with:\nWho sang?\n\nSummary of the stretch:\n{SUMMARY}\n" in p for p in judged)
    assert all(UNITS[uid].text in prompt for uid, prompt in zip(ACTIVE, judged, strict=True))
    summaries = [prompt_of(request) for request in model.requests if not request.schema]
    assert all(unit.text in prompt for unit, prompt in zip(UNITS, summaries, strict=True))
    assert all("at most 80 words" in prompt for prompt in summaries)


@pytest.mark.parametrize(
    ("name", "placeholders"), [("scm_summary", {"words", "unit"}), ("scm_judge", {"call", "summary", "unit"})]
)
def test_prompts_have_the_placeholders_that_are_filled(name: str, placeholders: set[str]) -> None:
    assert set(template(name).get_identifiers()) == placeholders


# ---------------------------------------------------------------- models that are no help


def test_units_without_a_judgement_stay_raw_until_room_is_needed() -> None:
    build = build_of(model=judging({}))
    assert forms(shown(build, QUERY, ROOM)) == SHRUNK
    assert build.fallbacks == {"unit kept raw, not judged by the model": 3}


def test_a_model_that_refuses_leaves_summaries_of_the_units_own_words() -> None:
    build = build_of(model=ScriptedModel("refuse"), summary_words=4)
    rendering = shown(build, QUERY, ROOM)
    assert rendering.blocks
    assert "[u02 | session 3] Ann: north north east\n" in rendering.text
    assert build.fallbacks == {
        "summary of the unit's own first words, not written by the model": 6,
        "unit kept raw, not judged by the model": 3,
    }


def test_a_failure_of_the_model_is_the_callers() -> None:
    build = build_of(model=ScriptedModel([SUMMARY] * 6 + [ModelError("down")]))
    with pytest.raises(ModelError, match="down"):
        shown(build, QUERY, ROOM)


def test_an_empty_memory_asks_nothing() -> None:
    model = judging()
    assert shown(written("scm", [], model=model), QUERY, ROOM).text == ""
    assert not model.requests


@pytest.mark.parametrize("name", NAMES)
def test_it_says_that_it_needs_a_model(name: str) -> None:
    with pytest.raises(MethodError, match="needs a memory model"):
        find_method(name).configured().build(services())


# ---------------------------------------------------------------- the contract


def helpful(request: ChatRequest) -> str:
    """Summaries of the stretch's last words; judgements that depend on its length."""
    prompt = prompt_of(request)
    if request.schema is None:
        return " ".join(["summed up:", *prompt.split()[-6:]])
    return as_json(raw_helps=len(prompt) % 4 > 0, summary_suffices=len(prompt) % 2 > 0)


@pytest.mark.parametrize("kind", ["reader", "agent"])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_contract_holds_with_a_helpful_model(name: str, kind: TaskKind, data: st.DataObject) -> None:
    case: Case = data.draw(cases(kind))
    keeps_the_contract(Obliging(name, helpful), case)
