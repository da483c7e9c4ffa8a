"""``afm``: scores, forms, and packing from the oldest on (docs/methods.md B.5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.benchmarks.locomo.config import LocomoConfig
from flexmem.contract.cases import Case, cases
from flexmem.llm.errors import Refused
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.baselines.afm import Importance, placeholder, score
from flexmem.memory.protocol import Budget, MethodError, Rendering, Resolution, TaskKind
from flexmem.memory.registry import find_method
from flexmem.ports import ChatRequest
from flexmem.sweep.arms import make_arms
from flexmem.sweep.config import load_config
from tests.memory.examples import chat, compass_query, shown, wait, words, written

from .obliging import Obliging, fields_of, keeps_the_contract, prompt_of

RAW, EXCERPT, PLACEHOLDER = Resolution.RAW, Resolution.EXCERPT, Resolution.PLACEHOLDER

# ---------------------------------------------------------------- worked by hand

# The query points north; half-life 1, so the factor 0.25 + 0.75 * 0.5^age is 1, 0.625, 0.4375, 0.34375 for ages 0 to 3.
# Turns of n words have n + 3 tokens, headers 8; the compressed form has at most 0.7 of the unit's tokens; a placeholder
# is "[ref u01]" and the line break, 6 in all, then "Ann:" (2) and as many words as 12 tokens hold.
#
#        turns                       raw   cosine  age  score    form        its tokens
#   u0   north + 1; 4 words           20     1      3   0.34375  COMPRESSED  within 14: header 8, the north's turn 5
#   u1   east + 5                     17     0      2   0        PLACEHOLDER 6 + 2 + 4
#   u2   north + 4                    16     1      1   0.625    RAW         16
#   u3   north east + 1; 7 words      24   0.707    0   0.707    RAW         24; within 16: header 8, first turn 6
#
# Room 60, from the oldest on: u0 13, 47 left; u1 12, 35 left; u2 16, 19 left; u3's 24 don't fit, its compressed form of
# 14 does, 5 left.
UNITS = chat(
    ["north red", "blue green one two"],
    ["east red blue green one two"],
    [f"north {words(4)}"],
    ["north east red", "one two three red blue green one"],
)
QUERY = compass_query("north", "north")
ROOM = 60
SHOWN = [(0, EXCERPT, 13), (1, PLACEHOLDER, 12), (2, RAW, 16), (3, EXCERPT, 14)]
OPTIONS = {"half_life": 1.0, "compress_ratio": 0.7}


def forms(rendering: Rendering) -> list[tuple[int, Resolution, int]]:
    return [(block.uids[0], block.resolution, block.tokens) for block in rendering.blocks]


def test_afm_worked_by_hand() -> None:
    rendering = shown(written("afm", UNITS, **OPTIONS), QUERY, ROOM)
    assert forms(rendering) == SHOWN
    assert rendering.ranking == (3, 2, 0, 1)
    assert rendering.text == (
        "### u00 — session 1\nAnn: north red\n"
        "[ref u01] Ann: east red blue green\n"
        f"{UNITS[2].text}"
        "### u03 — session 4\nAnn: north east red\n"
    )


def simulated(
    floor: float = 0.25,
    newest_first: bool = False,
    by_score: bool = False,
    falls: bool = True,
    from_the_oldest: bool = False,
    room_kept_for_placeholders: bool = False,
    room: int = ROOM,
) -> list[tuple[int, Resolution, int]]:
    """The example's rules in plain numbers, with one of them changed."""
    cosines = (1.0, 0.0, 1.0, 0.5**0.5)
    sizes = [
        {RAW: 20, EXCERPT: 13, PLACEHOLDER: 11},
        {RAW: 17, PLACEHOLDER: 12},
        {RAW: 16, PLACEHOLDER: 12},
        {RAW: 24, EXCERPT: 14, PLACEHOLDER: 12},
    ]
    ages = range(4) if from_the_oldest else range(3, -1, -1)
    scores = [cosine * (floor + (1 - floor) * 0.5**age) for cosine, age in zip(cosines, ages, strict=True)]
    order = list(range(4))[:: -1 if newest_first else 1]
    if by_score:
        order.sort(key=lambda uid: -scores[uid])
    plan, left = [], room
    for position, uid in enumerate(order):
        allowed = (RAW, EXCERPT, PLACEHOLDER)[0 if scores[uid] >= 0.45 else 1 if scores[uid] >= 0.25 else 2 :]
        kept = 12 * (3 - position) if room_kept_for_placeholders else 0
        for form in allowed if falls else allowed[:1]:
            if form in sizes[uid] and sizes[uid][form] <= left - kept:
                plan.append((uid, form, sizes[uid][form]))
                left -= sizes[uid][form]
                break
    return sorted(plan)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"floor": 0.0}, id="old units lose all their score"),
        pytest.param({"newest_first": True}, id="packed from the newest on"),
        pytest.param({"by_score": True}, id="packed by score"),
        pytest.param({"falls": False}, id="what does not fit is dropped at once"),
        pytest.param({"from_the_oldest": True}, id="age counted from the oldest"),
    ],
)
def test_the_afm_example_tells_wrong_variants(wrong: dict[str, bool]) -> None:
    assert simulated() == SHOWN
    assert simulated(**wrong) != SHOWN  # type: ignore[arg-type]


def test_old_units_can_leave_no_room_for_the_newest() -> None:
    """Room 50: 9 are left for u3, the unit with the highest score, whose placeholder has 12."""
    assert forms(shown(written("afm", UNITS, **OPTIONS), QUERY, 50)) == SHOWN[:3] == simulated(room=50)
    assert simulated(room=50, room_kept_for_placeholders=True) != SHOWN[:3]  # WRONG: room kept for all placeholders


def test_a_compressed_form_that_no_piece_fits_falls_to_a_placeholder() -> None:
    """0.35 of 20 tokens: not even a header and a turn."""
    rendering = shown(written("afm", UNITS[:1], half_life=1.0, high=2.0), QUERY, 100)
    assert forms(rendering) == [(0, PLACEHOLDER, 11)]


@pytest.mark.parametrize(
    ("cosine", "recency", "importance", "expected"),
    [
        (0.8, 1.0, None, 0.8),
        (0.8, 0.5, None, 0.8 * 0.625),
        (0.8, 0.0, None, 0.2),
        (-0.8, 1.0, None, 0.0),
        (-0.8, 0.0, "critical", 1.0),
        (0.8, 0.5, "relevant", 0.8 * 0.75),
        (0.8, 0.5, "trivial", 0.8 * 0.125),
        (-0.8, 0.5, "relevant", 0.0),
        (-0.8, 0.5, "trivial", 0.0),
    ],
)
def test_scores(cosine: float, recency: float, importance: Importance | None, expected: float) -> None:
    assert score(cosine, recency, importance) == pytest.approx(expected)


@settings(deadline=None, max_examples=30)
@given(cases("reader"), st.integers(1, 20))
def test_a_placeholder_has_its_label_and_is_within_its_tokens_where_words_follow(case: Case, limit: int) -> None:
    for unit in case.units:
        fragment = placeholder(unit, limit)
        assert fragment.tokens == tokens.count(fragment.text)
        assert fragment.text.startswith(f"[ref {unit.label}]")
        assert fragment.text.count("\n") == 1
        assert fragment.tokens <= limit or fragment.text == f"[ref {unit.label}]\n"


# ---------------------------------------------------------------- importance


def classes(*said: str) -> ScriptedModel:
    return ScriptedModel([json.dumps({"importance": word}) for word in said])


def test_importance_sets_the_score() -> None:
    """The same four units, with classes and the default half-life of 10 changed to 1: u0 is critical and full though it
    is the oldest; u1 is critical though it points elsewhere; u2, trivial, has 1 * 0.25 * 0.5; u3, relevant, has 0.707.
    """
    model = classes("critical", " Critical ", "trivial", "relevant")
    build = written("afm.importance", UNITS, model=model, half_life=1.0)
    assert [form[:2] for form in forms(shown(build, QUERY, 200))] == [(0, RAW), (1, RAW), (2, PLACEHOLDER), (3, RAW)]
    assert model.calls["memory"] == 4
    prompts = [request.messages[-1].content for request in model.requests]
    assert all(unit.text in prompt and "$" not in prompt for unit, prompt in zip(UNITS, prompts, strict=True))


def test_without_its_class_a_unit_would_be_shown_otherwise() -> None:
    """WRONG variant: the formula without classes gives u1 a placeholder and u2 in full."""
    model = classes("critical", "critical", "trivial", "relevant")
    told = forms(shown(written("afm.importance", UNITS, model=model, half_life=1.0), QUERY, 200))
    assert told != forms(shown(written("afm", UNITS, half_life=1.0, compress_ratio=0.33), QUERY, 200))


@pytest.mark.parametrize("replies", ["garbage", "refuse"])
def test_without_a_usable_class_a_unit_is_relevant_and_it_is_counted(replies: str) -> None:
    build = written("afm.importance", UNITS, model=ScriptedModel(replies), half_life=1.0)
    relevant = written("afm.importance", UNITS, model=classes(*["relevant"] * 4), half_life=1.0)
    assert dict(build.fallbacks) == {"importance taken to be relevant": 4}
    assert shown(build, QUERY, 100) == shown(relevant, QUERY, 100)


# ---------------------------------------------------------------- compression by the model


def test_the_model_compresses_with_the_query_as_a_hint_once_a_view() -> None:
    """u0 alone, made compressed by its thresholds: 0.7 of 20 is 14 tokens, so 10 words are asked for."""
    model = ScriptedModel(["north red"])
    build = written("afm.model_compressor", UNITS[:1], model=model, high=2.0, compress_ratio=0.7)
    view = build.view()
    first = wait(view.render(QUERY, Budget(100)))
    assert first.text == "### u00 — session 1\nnorth red\n"
    assert [block.resolution for block in first.blocks] == [Resolution.SUMMARY]
    assert wait(view.render(compass_query("Where?", "north"), Budget(100))) == first
    (request,) = model.requests
    said = request.messages[-1].content
    assert "\nnorth\n" in said
    assert UNITS[0].text in said
    assert "at most 10 words" in said
    assert "$" not in said


def test_a_compressed_form_is_cut_to_its_share() -> None:
    build = written("afm.model_compressor", UNITS[:1], model=ScriptedModel([words(50)]), high=2.0, compress_ratio=0.7)
    (block,) = shown(build, QUERY, 100).blocks
    assert block.tokens == 14


@pytest.mark.parametrize("replies", [["", " "], [Refused("no"), Refused("no")]])
def test_where_the_model_does_not_compress_extraction_does(replies: Sequence[str]) -> None:
    build = written("afm.model_compressor", UNITS[:1], model=ScriptedModel(replies), high=2.0, compress_ratio=0.7)
    assert forms(shown(build, QUERY, 100)) == [(0, EXCERPT, 13)]
    assert dict(build.fallbacks) == {"unit compressed by extraction, not by the model": 1}


@pytest.mark.parametrize("name", ["afm.importance", "afm.model_compressor"])
def test_a_variant_that_asks_needs_a_model(name: str) -> None:
    with pytest.raises(MethodError, match="memory model"):
        written(name, [])


# ---------------------------------------------------------------- contract, with a model that follows its prompts


def sensible(request: ChatRequest) -> str:
    """A class by the prompt's length; a stretch is compressed to its opening words."""
    if fields_of(request):
        return json.dumps({"importance": ("critical", "relevant", "trivial")[len(prompt_of(request)) % 3]})
    return " ".join(prompt_of(request).partition("\nStretch:\n")[2].split()[:20])


@pytest.mark.parametrize("name", ["afm.importance", "afm.model_compressor"])
@pytest.mark.parametrize("kind", ["reader", "agent"])
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_contract_holds_behind_a_model_that_follows_its_prompts(
    name: str, kind: TaskKind, data: st.DataObject
) -> None:
    keeps_the_contract(Obliging(name, sensible), data.draw(cases(kind)))


def test_what_is_declared_depends_on_the_options() -> None:
    told = find_method("afm").configured({"compressor": "model", "importance": True}).info
    assert (told.writes_with_model, told.reads_with_model, told.asks_per_call, told.rewrites_text) == (True,) * 4
    plain = find_method("afm").info
    assert (plain.writes_with_model, plain.reads_with_model, plain.asks_per_call, plain.rewrites_text) == (False,) * 4


# ---------------------------------------------------------------- calibration


def test_the_calibration_sweep_has_the_whole_grid_on_one_conversation() -> None:
    sweep = load_config(Path(__file__).parents[3] / "ray_jobs" / "sweeps" / "afm-calibration.yaml")
    (benchmark,) = sweep.benchmarks
    assert LocomoConfig.model_validate(benchmark.options).conversations == ["conv-26"]
    assert sweep.budgets == [2_000, 4_000, 8_000]
    pairs = Counter((arm.options["high"], arm.options["mid"]) for arm in sweep.arms)
    grid = [(high, mid) for high in (0.25, 0.35, 0.45, 0.55) for mid in (0.05, 0.15, 0.25, 0.30) if mid < high]
    assert pairs == Counter(grid)
    for arm in make_arms(sweep.arms):
        assert arm.method is not None
        assert not arm.method.info.reads_with_model


def test_the_calibrated_pair_is_one_of_the_grid() -> None:
    config = find_method("afm.calibrated").config
    assert (config.high, config.mid) == (0.25, 0.15)  # type: ignore[attr-defined]
