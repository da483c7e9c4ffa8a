"""AppWorld's two scores, from grades: task goal completion and scenario goal completion (arXiv 2407.18901 §4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from flexmem.benchmarks.appworld.data import scenario_of
from flexmem.benchmarks.appworld.grading import Grade

__all__ = ["Scores", "by_difficulty", "by_split", "percent", "sgc", "tgc"]

_Key = TypeVar("_Key", str, int)


@dataclass(frozen=True, slots=True)
class Scores:
    """Shares in [0, 1], and of how many."""

    tgc: float
    sgc: float
    tasks: int
    scenarios: int


def tgc(successes: Mapping[str, bool]) -> float:
    """Share of tasks that pass all their tests. ``successes`` is by task, and not empty."""
    return sum(successes.values()) / len(successes)


def sgc(successes: Mapping[str, bool]) -> float:
    """Share of scenarios all of whose variants pass. ``successes`` is by task, and not empty."""
    scenarios = _scenarios(successes)
    return sum(map(all, scenarios.values())) / len(scenarios)


def by_split(grades: Mapping[str, Grade], splits: Mapping[str, str]) -> dict[str, Scores]:
    """Scores of each split that has grades. ``splits`` is by task."""
    return _by(grades, lambda task_id: splits[task_id])


def by_difficulty(grades: Mapping[str, Grade]) -> dict[int, Scores]:
    """Scores of each difficulty that has grades, easiest first."""
    return _by(grades, lambda task_id: grades[task_id].difficulty)


def percent(share: float) -> float:
    """A share as AppWorld prints it: rounded twice."""
    return round(100 * round(share, 4), 1)


def _by(grades: Mapping[str, Grade], key: Callable[[str], _Key]) -> dict[_Key, Scores]:
    groups: defaultdict[_Key, dict[str, bool]] = defaultdict(dict)
    for task_id, found in grades.items():
        groups[key(task_id)][task_id] = found.success
    return {
        name: Scores(tgc(found), sgc(found), len(found), len(_scenarios(found)))
        for name, found in sorted(groups.items())
    }


def _scenarios(successes: Mapping[str, bool]) -> dict[str, list[bool]]:
    scenarios: defaultdict[str, list[bool]] = defaultdict(list)
    for task_id, success in successes.items():
        scenarios[scenario_of(task_id)].append(success)
    return scenarios
