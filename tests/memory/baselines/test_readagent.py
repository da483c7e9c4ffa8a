"""``readagent``: gists, and pages looked up at every call (docs/methods.md B.4)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem.contract.cases import Case, cases, services
from flexmem.llm.errors import ModelError
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.prompts import template
from flexmem.memory.protocol import Budget, MethodError, Query, Rendering, Resolution, TaskKind
from flexmem.memory.registry import find_method
from flexmem.ports import ChatRequest
from tests.memory.baselines.obliging import Obliging, as_json, keeps_the_contract, numbers_in, prompt_of
from tests.memory.examples import CompassEmbedder, chat, compass_query, history, shown, words, written

NAMES = ("readagent", "readagent.sequential", "readagent.pages_first")
RAW, RECORD = Resolution.RAW, Resolution.RECORD
QUERY = compass_query("Who sang?", "north")

# ---------------------------------------------------------------- four pages, worked by hand
#
# Each gist has four words, "[u00 | session 1] red blue green one" 12 tokens: 48 together. Pages whole:
#
#   u0  8 + 2 + 20 + 1 = 31      u1  8 + 2 + 60 + 1 = 71      u2  8 + 2 + 25 + 1 = 36      u3  8 + 2 + 9 + 1 = 20
#
# Room 90; the model names 1, 2, 0, 3 in this order. A page costs what it has over its gist:
#
#   the gists       48          42 left
#   page 1          59          does not fit
#   page 2          24          18 left
#   page 0          19          does not fit
#   page 3           8          10 left
LENGTHS = (20, 60, 25, 9)
UNITS = chat(*[[words(length)] for length in LENGTHS])
GIST = words(4)
NAMED = [1, 2, 0, 3]
SHOWN = {0: RECORD, 1: RECORD, 2: RAW, 3: RAW}


def naming(pages: Sequence[int], one_by_one: bool = False) -> ScriptedModel:
    """Gists of four words; a look-up names ``pages``, or the next of them."""

    def answer(request: ChatRequest) -> str:
        if request.schema is None:
            return GIST
        if not one_by_one:
            return as_json(pages=list(pages))
        done = re.search(r"Named so far: (.*?);", prompt_of(request))
        assert done is not None
        number = len(re.findall(r"\d+", done.group(1)))
        return as_json(pages=list(pages[number : number + 1]))

    return ScriptedModel(answer)


def build_of(name: str = "readagent", model: ScriptedModel | None = None, **options: Any) -> Any:
    return written(name, UNITS, model=model or naming(NAMED), **options)


def forms(rendering: Rendering) -> dict[int, Resolution]:
    return {block.uids[0]: block.resolution for block in rendering.blocks}


def test_the_look_up_worked_by_hand() -> None:
    rendering = shown(build_of(), QUERY, 90)
    assert forms(rendering) == SHOWN
    assert rendering.tokens == 90 - 10
    assert rendering.ranking == tuple(NAMED)
    assert rendering.text == (f"[u00 | session 1] {GIST}\n[u01 | session 2] {GIST}\n{UNITS[2].text}{UNITS[3].text}")


def simulated(
    in_place: bool = True, by_importance: bool = True, ends_at_a_miss: bool = False, gists: bool = True
) -> dict[int, Resolution]:
    """The example's rules in plain numbers, with one of them changed."""
    whole = [31, 71, 36, 20]
    plan = dict.fromkeys(range(4), RECORD) if gists else {}
    left = 90 - 12 * len(plan)
    for uid in NAMED if by_importance else sorted(NAMED):
        cost = whole[uid] - (12 if in_place and gists else 0)
        if cost <= left:
            plan[uid] = RAW
            left -= cost
        elif ends_at_a_miss:
            break
    return plan


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"in_place": False}, id="a page stands beside its gist"),
        pytest.param({"by_importance": False}, id="pages opened in time order"),
        pytest.param({"ends_at_a_miss": True}, id="ends at the first page that doesn't fit"),
        pytest.param({"gists": False}, id="pages without gists"),
    ],
)
def test_the_example_tells_wrong_variants(wrong: dict[str, bool]) -> None:
    assert simulated() == SHOWN
    assert simulated(**wrong) != SHOWN


def test_the_oldest_gists_are_left_out_where_all_do_not_fit() -> None:
    """36 of 40 tokens for the newest three: the 4 left hold no page's 24 or 8 more."""
    assert forms(shown(build_of(), QUERY, 40)) == {1: RECORD, 2: RECORD, 3: RECORD}
    assert forms(shown(build_of(model=naming([3])), QUERY, 44)) == {1: RECORD, 2: RECORD, 3: RAW}


def test_a_newest_gist_larger_than_the_room_is_cut() -> None:
    rendering = shown(build_of(model=naming([])), QUERY, 11)
    assert rendering.text.startswith("[u03 | session 4] red")
    assert f"[u03 | session 4] {GIST}".startswith(rendering.text.rstrip("\n"))
    assert 8 < rendering.tokens <= 11


def test_a_page_whose_gist_is_left_out_is_shown_where_it_fits() -> None:
    """Room 47: 36 for gists 1 to 3. A first page of 8 + 2 + 0 + 1 = 11 tokens fits beside them."""
    units = chat([""], *[[words(length)] for length in LENGTHS[1:]])
    build = written("readagent", units, model=naming([0]))
    assert units[0].tokens <= 11
    assert forms(shown(build, QUERY, 47)) == {0: RAW, 1: RECORD, 2: RECORD, 3: RECORD}


def test_with_pages_first_a_page_pushes_out_the_oldest_gists() -> None:
    """Room 40, gists 1 to 3, 4 left. Page 1 lacks 71 - 12 - 4 = 55 tokens, gists 2 and 3 have 24: no. Page 2 lacks
    36 - 12 - 4 = 20: gists 1 and 3 leave; 4 are left. Pages 0 and 3 don't fit beside it.
    """
    rendering = shown(build_of("readagent.pages_first"), QUERY, 40)
    assert forms(rendering) == {2: RAW}
    assert rendering.tokens == 36


def test_with_pages_first_no_gist_leaves_that_need_not() -> None:
    """Room 90, 42 left after the gists. Page 1 lacks 59 - 42 = 17: gists 0 and 2 leave, 7 are left. Page 2 lacks 29,
    gist 3 has 12; page 0 lacks 24; page 3 lacks 1, and no gist but its own is left.
    """
    assert forms(shown(build_of("readagent.pages_first"), QUERY, 90)) == {1: RAW, 3: RECORD}


# ---------------------------------------------------------------- what the model is asked


def test_the_look_up_is_shown_all_gists_and_the_question() -> None:
    model = naming([])
    build = build_of(model=model)
    shown(build, QUERY, 40)
    *gists, look_up = map(prompt_of, model.requests)
    assert len(gists) == 4
    assert all(unit.text in prompt for unit, prompt in zip(UNITS, gists, strict=True))
    assert all("at most 80 words" in prompt for prompt in gists)
    pages = "\n".join(f"Page {uid} (session {uid + 1}): {GIST}" for uid in range(4))
    assert f"Shortened pages:\n{pages}\n\nWhat you are to deal with:\nWho sang?\n" in look_up
    assert "at most 5 of them" in look_up
    assert model.requests[-1].role == "memory"


def test_a_look_up_is_shown_the_newest_gists_that_its_limit_holds() -> None:
    model = naming([])
    shown(build_of(model=model, look_up_tokens=25), QUERY, 40)
    assert numbers_in(model.requests[-1], r"^Page (\d+)") == [2, 3]


def test_an_agents_look_up_is_told_its_task() -> None:
    model = naming([])
    build = written("readagent", history(1, "agent", 4), model=model)
    vector = CompassEmbedder.vector("")
    shown(build, Query("Step 5", vector, "Step 5", vector, "Find the violin."), 400)
    assert "Task: Find the violin.\n\nNewest steps:\nStep 5" in prompt_of(model.requests[-1])


def test_what_is_no_page_and_what_was_named_already_counts_for_nothing() -> None:
    """Page 3 is the sixth number, and the third page."""
    build = build_of(model=naming([9, -1, 2, 2, 0, 3, 1]), most_pages=3)
    rendering = shown(build, QUERY, 90)
    assert rendering.ranking == (2, 0, 3)
    assert forms(rendering) == SHOWN
    assert not build.fallbacks


def test_every_call_asks_anew() -> None:
    model = naming(NAMED)
    build = build_of(model=model)
    for calls in (5, 6):
        shown(build, QUERY, 90)
        assert model.calls.total() == calls


@pytest.mark.parametrize(
    ("name", "placeholders"),
    [
        ("readagent_gist", {"words", "unit"}),
        ("readagent_lookup", {"most", "pages", "call"}),
        ("readagent_next", {"left", "named", "pages", "call"}),
    ],
)
def test_prompts_have_the_placeholders_that_are_filled(name: str, placeholders: set[str]) -> None:
    assert set(template(name).get_identifiers()) == placeholders


# ---------------------------------------------------------------- one page at a time


def test_pages_are_looked_up_one_at_a_time_until_the_model_stops() -> None:
    """Page 1 doesn't fit, page 2 does; then the model names none."""
    model = naming([1, 2], one_by_one=True)
    rendering = shown(build_of("readagent.sequential", model), QUERY, 90)
    assert forms(rendering) == {0: RECORD, 1: RECORD, 2: RAW, 3: RECORD}
    assert rendering.ranking == (1, 2)
    first, second, third = map(prompt_of, model.requests[4:])
    assert "You can name 5 more. Named so far: none;" in first
    assert "You can name 4 more. Named so far: 1;" in second
    assert f"Page 1 (session 2): {GIST}" in second
    assert "You can name 3 more. Named so far: 1, 2;" in third
    assert f"Page 2, in full:\n{UNITS[2].text}" in third


def test_there_are_at_most_five_rounds() -> None:
    units = chat(*[["red"]] * 7)
    model = naming([6, 5, 4, 3, 2, 1, 0], one_by_one=True)
    build = written("readagent.sequential", units, model=model)
    rendering = shown(build, QUERY, 1_000)
    assert rendering.ranking == (6, 5, 4, 3, 2)
    assert model.calls.total() == 7 + 5


@pytest.mark.parametrize("again", [[2], [9], [-1], []])
def test_a_page_named_again_or_none_that_there_is_ends_the_look_up(again: list[int]) -> None:
    model = naming([2, *again], one_by_one=True)
    build = build_of("readagent.sequential", model)
    assert shown(build, QUERY, 90).ranking == (2,)
    assert model.calls.total() == 6
    assert not build.fallbacks


# ---------------------------------------------------------------- models that are no help


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("readagent", "look-up left out, gists alone"),
        ("readagent.sequential", "look-up stopped at an unusable reply"),
        ("readagent.pages_first", "look-up left out, gists alone"),
    ],
)
def test_a_model_that_refuses_leaves_gists_of_the_units_own_words(name: str, reason: str) -> None:
    build = build_of(name, ScriptedModel("refuse"), gist_words=4)
    rendering = shown(build, QUERY, 90)
    assert rendering.text == "".join(f"[u{uid:02d} | session {uid + 1}] Ann: red blue green\n" for uid in range(4))
    assert build.fallbacks == {"gist of the unit's own first words, not written by the model": 4, reason: 1}


def test_a_look_up_that_is_garbage_leaves_the_gists_and_is_counted_for_each_call() -> None:
    build = build_of(model=ScriptedModel(lambda request: GIST if request.schema is None else "1, 2"))
    for calls in (1, 2):
        assert forms(shown(build, QUERY, 90)) == dict.fromkeys(range(4), RECORD)
        assert build.fallbacks == {"look-up left out, gists alone": calls}


def test_what_was_opened_before_an_unusable_reply_stays() -> None:
    replies: list[str | ModelError] = [GIST] * 4
    replies += [as_json(pages=[2]), "stop", "stop"]
    build = build_of("readagent.sequential", ScriptedModel(replies))
    assert forms(shown(build, QUERY, 90)) == {0: RECORD, 1: RECORD, 2: RAW, 3: RECORD}
    assert build.fallbacks == {"look-up stopped at an unusable reply": 1}


def test_a_long_gist_is_cut_at_80_words_and_an_empty_memory_asks_nothing() -> None:
    model = ScriptedModel(lambda request: words(200) if request.schema is None else as_json(pages=[]))
    build = build_of(model=model)
    assert [gist.text for gist in build.gists] == [words(80)] * 4
    empty = written("readagent", [], model=model)
    assert shown(empty, QUERY, 90).text == ""
    assert model.calls.total() == 4


def test_a_failure_of_the_model_is_the_callers() -> None:
    build = build_of(model=ScriptedModel([GIST] * 4 + [ModelError("down")]))
    with pytest.raises(ModelError, match="down"):
        shown(build, QUERY, 90)


@pytest.mark.parametrize("name", NAMES)
def test_it_says_that_it_needs_a_model(name: str) -> None:
    with pytest.raises(MethodError, match="needs a memory model"):
        find_method(name).configured().build(services())


# ---------------------------------------------------------------- the contract


def helpful(request: ChatRequest) -> str:
    """Gists of the passage's last words; every second page is looked up, the newest first."""
    if request.schema is None:
        return " ".join(["short:", *prompt_of(request).split()[-6:]])
    pages = numbers_in(request, r"^Page (\d+) \(")
    return as_json(pages=pages[::-2])


@pytest.mark.parametrize("kind", ["reader", "agent"])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_contract_holds_with_a_helpful_model(name: str, kind: TaskKind, data: st.DataObject) -> None:
    case: Case = data.draw(cases(kind))
    keeps_the_contract(Obliging(name, helpful), case)


def test_views_at_once_do_not_share_their_pages() -> None:
    build = build_of()

    async def both() -> list[Rendering]:

        return list(await asyncio.gather(*(build.view().render(QUERY, Budget(room)) for room in (90, 40))))

    wide, narrow = asyncio.run(both())
    assert forms(wide) == SHOWN
    assert forms(narrow) == {1: RECORD, 2: RECORD, 3: RECORD}
