"""``llm_granularity``: the model's choice is honoured in its order while it fits (docs/methods.md B.6)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem.contract.cases import Case, cases
from flexmem.history import Unit
from flexmem.llm.errors import Refused
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.asking import read_object
from flexmem.memory.baselines.llm_granularity import GranularityReply, honour
from flexmem.memory.protocol import MethodError, Rendering, Resolution, TaskKind
from flexmem.memory.registry import find_method
from flexmem.ports import ChatRequest
from tests.memory.examples import chat, compass_query, shown, words, written

from .obliging import Obliging, as_json, fields_of, keeps_the_contract, numbers_in, prompt_of

RAW, RECORD = Resolution.RAW, Resolution.RECORD

# ---------------------------------------------------------------- worked by hand

# Seven units; the reply is raw [2, 9, 0, 2, 4], record [5, 0], hide [6, 5]. Room 100:
#
#   raw, in order       u2 60, 40 left; 9 names no unit; u0's 50 don't fit; 2 again, counted once; u4 30, 10 left
#   records, in order   u5 6, 4 left (hidden too, but a record first); u0's 5, a record as well, don't fit
#   the others          u6 is hidden; newest first: u3's 7 don't fit; u1 4, 0 left
RAW_TOKENS = (50, 40, 60, 45, 30, 35, 20)
RECORD_TOKENS = (5, 4, 6, 7, 5, 6, 1)
REPLY = GranularityReply(raw=[2, 9, 0, 2, 4], record=[5, 0], hide=[6, 5])
CHOSEN = {2: RAW, 4: RAW, 5: RECORD, 1: RECORD}


def test_the_choice_worked_by_hand() -> None:
    chosen = honour(REPLY, RAW_TOKENS, RECORD_TOKENS, 100)
    assert chosen == CHOSEN
    assert list(chosen) == [2, 4, 5, 1]


def simulated(
    stops: bool = False,
    unlisted_hidden: bool = False,
    hide_wins: bool = False,
    records_first: bool = False,
    in_time_order: bool = False,
) -> dict[int, Resolution]:
    """The example's rules in plain numbers, with one of them changed."""
    raw = [(uid, RAW, RAW_TOKENS[uid]) for uid in (2, 0, 4)]
    records = [(uid, RECORD, RECORD_TOKENS[uid]) for uid in (5, 0)]
    others = [] if unlisted_hidden else [(uid, RECORD, RECORD_TOKENS[uid]) for uid in (3, 1)]
    if hide_wins:
        records = records[1:]
    if in_time_order:
        raw.sort(key=lambda wanted: wanted[0])
    chosen: dict[int, Resolution] = {}
    left = 100
    for uid, form, size in [*records, *raw, *others] if records_first else [*raw, *records, *others]:
        if size <= left and uid not in chosen:
            chosen[uid] = form
            left -= size
        elif stops:
            break
    return chosen


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"stops": True}, id="ends at the first that does not fit"),
        pytest.param({"unlisted_hidden": True}, id="units that are not named are hidden"),
        pytest.param({"hide_wins": True}, id="what is hidden too is no record"),
        pytest.param({"records_first": True}, id="records before raw units"),
        pytest.param({"in_time_order": True}, id="raw units in time order"),
    ],
)
def test_the_example_tells_wrong_variants(wrong: dict[str, bool]) -> None:
    assert simulated() == CHOSEN
    assert simulated(**wrong) != CHOSEN


def test_units_that_are_not_named_come_newest_first() -> None:
    """Room 12 has two of the four records: u5's 6 and u4's 5; from the oldest on they would be u0's 5 and u1's 4."""
    sizes = (5, 4, 6, 7, 5, 6)
    assert honour(GranularityReply(raw=[]), [99] * 6, sizes, 12) == {5: RECORD, 4: RECORD}
    assert honour(None, [99] * 6, sizes, 12) == {5: RECORD, 4: RECORD}


def test_a_raw_unit_that_does_not_fit_is_a_record_after_those_that_were_named() -> None:
    chosen = honour(GranularityReply(raw=[0], record=[1]), [99, 99, 99], [5, 5, 5], 10)
    assert list(chosen.items()) == [(1, RECORD), (0, RECORD)]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9)), max_size=8),
    st.lists(st.lists(st.integers(-3, 10), max_size=9), min_size=3, max_size=3),
    st.integers(0, 120),
)
def test_a_choice_fits_and_hides_what_is_only_hidden(
    sizes: list[tuple[int, int]], lists: list[list[int]], room: int
) -> None:
    raw, record, hide = lists
    raw_tokens, record_tokens = [size for size, _ in sizes], [size for _, size in sizes]
    chosen = honour(GranularityReply(raw=raw, record=record, hide=hide), raw_tokens, record_tokens, room)
    assert set(chosen) <= set(range(len(sizes))) - (set(hide) - set(raw) - set(record))
    assert sum((raw_tokens if form is RAW else record_tokens)[uid] for uid, form in chosen.items()) <= room
    assert {uid for uid, form in chosen.items() if form is RAW} <= set(raw)


@pytest.mark.parametrize("said", ['{"raw": [1, 0]}', '{"raw": ["u01", "0"], "record": []}', 'So: {"raw": [1, "u0"]}.'])
def test_numbers_may_be_said_as_labels(said: str) -> None:
    assert read_object(GranularityReply, said) == GranularityReply(raw=[1, 0])


@pytest.mark.parametrize("said", ['{"record": [1]}', '{"raw": ["first"]}', '{"raw": 1}', '{"raw": [1.5]}', "[1]", ""])
def test_what_has_another_form_is_no_choice(said: str) -> None:
    assert read_object(GranularityReply, said) is None


# ---------------------------------------------------------------- renderings

UNITS = chat([f"north {words(9)}"], [f"east {words(9)}"], [f"north {words(4)}"])
QUERY = compass_query("Which way?", "north")


def rendered(replies: str | Sequence[object], room: int = 200, units: Sequence[Unit] = UNITS) -> Rendering:
    build = written("llm_granularity", units, model=ScriptedModel(replies))  # type: ignore[arg-type]
    return shown(build, QUERY, room)


def forms(rendering: Rendering) -> list[tuple[int, Resolution]]:
    return [(block.uids[0], block.resolution) for block in rendering.blocks]


def test_what_the_model_chose_is_shown_in_time_order() -> None:
    rendering = rendered([as_json(raw=[2, 0], record=[], hide=[])])
    assert forms(rendering) == [(0, RAW), (1, RECORD), (2, RAW)]
    assert rendering.ranking == (2, 0, 1)
    assert rendering.text.startswith(UNITS[0].text)
    assert "[u01 | session 2] Ann: east" in rendering.text


def test_the_model_sees_every_record_with_its_sizes_and_the_room() -> None:
    model = ScriptedModel([as_json(raw=[])])
    build = written("llm_granularity", UNITS, model=model)
    shown(build, QUERY, 123)
    (request,) = model.requests
    said = prompt_of(request)
    lines = [f"{u} ({unit.tokens} tokens raw, " for u, unit in enumerate(UNITS)]
    assert all(line in said for line in [*lines, "\nWhich way?\n", "at most 123 tokens", "from 0 to 2"])
    assert "$" not in said
    assert fields_of(request) == {"raw", "record", "hide"}


def test_an_agents_model_is_told_the_task() -> None:
    model = ScriptedModel([as_json(raw=[])])
    build = written("llm_granularity", UNITS, model=model)
    query = compass_query("Step 9", "north")
    shown(build, type(query)(**{**query.__dict__, "task": "Find the violin."}), 123)
    assert "Find the violin." in prompt_of(model.requests[0])


def test_every_call_asks_and_an_empty_memory_does_not() -> None:
    model = ScriptedModel(lambda request: as_json(raw=[0]))
    build = written("llm_granularity", [], model=model)
    shown(build, QUERY, 100)
    assert model.calls["memory"] == 0
    build = written("llm_granularity", UNITS, model=model)
    shown(build, QUERY, 100)
    shown(build, QUERY, 100)
    assert model.calls["memory"] == 2


@pytest.mark.parametrize("unusable", ["garbage", "refuse", ["", '{"raw": 3}'], [Refused("no"), "none"]])
def test_an_unusable_choice_shows_all_records_and_is_counted(unusable: str | Sequence[object]) -> None:
    build = written("llm_granularity", UNITS, model=ScriptedModel(unusable))  # type: ignore[arg-type]
    rendering = shown(build, QUERY, 200)
    assert forms(rendering) == [(0, RECORD), (1, RECORD), (2, RECORD)]
    assert rendering.ranking == (2, 1, 0)
    assert dict(build.fallbacks) == {"all records shown, not the model's choice": 1}


def test_records_by_the_model_are_declared_and_written() -> None:
    assert find_method("llm_granularity").configured({"writer": "model"}).info.writes_with_model
    model = ScriptedModel([as_json(record="One way.", keywords=[], entities=[]), as_json(raw=[])])
    build = written("llm_granularity", UNITS[:1], model=model, writer="model")
    assert shown(build, QUERY, 100).text == "[u00 | session 1] One way.\n"


def test_it_needs_a_model() -> None:
    with pytest.raises(MethodError, match="memory model"):
        written("llm_granularity", [])


# ---------------------------------------------------------------- contract, with a model that follows its prompts


def sensible(request: ChatRequest) -> str:
    """Every other unit raw, from the newest on, every third hidden; records are the opening words."""
    if "record" in fields_of(request) and "raw" not in fields_of(request):
        return as_json(record=" ".join(prompt_of(request).split()[-9:]) or "x", keywords=[], entities=[])
    numbers = numbers_in(request, r"^(\d+) \(\d+ tokens raw")
    return json.dumps({"raw": numbers[::-2], "record": [], "hide": numbers[::3]})


@pytest.mark.parametrize("writer", ["rule", "model"])
@pytest.mark.parametrize("kind", ["reader", "agent"])
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_contract_holds_behind_a_model_that_follows_its_prompts(
    writer: str, kind: TaskKind, data: st.DataObject
) -> None:
    case: Case = data.draw(cases(kind))
    keeps_the_contract(Obliging("llm_granularity", sensible, writer=writer), case)
