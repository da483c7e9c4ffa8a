"""What a whole sweep will take, told from a pilot of some of its instances, and what its pairs can detect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import stdtrit

from flexmem.analysis.columns import EpisodeColumns
from flexmem.analysis.frames import Codes, Flags, Frame, Numbers, Run
from flexmem.analysis.manifest import RunError
from flexmem.analysis.pairs import compare

POWER = 0.8
ROLES = ("reader", "memory", "judge")


@dataclass(frozen=True)
class Expected:
    """A quantity over all instances: the pilot's mean of an instance times their number, and its 95 % interval
    (Student t over instances; None for a pilot of one). None where the pilot does not know it.
    """

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Estimate:
    """One role in one benchmark: calls, tokens in and out, and USD of the whole sweep."""

    benchmark: str
    role: str
    calls: Expected
    input_tokens: Expected
    output_tokens: Expected
    usd: Expected


@dataclass(frozen=True)
class Detectable:
    """The smallest true difference between two arms, in [0, 1], that the planned pairs would find significant at 5 %
    in 80 % of sweeps: (t(0.975) + t(0.8)) · s / √G over G planned clusters, s the pilot's standard deviation of a
    cluster's mean difference. ``median`` and ``most`` over the arms' comparisons; None where the pilot has fewer than
    two clusters, which show no spread, or the sweep, over which no test can be made.
    """

    benchmark: str
    clusters: int
    comparisons: int
    median: float | None
    most: float | None


def estimates(run: Run, instances: Mapping[str, int]) -> list[Estimate]:
    """What each role takes, from the run's finished instances.

    Args:
        run: the pilot.
        instances: of the whole sweep, by benchmark.

    Raises:
        RunError: a table can't be read.
    """
    found = []
    for benchmark, planned in instances.items():
        for role, table in _by_instance(run, benchmark).items():
            if not table["calls"].any():
                continue
            found.append(Estimate(benchmark, role, *(expected(table[name], planned) for name in _NAMES)))
    return found


_NAMES = ("calls", "input", "output", "usd")


def expected(values: Numbers, planned: int) -> Expected:
    """(n) what each instance of a pilot took, taken to ``planned`` instances."""
    if not values.size or np.isnan(values).any():
        return Expected(None, None, None)
    total = float(values.mean()) * planned
    if values.size < 2:
        return Expected(total, None, None)
    left = max(0, planned - values.size)  # what the pilot itself took is known
    half = float(stdtrit(values.size - 1, 0.975)) * float(values.std(ddof=1)) * np.sqrt(left + left**2 / values.size)
    return Expected(total, max(float(values.sum()), total - half), total + half)


def detectable(run: Run, instances: Mapping[str, int]) -> list[Detectable]:
    """What the sweep's pairs can detect, by benchmark.

    Raises:
        RunError: a table can't be read.
    """
    found = []
    for benchmark, planned in instances.items():
        arms = sorted({cell.arm for cell in run.manifest.planned if cell.benchmark == benchmark})
        smallest: list[float] = []
        comparisons = 0
        for first, second in combinations(arms, 2):
            try:
                compared = compare(run, first, second)
            except RunError:
                continue  # a score that doesn't apply to one of them
            for pairs in compared:
                if pairs.first.benchmark != benchmark or not len(pairs):
                    continue
                comparisons += 1
                _, cluster = np.unique(pairs.cluster, return_inverse=True)
                means = np.bincount(cluster, pairs.left - pairs.right) / np.bincount(cluster)
                if means.size > 1 and planned > 1:
                    quantiles = float(stdtrit(planned - 1, 0.975)) + float(stdtrit(planned - 1, POWER))
                    smallest.append(quantiles * float(means.std(ddof=1)) / np.sqrt(planned))
        if comparisons:
            median = float(np.median(smallest)) if smallest else None
            found.append(Detectable(benchmark, planned, comparisons, median, max(smallest, default=None)))
    return found


def _by_instance(run: Run, benchmark: str) -> dict[str, dict[str, Numbers]]:
    """For each role, (n) what each finished instance of the benchmark took. Arms that answer by rule stand under the
    reader and take no tokens: they call nobody. A reader that does not say what it took has called.
    """
    episodes, builds, judgements = run.episodes, run.builds, run.judgements
    columns = EpisodeColumns(episodes)
    names = episodes.table["instance"].to_pylist()
    of_benchmark = [name == benchmark for name in episodes.table["benchmark"].to_pylist()]
    complete = _complete(run, columns, benchmark)
    order = {name: place for place, name in enumerate(sorted(complete))}
    rows = np.array(
        [order.get(name, -1) if here else -1 for name, here in zip(names, of_benchmark, strict=True)], dtype=np.int64
    )
    read = np.array([reader is not None for reader in episodes.table["reader"].to_pylist()], dtype=np.bool_)
    read &= (episodes.numbers("reader_input_tokens") != 0) | (episodes.numbers("reader_output_tokens") != 0)
    built = np.array(
        [
            order.get(name, -1) if place == benchmark else -1
            for name, place in zip(
                builds.table["instance"].to_pylist(), builds.table["benchmark"].to_pylist(), strict=True
            )
        ],
        dtype=np.int64,
    )
    wrote = builds.numbers("memory_calls") > 0
    where = dict(zip(episodes.table["episode"].to_pylist(), rows.tolist(), strict=True))
    judged = np.array([where.get(key, -1) for key in judgements.table["episode"].to_pylist()], dtype=np.int64)
    n = len(order)
    return {
        "reader": _sums(n, rows, read, np.ones(len(episodes)), episodes, "reader_input_tokens", "reader_output_tokens"),
        "memory": _sums(
            n, built, wrote, builds.numbers("memory_calls"), builds, "memory_input_tokens", "memory_output_tokens"
        ),
        "judge": _sums(
            n,
            judged,
            np.ones(len(judgements), dtype=np.bool_),
            np.ones(len(judgements)),
            judgements,
            "input_tokens",
            "output_tokens",
        ),
    }


def _sums(
    n: int,
    places: Codes,
    counted: Flags,
    calls: Numbers,
    frame: Frame,
    taken: str,
    given: str,
) -> dict[str, Numbers]:
    at = counted & (places >= 0)
    columns = {
        "calls": calls,
        "input": frame.numbers(taken),
        "output": frame.numbers(given),
        "usd": frame.numbers("usd"),
    }
    return {
        name: np.asarray(np.bincount(places[at], values[at], minlength=n), dtype=np.float64)
        for name, values in columns.items()
    }


def _complete(run: Run, columns: EpisodeColumns, benchmark: str) -> set[str]:
    """Instances that every cell of the benchmark has finished: the least of any cell's episodes is what all have."""
    names = run.episodes.table["instance"].to_pylist()
    cells = [cell for cell in run.manifest.planned if cell.benchmark == benchmark]
    counts = []
    for cell in cells:
        at = columns.by_cell.get(cell.key)
        counts.append(Counter() if at is None else Counter(names[row] for row in at.tolist()))
    if not counts:
        return set()
    shared = set.intersection(*(set(count) for count in counts))
    return {
        name
        for name in shared
        if len({count[name] // cell.repeats for count, cell in zip(counts, cells, strict=True)}) == 1
    }
