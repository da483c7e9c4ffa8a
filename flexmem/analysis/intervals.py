"""95 % intervals of means over questions that share conversations (docs/methods.md E.4).

Questions about one conversation are not independent, so clusters (conversations) are what varies. The point estimate is
the mean over questions, the figure that a table quotes; with clusters of unequal size that is not the mean of the
cluster means, and an interval around the latter would miss it. So the mean is treated as what it is, a ratio of cluster
sums, m = sum(y_g) / sum(w_g).

*Fewer than 30 clusters*: Student t on the clusters' deviations from m. With shares h_g = w_g / sum(w) and H = sum(h²),
the variance is the sum of h_g² (y_g / w_g - m)² / (1 - 2 h_g + H): unbiased where cluster means scatter alike. Its
degrees of freedom are tr(A)² / tr(A²) of that quadratic form A (Satterthwaite; Bell and McCaffrey 2002). Clusters of
equal size give back exactly E.4's rule, t with G - 1 degrees on the cluster means; unequal ones count as the fewer that
they are worth. With G - 1 degrees all the same, the interval would cover 86 % on ten clusters of 10 to 400 questions.

*From 30 clusters on*: percentiles of 10,000 bootstrap resamples of clusters. Beyond 500 clusters of many kinds, the
normal interval with the same variance stands in for them: it is then nearer to the percentiles of infinitely many
resamples than those of 10,000, whose own standard error is 2.7 % of the mean's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

BOOTSTRAP_FROM = 30
RESAMPLES = 10_000

_FEW_KINDS = 32  # clusters with the same sums are alike: so few kinds are drawn in one multinomial, whatever G is
_MOST_DRAWN = 500  # 40 MB of draws

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its 95 % interval; ``low`` and ``high`` are None for a single cluster, which says nothing about
    others. ``questions`` and ``clusters`` are what it is taken over.
    """

    value: float
    low: float | None
    high: float | None
    questions: int
    clusters: int


def estimate(
    values: npt.ArrayLike,
    questions: npt.ArrayLike,
    clusters: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    seed: int = 0,
) -> Estimate | None:
    """Mean of n episodes' ``values`` in [0, 1], repeats of a question averaged first. None for n = 0.

    Args:
        values: (n), the numerator: a score, or a count out of ``weights``.
        questions: (n) integers; rows with the same one are repeats.
        clusters: (n) integers; all rows of a question have the same.
        weights: (n), the denominator: 1 by default, the number of evidence turns for a share of turns.
        seed: of the bootstrap.

    Raises:
        ValueError: a value is NaN: unknown outcomes are for the caller to settle.
    """
    numerator = np.asarray(values, dtype=np.float64)
    if not numerator.size:
        return None
    denominator = np.ones_like(numerator) if weights is None else np.asarray(weights, dtype=np.float64)
    if np.isnan(numerator).any() or np.isnan(denominator).any():
        raise ValueError("an estimate needs known values")
    _, first, index, repeats = np.unique(
        np.asarray(questions), return_index=True, return_inverse=True, return_counts=True
    )
    _, cluster = np.unique(np.asarray(clusters)[first], return_inverse=True)
    sums = _totals(cluster, _totals(index, numerator) / repeats)
    sizes = _totals(cluster, _totals(index, denominator) / repeats)
    sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    if not sizes.size:
        return None
    low, high = ratio_interval(sums, sizes, seed=seed) or (None, None)
    if low is not None and high is not None:
        low, high = max(low, 0.0), min(high, 1.0)
    return Estimate(float(sums.sum() / sizes.sum()), low, high, first.size, sizes.size)


def _totals(groups: npt.NDArray[np.intp], values: Numbers) -> Numbers:
    return np.asarray(np.bincount(groups, values), dtype=np.float64)


def ratio_interval(sums: Numbers, sizes: Numbers, *, seed: int = 0) -> tuple[float, float] | None:
    """95 % interval of sum(sums) / sum(sizes) over G clusters, by t or by bootstrap; None for G = 1.

    Args:
        sums: (G), each cluster's numerator.
        sizes: (G), each cluster's denominator, positive.
        seed: of the bootstrap.
    """
    if sums.size < 2:
        return None
    return t_interval(sums, sizes) if sums.size < BOOTSTRAP_FROM else bootstrap_interval(sums, sizes, seed=seed)


def t_interval(sums: Numbers, sizes: Numbers) -> tuple[float, float]:
    """Student t interval of the ratio, as the module's docstring has it. Clusters that agree give a width of 0."""
    shares = sizes / sizes.sum()
    weights = _variance_weights(shares)
    return _around(sums, sizes, weights, float(stdtrit(_degrees(shares, weights), 0.975)))


def bootstrap_interval(sums: Numbers, sizes: Numbers, *, seed: int = 0) -> tuple[float, float]:
    """Percentile interval of the ratio over resampled clusters; the same for the same input and seed."""
    # A pair as a complex number: numpy sorts these several times faster than rows.
    kinds, members = np.unique(sums + 1j * sizes, return_counts=True)
    if kinds.size <= _FEW_KINDS:
        drawn = np.random.default_rng(seed).multinomial(sums.size, members / sums.size, size=RESAMPLES)
        totals = drawn @ np.column_stack([kinds.real, kinds.imag])
    elif sums.size <= _MOST_DRAWN:
        totals = _drawn(sums.size, seed) @ np.column_stack([sums, sizes])
    else:
        return _around(sums, sizes, _variance_weights(sizes / sizes.sum()), float(ndtri(0.975)))
    low, high = np.percentile(totals[:, 0] / totals[:, 1], [2.5, 97.5])
    return float(low), float(high)


def _around(sums: Numbers, sizes: Numbers, weights: Numbers, quantile: float) -> tuple[float, float]:
    mean = sums.sum() / sizes.sum()
    half = quantile * np.sqrt((weights * (sums / sizes - mean) ** 2).sum())
    return float(mean - half), float(mean + half)


def _variance_weights(shares: Numbers) -> Numbers:
    weights: Numbers = shares**2 / (1 - 2 * shares + (shares**2).sum())
    return weights


def _degrees(shares: Numbers, weights: Numbers) -> float:
    """Satterthwaite's degrees of freedom of sum(weights · (y - sum(shares · y))²) for y alike and independent."""
    centre = np.eye(shares.size) - shares
    form = centre.T @ (weights[:, None] * centre)
    return float(np.trace(form) ** 2 / (form**2).sum())


@lru_cache(maxsize=2)
def _drawn(clusters: int, seed: int) -> Numbers:
    """How often each resample draws each cluster, (RESAMPLES, clusters). Kept, because a report's cells have the same
    clusters and drawing costs more than all the rest.
    """
    generator = np.random.default_rng(seed)
    drawn = np.empty((RESAMPLES, clusters))
    for row in drawn:
        row[:] = np.bincount(generator.integers(0, clusters, size=clusters), minlength=clusters)
    return drawn
