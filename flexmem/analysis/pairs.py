"""Two cells compared on their complete pairs: the questions that both have answered (docs/methods.md E.4).

An episode that is still to be run (a failure of infrastructure) takes its question out of the comparison, on both
sides, and the count says so. A failure that counts as an outcome scores 0 and stays in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flexmem.analysis.cells import VERBATIM_EVIDENCE
from flexmem.analysis.columns import EpisodeColumns
from flexmem.analysis.frames import Codes, Numbers, Run
from flexmem.analysis.intervals import ratio_interval
from flexmem.analysis.manifest import CellKey, RunError


@dataclass(frozen=True)
class Pairs:
    """The complete pairs of two cells. ``left`` and ``right`` have shape (n): a question's score in [0, 1], the mean of
    the repeats that both sides have; ``cluster`` (n) is its conversation.
    """

    first: CellKey
    second: CellKey
    metric: str
    left: Numbers
    right: Numbers
    cluster: Codes
    left_out: int
    """Episodes of either side that have no partner, or no score."""

    def __len__(self) -> int:
        return self.left.size

    @property
    def conversations(self) -> int:
        return int(np.unique(self.cluster).size)

    @property
    def difference(self) -> float | None:
        """Mean of left - right; None without pairs."""
        return float((self.left - self.right).mean()) if len(self) else None

    def interval(self) -> tuple[float, float] | None:
        """95 % interval of `difference` over conversations (`intervals`); None for fewer than two."""
        _, cluster = np.unique(self.cluster, return_inverse=True)
        sums = np.asarray(np.bincount(cluster, self.left - self.right), dtype=np.float64)
        sizes = np.asarray(np.bincount(cluster), dtype=np.float64)
        return ratio_interval(sums, sizes) if len(self) else None


def compare(run: Run, first: str, second: str) -> list[Pairs]:
    """The pairs of two arms wherever both ran: at each benchmark, budget and reader. An arm without a budget is set
    beside every budget of the other.

    Raises:
        RunError: the run has no such arm, or no cells of the two belong together.
    """
    columns = EpisodeColumns(run.episodes)
    for arm in (first, second):
        if arm not in run.manifest.arms:
            raise RunError(f"{run.folder}: has no arm {arm!r}; it has {', '.join(run.manifest.arms)}")
    found = [_pairs(run, columns, left, right) for left, right in _matching(run, first, second)]
    if not found:
        raise RunError(f"{run.folder}: {first!r} and {second!r} have no benchmark, budget and reader in common")
    return found


def _matching(run: Run, first: str, second: str) -> Iterator[tuple[CellKey, CellKey]]:
    planned = [cell.key for cell in run.manifest.planned]
    for left in planned:
        for right in planned:
            budgets = {left.budget, right.budget} - {None}
            same = (left.benchmark, left.reader) == (right.benchmark, right.reader) and len(budgets) < 2
            if same and (left.arm, right.arm) == (first, second):
                yield left, right


def _pairs(run: Run, columns: EpisodeColumns, first: CellKey, second: CellKey) -> Pairs:
    rewriting = [key.arm for key in (first, second) if run.manifest.arms[key.arm].rewrites_text]
    if first.reader is None and rewriting:
        raise RunError(
            f"{rewriting[0]!r} rewrites text, so the verbatim-evidence score does not apply to it; "
            "compare with a reader"
        )
    nothing = np.empty(0, dtype=np.int64)
    sides = [_scored(columns, key, columns.by_cell.get(key, nothing)) for key in (first, second)]
    keys = [_episode(columns, at) for at, _ in sides]
    _, left, right = np.intersect1d(keys[0], keys[1], return_indices=True)
    # Repeats first: a question counts once, with the mean over the repeats that both sides have.
    questions, first_of, index = np.unique(columns.question[sides[0][0][left]], return_index=True, return_inverse=True)
    times = np.bincount(index, minlength=questions.size)
    means = [
        np.bincount(index, scores[chosen], minlength=questions.size) / times
        for (_, scores), chosen in zip(sides, (left, right), strict=True)
    ]
    population = sum(_population(columns, columns.by_cell.get(key, nothing), key).size for key in (first, second))
    planned = {cell.key: cell.n for cell in run.manifest.planned}
    missing = sum(max(0, planned[key] - columns.by_cell.get(key, nothing).size) for key in (first, second))
    return Pairs(
        first,
        second,
        _metric(columns, first, sides[0][0]),
        means[0],
        means[1],
        columns.instance[sides[0][0][left]][first_of],
        population - 2 * left.size + missing,
    )


def _population(columns: EpisodeColumns, at: Codes, key: CellKey) -> Codes:
    """The episodes that the headline metric speaks of."""
    return at[columns.scored_by_evidence[at]] if key.reader is None else at


def _scored(columns: EpisodeColumns, key: CellKey, at: Codes) -> tuple[Codes, Numbers]:
    """Episodes of the population with a score, and the scores."""
    at = _population(columns, at, key)
    scores = (columns.verbatim_evidence if key.reader is None else columns.score)[at]
    known = ~np.isnan(scores)
    return at[known], scores[known]


def _episode(columns: EpisodeColumns, at: Codes) -> Codes:
    """One code for a question in a repeat."""
    repeats = int(np.nanmax(columns.repeat, initial=0)) + 1
    return np.asarray(columns.question[at] * repeats + columns.repeat[at].astype(np.int64), dtype=np.int64)


def _metric(columns: EpisodeColumns, key: CellKey, at: Codes) -> str:
    if key.reader is None:
        return VERBATIM_EVIDENCE
    names = sorted({name for row in at if (name := columns.metric.name(row)) is not None})
    return " and ".join(names) or "score"
