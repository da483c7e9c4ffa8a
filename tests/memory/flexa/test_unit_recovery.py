"""Which units come back in which form: ranking, anchors, fit or degrade (docs/methods.md A.6, A.10)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.memory.fit_or_degrade import Forms, Plan, fit_or_degrade
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.unit_recovery import anchor_count, rank_candidates
from flexmem.memory.protocol import Degraded, Resolution
from flexmem.memory.selection import Fragment

RAW, EXCERPT, RECORD = Resolution.RAW, Resolution.EXCERPT, Resolution.RECORD
NOTHING = None

# ---------------------------------------------------------------- ranking, worked by hand

# Cosines of six units with the query, two anchors: units 0 and 5. Beside 0 stands 1; beside 5 stands 4, and 5 is
# linked with 2. Decay 0.6:
#
#   unit  cosine  anchor's  0.6 x     score
#    0     0.90                        0.90   anchor
#    5     0.60                        0.60   anchor
#    1     0.20    0.90     0.54       0.54   by its anchor
#    2     0.50    0.60     0.36       0.50   by its own
#    4     0.45    0.60     0.36       0.45   by its own
#    3     0.55                        none of both: no candidate, though its cosine is higher than those of 1, 2 and 4
COSINES = (0.90, 0.20, 0.50, 0.55, 0.45, 0.60)
NEIGHBOURS = {0: {1}, 5: {4, 2}}
RANKED = [0, 5, 1, 2, 4]


def ranked(decay: float, anchors: int = 2, cosines: Sequence[float] = COSINES) -> list[int]:
    vector = np.array(cosines, dtype=np.float32)
    return rank_candidates(vector, anchors, lambda uid: NEIGHBOURS.get(uid, set()), decay)


def test_ranking_worked_by_hand() -> None:
    assert ranked(0.6) == RANKED


def test_a_smaller_discount_lets_neighbours_of_the_best_anchor_outrank_others() -> None:
    """Decay 0.8: unit 1 has 0.72 and passes unit 5."""
    assert ranked(0.8) == [0, 1, 5, 2, 4]


def own_cosine_only() -> list[int]:
    """WRONG: a neighbour keeps its own cosine."""
    return sorted([0, 5, 1, 2, 4], key=lambda uid: -COSINES[uid])


def by_cosine_alone() -> list[int]:
    """WRONG: no neighbours at all, the best five."""
    return sorted(range(6), key=lambda uid: -COSINES[uid])[:5]


def neighbours_last() -> list[int]:
    """WRONG: anchors, then neighbours, each in order of cosine."""
    return [0, 5, *sorted([1, 2, 4], key=lambda uid: -COSINES[uid])]


def decay_ignored() -> list[int]:
    """WRONG: neighbours score as their anchors."""
    return ranked(1.0)


@pytest.mark.parametrize("wrong", [own_cosine_only, by_cosine_alone, neighbours_last, decay_ignored])
def test_the_ranking_example_tells_wrong_variants(wrong) -> None:  # type: ignore[no-untyped-def]
    assert wrong() != RANKED


def test_an_anchor_keeps_its_own_cosine_beside_a_better_one() -> None:
    """Unit 1 is an anchor of 0.50 beside one of 0.90; as a neighbour it would have 0.54 and pass unit 3 of 0.52."""
    cosines = np.array([0.90, 0.50, 0.0, 0.52], dtype=np.float32)
    assert rank_candidates(cosines, 3, lambda uid: {1} if uid == 0 else set(), 0.6) == [0, 3, 1]


def test_a_neighbour_of_two_anchors_takes_the_better_offer() -> None:
    cosines = np.array([0.50, 0.0, 0.90, 0.40], dtype=np.float32)
    order = rank_candidates(cosines, 2, lambda uid: {0: {1}, 2: {1, 3}}[uid], 0.5)
    assert order == [2, 0, 1, 3]  # 1 and 3 both have 0.45: the older first


def test_equal_scores_go_to_the_older_unit() -> None:
    assert rank_candidates(np.array([0.5, 0.7, 0.7, 0.5], dtype=np.float32), 4, lambda uid: set(), 0.6) == [1, 2, 0, 3]


def test_the_discount_is_06_for_readers_and_08_for_agents_unless_it_is_set() -> None:
    assert (FlexaConfig().decay("reader"), FlexaConfig().decay("agent")) == (0.6, 0.8)
    fixed = FlexaConfig(neighbour_decay=0.0)
    assert (fixed.decay("reader"), fixed.decay("agent")) == (0.0, 0.0)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=12),
    st.integers(1, 14),
    st.floats(0, 1),
    st.sets(st.tuples(st.integers(0, 11), st.integers(0, 11))),
)
def test_ranking_equals_its_definition(
    cosines: list[float], anchors: int, decay: float, pairs: set[tuple[int, int]]
) -> None:
    number = len(cosines)
    near = {u: {v for v in range(number) if v != u and ({(u, v), (v, u)} & pairs)} for u in range(number)}
    vector = np.array(cosines, dtype=np.float32)
    best = sorted(range(number), key=lambda uid: (-vector[uid], uid))[:anchors]
    score = {uid: float(vector[uid]) for uid in best}
    for uid in set(range(number)) - set(best):
        offers = [decay * float(vector[anchor]) for anchor in best if uid in near[anchor]]
        if offers:
            score[uid] = max(float(vector[uid]), *offers)
    expected = sorted(score, key=lambda uid: (-score[uid], uid))
    assert rank_candidates(vector, anchors, near.__getitem__, decay) == expected


# ---------------------------------------------------------------- anchors


@pytest.mark.parametrize(
    ("room", "sizes", "anchors"),
    [
        (4_000, [2_000], 10),  # 1.5 x 2 units: ten at least
        (32_000, [1_000, 2_000, 9_000], 24),  # 1.5 x 32,000 / 2,000
        (32_000, [1_000, 1_999], 33),  # median 1,499.5: 32.01, rounded up
        (0, [100], 10),
    ],
)
def test_anchors_are_ten_or_one_and_a_half_times_what_the_room_could_hold(
    room: int, sizes: list[int], anchors: int
) -> None:
    assert anchor_count(FlexaConfig(), room, sizes) == anchors


@settings(deadline=None)
@given(st.integers(0, 50_000), st.lists(st.integers(1, 5_000), min_size=1))
def test_anchors_by_their_formula(room: int, sizes: list[int]) -> None:
    config = FlexaConfig(least_anchors=3, anchor_room_factor=2.0)
    assert anchor_count(config, room, sizes) == max(3, math.ceil(2.0 * room / median(sizes)))


# ---------------------------------------------------------------- fit or degrade: units in plain numbers


@dataclass(frozen=True)
class Sizes:
    """A unit's forms in tokens. Excerpts are made of whole lines: of any number of ``line`` tokens up to the limit, at
    least ``least`` in all; ``line`` 0: none can be made. ``own``: its record line is among the shown ones.
    """

    raw: int
    record: int
    own: bool
    line: int = 0
    least: int = 0

    def excerpt(self, limit: int) -> int | None:
        if not self.line:
            return None
        size = min(limit, self.raw - 1) // self.line * self.line
        return size if size >= max(1, self.least) else None


def forms_of(units: Mapping[int, Sizes]) -> Forms:
    def fragment(uid: int, size: int, resolution: Resolution) -> Fragment:
        return Fragment("x", size, (uid,), resolution)

    def excerpt(uid: int, limit: int) -> Fragment | None:
        size = units[uid].excerpt(limit)
        return None if size is None else fragment(uid, size, EXCERPT)

    return Forms(
        raw=lambda uid: fragment(uid, units[uid].raw, RAW),
        excerpt=excerpt,
        record=lambda uid: fragment(uid, units[uid].record, RECORD),
        line_tokens={uid: sizes.record for uid, sizes in units.items() if sizes.own},
    )


def fitted(candidates: Sequence[int], units: Mapping[int, Sizes], room: int, **options: object) -> Plan:
    config = FlexaConfig.model_validate({"excerpt_min": 0, **options})  # here a unit says itself what its least is
    return fit_or_degrade(candidates, len(units), room, forms_of(units), config)


def shapes(plan: Plan) -> dict[int, tuple[Resolution, int]]:
    return {uid: (fragment.resolution, fragment.tokens) for uid, fragment in plan.fragments.items()}


# ---------------------------------------------------------------- fit or degrade, worked by hand

# Room 112, excerpts of at most 30 tokens, candidates in this order:
#
#   unit  raw  line (own: shown)   raw costs     then                                            takes   left
#   u3     60    8  own            60 - 8 = 52   fits: RAW                                         52      60
#   u1     70    6  own            64 > 60       excerpt within 30 in lines of 7: EXCERPT of 28,
#                                                its record's line stays                           28      32
#   u5     45    9                 45 > 32       its lines have 31: no excerpt within 30;
#                                                no line of its own is shown: RECORD                9      23
#   u4     40    6                 40 > 23       excerpt within min(30, 23) in lines of 9: of 18   18       5
#   u0     12    8  own            12 - 8 = 4    fits: RAW, though four above it are not            4       1
#   u2     50    1  own            49 > 1        no excerpt within 1; its line is shown: nothing            1
#   u6 is no candidate.
ROOM = 112
SIZES = {
    0: Sizes(raw=12, record=8, own=True, line=5),
    1: Sizes(raw=70, record=6, own=True, line=7),
    2: Sizes(raw=50, record=1, own=True, line=5),
    3: Sizes(raw=60, record=8, own=True, line=5),
    4: Sizes(raw=40, record=6, own=False, line=9),
    5: Sizes(raw=45, record=9, own=False, line=31),
    6: Sizes(raw=1, record=1, own=False),
}
CANDIDATES = [3, 1, 5, 4, 0, 2]
FITTED = {3: (RAW, 60), 1: (EXCERPT, 28), 5: (RECORD, 9), 4: (EXCERPT, 18), 0: (RAW, 12)}


def test_fit_or_degrade_worked_by_hand() -> None:
    plan = fitted(CANDIDATES, SIZES, ROOM, excerpt_cap=30)
    assert shapes(plan) == FITTED
    assert list(plan.fragments) == [3, 1, 5, 4, 0]  # in order of acceptance
    assert plan.degraded == {
        1: Degraded.DID_NOT_FIT,
        5: Degraded.EXCERPT_DID_NOT_FIT,
        4: Degraded.DID_NOT_FIT,
        2: Degraded.EXCERPT_DID_NOT_FIT,
        6: Degraded.NOT_CANDIDATE,
    }


def simulated(
    gain: bool = True,
    excerpt_gain: bool = False,
    cap_by_room: bool = True,
    record_beside_own: bool = False,
    raw_first: bool = False,
    stop_at_first_miss: bool = False,
    by_size: bool = False,
) -> dict[int, tuple[Resolution, int]]:
    """The example's rules in plain numbers, with one of them changed."""
    plan: dict[int, tuple[Resolution, int]] = {}
    left = ROOM
    order = sorted(CANDIDATES, key=lambda uid: SIZES[uid].raw) if by_size else CANDIDATES
    passes = [(uid, form) for uid in order for form in (RAW, EXCERPT, RECORD)]
    if raw_first:
        passes = [(uid, RAW) for uid in order] + [(uid, form) for uid in order for form in (EXCERPT, RECORD)]
    for uid, form in passes:
        unit = SIZES[uid]
        saved = unit.record if unit.own else 0
        if uid in plan:
            continue
        if form is RAW:
            size: int | None = unit.raw
            cost = unit.raw - (saved if gain else 0)
            if cost > left and stop_at_first_miss:
                break
        elif form is EXCERPT:
            size = unit.excerpt(min(30, left) if cap_by_room else 30)
            cost = (size or 0) - (saved if excerpt_gain else 0)
        else:
            size = unit.record if not unit.own or record_beside_own else None
            cost = unit.record
        if size is not None and cost <= left:
            plan[uid] = (form, size)
            left -= cost
    return plan


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"gain": False}, id="a raw unit pays for its record's line too"),
        pytest.param({"excerpt_gain": True}, id="an excerpt replaces the record's line"),
        pytest.param({"cap_by_room": False}, id="excerpts not cut to the room left"),
        pytest.param({"record_beside_own": True}, id="a record bought beside its own line"),
        pytest.param({"raw_first": True}, id="raw tried for all before any excerpt"),
        pytest.param({"stop_at_first_miss": True}, id="ends at the first unit that is not raw"),
        pytest.param({"by_size": True}, id="small units first"),
    ],
)
def test_the_fit_or_degrade_example_tells_wrong_variants(wrong: dict[str, bool]) -> None:
    assert simulated() == FITTED
    assert simulated(**wrong) != FITTED


def test_a_record_is_not_bought_where_its_own_line_is_shown() -> None:
    units = {0: Sizes(raw=50, record=8, own=True)}
    assert shapes(fitted([0], units, 10)) == {}


def test_with_raw_first_every_unit_is_tried_raw_before_any_excerpt() -> None:
    """u3 raw leaves 60; u1 (64) does not fit; u5 raw takes 45, leaves 15; u4 does not fit; u0 raw leaves 11; u2 does
    not fit. Then u1 has an excerpt of 7 within 11, leaves 4; nothing of u4 or u2 fits.
    """
    plan = fitted(CANDIDATES, SIZES, ROOM, excerpt_cap=30, raw_first=True)
    assert shapes(plan) == {3: (RAW, 60), 5: (RAW, 45), 0: (RAW, 12), 1: (EXCERPT, 7)}
    assert shapes(plan) == simulated(raw_first=True)


def test_without_excerpts_a_unit_is_raw_or_a_record() -> None:
    """u3 raw leaves 60; u1 has its line; u5 raw leaves 15; u4 its record, 9; u0 raw leaves 5; u2 has its line."""
    plan = fitted(CANDIDATES, SIZES, ROOM, excerpts=False)
    assert shapes(plan) == {3: (RAW, 60), 5: (RAW, 45), 4: (RECORD, 6), 0: (RAW, 12)}


def test_with_the_record_kept_a_raw_unit_is_charged_in_full() -> None:
    """u3 raw takes 60, leaves 52; u1 an excerpt of 28, 24; u5 its record, 15; u4 an excerpt of 9, 6; u0's 12 do not
    fit, an excerpt of 5 does, 1; u2 has its line.
    """
    plan = fitted(CANDIDATES, SIZES, ROOM, excerpt_cap=30, raw_replaces_record=False)
    assert shapes(plan) == {3: (RAW, 60), 1: (EXCERPT, 28), 5: (RECORD, 9), 4: (EXCERPT, 9), 0: (EXCERPT, 5)}
    assert shapes(plan) == simulated(gain=False)


def test_a_room_below_the_least_excerpt_has_none() -> None:
    units = {0: Sizes(raw=100, record=5, own=True, line=1)}
    assert shapes(fitted([0], units, 39, excerpt_min=40)) == {}
    assert shapes(fitted([0], units, 40, excerpt_min=40)) == {0: (EXCERPT, 40)}


def test_giving_up_the_last_accepted_unit_says_so() -> None:
    plan = fitted(CANDIDATES, SIZES, ROOM, excerpt_cap=30)
    plan.drop_last()
    assert list(plan.fragments) == [3, 1, 5, 4]
    assert plan.degraded[0] is Degraded.DID_NOT_FIT


# ---------------------------------------------------------------- fit or degrade, properties

LEVEL = {NOTHING: 0, RECORD: 1, EXCERPT: 2, RAW: 3}
sizes = st.builds(
    Sizes,
    raw=st.integers(1, 80),
    record=st.integers(1, 12),
    own=st.booleans(),
    line=st.integers(0, 20),
    least=st.integers(0, 20),
)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[int], dict[int, Sizes], int]:
    units = dict(enumerate(draw(st.lists(sizes, min_size=1, max_size=10))))
    candidates = draw(st.permutations(range(len(units))))[: draw(st.integers(1, len(units)))]
    return list(candidates), units, draw(st.integers(0, 200))


def level(plan: Plan, uid: int) -> int:
    fragment = plan.fragments.get(uid)
    return LEVEL[fragment.resolution if fragment else NOTHING]


@settings(max_examples=200, deadline=None)
@given(situations())
def test_removing_the_lowest_candidate_lowers_no_other(situation: tuple[list[int], dict[int, Sizes], int]) -> None:
    candidates, units, room = situation
    whole = fitted(candidates, units, room)
    without = fitted(candidates[:-1], units, room)
    for uid in candidates[:-1]:
        assert level(without, uid) >= level(whole, uid)
        assert without.fragments.get(uid) == whole.fragments.get(uid)


@settings(max_examples=200, deadline=None)
@given(situations())
def test_each_unit_has_the_highest_form_that_fits_the_room_left_at_its_turn(
    situation: tuple[list[int], dict[int, Sizes], int],
) -> None:
    candidates, units, room = situation
    plan = fitted(candidates, units, room)
    left = room
    for uid in candidates:
        unit = units[uid]
        raw_cost = unit.raw - (unit.record if unit.own else 0)
        short = unit.excerpt(min(512, left))
        if raw_cost <= left:
            expected: tuple[Resolution, int] | None = (RAW, unit.raw)
            left -= raw_cost
        elif short is not None and short <= left:
            expected = (EXCERPT, short)
            left -= short
        elif not unit.own and unit.record <= left:
            expected = (RECORD, unit.record)
            left -= unit.record
        else:
            expected = None
        assert shapes(plan).get(uid) == expected
    assert left >= 0


@settings(max_examples=100, deadline=None)
@given(situations(), st.booleans(), st.booleans(), st.booleans())
def test_what_is_taken_fits_and_every_unit_that_is_not_raw_has_a_reason(
    situation: tuple[list[int], dict[int, Sizes], int], raw_first: bool, excerpts: bool, replaces: bool
) -> None:
    candidates, units, room = situation
    plan = fitted(candidates, units, room, raw_first=raw_first, excerpts=excerpts, raw_replaces_record=replaces)
    saved = sum(units[uid].record for uid in plan.fragments if plan.raw(uid) and units[uid].own and replaces)
    assert sum(fragment.tokens for fragment in plan.fragments.values()) - saved <= room
    assert set(plan.degraded) == {uid for uid in units if not plan.raw(uid)}
    for uid, reason in plan.degraded.items():
        assert (reason is Degraded.NOT_CANDIDATE) == (uid not in candidates)
        assert (reason is Degraded.DID_NOT_FIT) == (level(plan, uid) == LEVEL[EXCERPT])
    assert excerpts or EXCERPT not in {fragment.resolution for fragment in plan.fragments.values()}
