"""Draws: the same for a task and seed, and as frozen."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from flexmem.agents.context_bound.profiles import PROFILES, Profile
from flexmem.agents.context_bound.thoughts import thought
from flexmem.agents.context_bound.variation import EYE_SHARES, PAGE_SIZES, STYLES, Variation, pick, think


def test_a_task_and_seed_have_one_draw() -> None:
    assert Variation.draw("a", 1) == Variation.draw("a", 1)
    assert Variation.draw("a", 1).stream("x").random() == Variation.draw("a", 1).stream("x").random()
    assert Variation.draw("a", 1).stream("x").random() != Variation.draw("a", 1).stream("y").random()


def test_draws_vary() -> None:
    drawn = [Variation.draw("a", seed) for seed in range(100)]
    assert {one.page_size for one in drawn} == set(PAGE_SIZES) == {5, 8, 10}
    assert {one.eye for one in drawn} == set(EYE_SHARES) == {0, 0.5, 1}
    assert {one.style for one in drawn} == set(STYLES)
    for name in ("order", "pages_backward", "items_shuffled"):
        assert min(Counter(getattr(one, name) for one in drawn).values()) > 25


def test_the_solutions_own_order_can_be_asked_for() -> None:
    plain = Variation.draw("a", 1).in_solution_order()
    assert (plain.order, plain.pages_backward, plain.items_shuffled) == ("act as you read", False, False)


def test_one_missing_thing_is_picked_and_now_and_then_not_the_first() -> None:
    rng = Random(1)
    picked = Counter(pick("abc", rng) for _ in range(3_000))
    assert pick("a", rng) == 0
    assert 0.04 < (picked[1] + picked[2]) / 3_000 < 0.1  # a tenth, of which a third is the first again


@pytest.mark.parametrize("words", [30, 120])
def test_thoughts_have_half_to_half_as_many_again_words(words: int) -> None:
    lengths = [len(think(words, Random(seed)).split()) for seed in range(200)]
    assert words / 2 <= min(lengths) < words * 0.6
    assert words * 1.4 < max(lengths) <= words * 1.5
    assert len(thought(7, Random(0)).split()) == 7


def test_profiles_are_frozen_as_specified() -> None:
    assert tuple(PROFILES.values()) == (
        Profile("P1", PROFILES["P1"].summary),
        Profile("P2", PROFILES["P2"].summary, documents_first=True),
        Profile("P3", PROFILES["P3"].summary, thought_words=120),
        Profile("P4", PROFILES["P4"].summary, thought_words=120, documents_first=True),
        Profile("P5", PROFILES["P5"].summary, documents_only=True, tokens_verbatim=True),
        Profile("P6", PROFILES["P6"].summary, inference="none"),
        Profile("P7", PROFILES["P7"].summary, inference="order"),
    )
    assert (PROFILES["P1"].thought_words, PROFILES["P1"].inference) == (30, "series")
