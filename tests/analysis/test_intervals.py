"""Intervals: against hand-computed values, an independent bootstrap, and by how often they cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from flexmem.analysis import intervals
from flexmem.analysis.intervals import bootstrap_interval, estimate, ratio_interval, t_interval


def test_equal_clusters_give_students_t_on_their_means() -> None:
    means = np.array([0.2, 0.5, 0.45, 0.7, 0.3])
    low, high = t_interval(means * 8, np.full(5, 8.0))
    wanted = stats.t.interval(0.95, 4, loc=means.mean(), scale=means.std(ddof=1) / np.sqrt(5))
    assert (low, high) == pytest.approx(wanted)


def test_unequal_clusters_by_hand() -> None:
    """One question scored 1 in one conversation, three scored 0 in another. m = 1/4, h = (1/4, 3/4), H = 10/16.

    Variance: (1/16) / (9/8) · (3/4)² + (9/16) / (1/8) · (1/4)² = 1/32 + 9/32 = 10/32, which is H · s² with s² = 1/2,
    the variance of the cluster means 1 and 0. One degree of freedom: t = tan(0.475 π) = 12.706.
    """
    low, high = t_interval(np.array([1.0, 0.0]), np.array([1.0, 3.0]))
    half = np.tan(0.475 * np.pi) * np.sqrt(10 / 32)
    assert (low, high) == pytest.approx((0.25 - half, 0.25 + half))


def test_it_is_about_the_mean_over_questions() -> None:
    """Conversation 0: 1 of 1; conversation 1: 1 of 4. The mean over questions is 2/5, not (1 + 1/4) / 2."""
    found = estimate([1, 1, 0, 0, 0], [0, 1, 2, 3, 4], [0, 1, 1, 1, 1])
    assert found is not None
    assert found.value == pytest.approx(0.4)
    assert (found.questions, found.clusters) == (5, 2)
    assert (found.low, found.high) == (0.0, 1.0)  # within what a score can be


def test_repeats_are_averaged_before_questions() -> None:
    """Question 0 scores (1 + 0) / 2 over two repeats, question 1 scores 1 in its only one: (0.5 + 1) / 2."""
    found = estimate([1, 0, 1], [0, 0, 1], [0, 0, 1])
    assert found is not None
    assert found.value == pytest.approx(0.75)
    assert (found.questions, found.clusters) == (2, 2)


def test_weights_make_a_share_of_turns() -> None:
    """1 of 1 turn and 1 of 3 turns visible: 2 of 4 turns, whatever the questions' own shares."""
    found = estimate([1, 1], [0, 1], [0, 0], weights=[1, 3])
    assert found is not None
    assert found.value == 0.5


def test_one_cluster_has_no_interval() -> None:
    found = estimate([1, 0, 1], [0, 1, 2], [7, 7, 7])
    assert found is not None
    assert (found.value, found.low, found.high) == (pytest.approx(2 / 3), None, None)


def test_nothing_has_no_mean() -> None:
    assert estimate([], [], []) is None
    assert estimate([0.0], [0], [0], weights=[0]) is None


def test_unknown_values_are_refused() -> None:
    with pytest.raises(ValueError, match="known"):
        estimate([1, np.nan], [0, 1], [0, 1])


def test_clusters_that_agree_have_no_width() -> None:
    assert t_interval(np.array([1.0, 2.0]), np.array([2.0, 4.0])) == pytest.approx((0.5, 0.5))


def test_thirty_clusters_are_resampled() -> None:
    rng = np.random.default_rng(3)
    sums, sizes = rng.integers(0, 5, 30).astype(float), np.full(30, 5.0)
    assert ratio_interval(sums, sizes) == bootstrap_interval(sums, sizes)
    assert ratio_interval(sums[:29], sizes[:29]) == t_interval(sums[:29], sizes[:29])


def _plain_bootstrap(sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(99)
    drawn = rng.choice(sums.size, size=(20_000, sums.size))
    return np.percentile(sums[drawn].sum(1) / sizes[drawn].sum(1), [2.5, 97.5])


@pytest.mark.parametrize(("clusters", "most"), [(40, 4), (40, 60), (700, 60)], ids=["few kinds", "drawn", "normal"])
def test_the_bootstrap_equals_a_plain_one(clusters: int, most: int) -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, most, clusters).astype(float)
    sums = rng.binomial(sizes.astype(int), 0.3).astype(float)
    found = bootstrap_interval(sums, sizes)
    plain = _plain_bootstrap(sums, sizes)
    # Both are Monte Carlo: an end's standard error is some 3 % of the mean's, which is a quarter of the width.
    assert found == pytest.approx(plain, abs=0.15 * (plain[1] - plain[0]) / 4)


def test_a_seed_settles_the_bootstrap() -> None:
    rng = np.random.default_rng(2)
    sums, sizes = rng.random(50), np.ones(50)
    assert bootstrap_interval(sums, sizes, seed=4) == bootstrap_interval(sums, sizes, seed=4)
    assert bootstrap_interval(sums, sizes, seed=4) != bootstrap_interval(sums, sizes, seed=5)


LOCOMO_LIKE = [152, 81, 152, 199, 178, 123, 150, 191, 156, 158]
SIX_TO_ONE = [50, 60, 70, 80, 100, 120, 150, 200, 250, 300]
FORTY_TO_ONE = [10, 10, 20, 20, 40, 60, 100, 200, 300, 400]


def _covered(sizes: list[int], scatter: float) -> tuple[float, float]:
    """How often the interval, and one with plain residuals and G - 1 degrees, hold the mean of a conversation drawn at
    random, over 3,000 studies of ten conversations.
    """
    rng = np.random.default_rng(7)
    counts = np.array(sizes)
    truth = np.clip(0.6 + scatter * rng.normal(size=1_000_000), 0, 1).mean()
    studies = np.clip(0.6 + scatter * rng.normal(size=(3_000, counts.size)), 0, 1)
    hits = plain_hits = 0
    quantile = stats.t.ppf(0.975, counts.size - 1)
    for scores in rng.binomial(counts, studies).astype(float):
        low, high = t_interval(scores, counts.astype(float))
        hits += low <= truth <= high
        mean = scores.sum() / counts.sum()
        residuals = (scores - mean * counts) / counts.sum()
        half = quantile * np.sqrt(10 / 9 * (residuals**2).sum())
        plain_hits += abs(mean - truth) <= half
    return hits / 3_000, plain_hits / 3_000


@pytest.mark.parametrize("scatter", [0.12, 0.03])
@pytest.mark.parametrize("sizes", [LOCOMO_LIKE, SIX_TO_ONE, FORTY_TO_ONE], ids=["locomo", "six", "forty"])
def test_coverage_with_ten_unequal_conversations(sizes: list[int], scatter: float) -> None:
    covered, plain = _covered(sizes, scatter)
    assert covered >= 0.93
    if sizes is FORTY_TO_ONE:
        assert plain < 0.90  # what the effective degrees of freedom are for


def test_large_runs_keep_memory_bounded() -> None:
    sums, sizes = np.random.default_rng(0).random(50_000), np.ones(50_000)
    low, high = bootstrap_interval(sums, sizes)
    assert high - low == pytest.approx(2 * 1.96 * sums.std() / np.sqrt(50_000), rel=0.01)
    assert intervals._drawn.cache_info().currsize <= 2
