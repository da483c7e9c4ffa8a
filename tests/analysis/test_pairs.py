"""Comparisons are made on complete pairs, and say what they leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flexmem.analysis.frames import load
from flexmem.analysis.manifest import RunError
from flexmem.analysis.pairs import Pairs, compare

from .runs import RunFolder, episode


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def fill(folder: RunFolder, cells: dict[str, dict[str, float | None]], n: int = 4, **columns: Any) -> None:
    """Cells of one question each by name (``i1q1`` is of instance i1), scored as given."""
    folder.plan([{"arm": arm, "n": n, "budget": 1_000} for arm in cells])
    folder.write(
        "episodes",
        [
            episode(arm, question, instance=question[:2], budget=1_000, verbatim_evidence=score, **columns)
            for arm, scores in cells.items()
            for question, score in scores.items()
        ],
    )


def only(folder: RunFolder) -> Pairs:
    (pairs,) = compare(load(folder.path), "a", "b")
    return pairs


def test_all_pairs_of_two_complete_cells(folder: RunFolder) -> None:
    fill(folder, {"a": {"i1q1": 1, "i1q2": 1, "i2q1": 0, "i2q2": 1}, "b": {"i1q1": 0, "i1q2": 1, "i2q1": 0, "i2q2": 0}})
    pairs = only(folder)
    assert (len(pairs), pairs.conversations, pairs.left_out) == (4, 2, 0)
    assert pairs.difference == 0.5
    assert (pairs.left.mean(), pairs.right.mean()) == (0.75, 0.25)
    assert pairs.interval() == (0.5, 0.5)  # both conversations differ by one half


def test_a_question_that_one_side_lacks_is_left_out_on_both_and_counted(folder: RunFolder) -> None:
    # a would lead by 0.5 if b's missing question were passed over on one side only: a 3/4, b 1/3 -> 0.42.
    fill(folder, {"a": {"i1q1": 1, "i1q2": 1, "i2q1": 0, "i2q2": 1}, "b": {"i1q1": 0, "i1q2": 1, "i2q1": 0}})
    pairs = only(folder)
    assert len(pairs) == 3
    assert pairs.difference == pytest.approx(1 / 3)
    assert pairs.left_out == 2  # the one that b lacks, and a's partner of it


def test_a_failure_that_is_an_outcome_stays_in_with_0(folder: RunFolder) -> None:
    fill(folder, {"a": {"i1q1": 1, "i2q1": 1}, "b": {"i1q1": 1}}, n=2)
    folder.write(
        "episodes",
        [
            episode(
                "b", "i2q1", instance="i2", budget=1_000, outcome="failed", error_class="method", verbatim_evidence=0.0
            )
        ],
    )
    pairs = only(folder)
    assert (len(pairs), pairs.left_out, pairs.difference) == (2, 0, 0.5)


def test_repeats_are_averaged_first_over_those_that_both_have(folder: RunFolder) -> None:
    folder.plan([{"arm": arm, "n": 4, "repeats": 2, "budget": 1_000} for arm in "ab"])
    scores = {
        "a": {("q1", 0): 1, ("q1", 1): 0, ("q2", 0): 1, ("q2", 1): 1},
        "b": {("q1", 0): 0, ("q1", 1): 0, ("q2", 0): 1},
    }
    folder.write(
        "episodes",
        [
            episode(arm, question, repeat=repeat, budget=1_000, verbatim_evidence=score)
            for arm, cell in scores.items()
            for (question, repeat), score in cell.items()
        ],
    )
    pairs = only(folder)
    assert pairs.left.tolist() == [0.5, 1.0]
    assert pairs.right.tolist() == [0.0, 1.0]
    assert (pairs.left_out, pairs.difference) == (2, 0.25)
    assert pairs.interval() is None  # one conversation says nothing about others


def test_readers_scores_are_compared_where_there_is_a_reader(folder: RunFolder) -> None:
    folder.plan([{"arm": arm, "n": 1, "reader": "m"} for arm in "ab"])
    folder.write(
        "episodes", [episode(arm, "q", reader="m", metric="f1", score=score) for arm, score in (("a", 0.2), ("b", 0.7))]
    )
    pairs = only(folder)
    assert (pairs.metric, pairs.difference) == ("f1", pytest.approx(-0.5))


def test_questions_outside_the_population_are_no_pairs(folder: RunFolder) -> None:
    fill(folder, {"a": {"i1q1": 1}, "b": {"i1q1": 0}}, n=2)
    folder.write(
        "episodes",
        [episode(arm, "i1q2", budget=1_000, scored_by_evidence=False, verbatim_evidence=None) for arm in "ab"],
    )
    pairs = only(folder)
    assert (len(pairs), pairs.left_out) == (1, 0)


def test_an_arm_without_a_budget_stands_beside_every_budget(folder: RunFolder) -> None:
    folder.plan([{"arm": "a", "n": 1, "budget": 1_000}, {"arm": "a", "n": 1, "budget": 2_000}, {"arm": "b", "n": 1}])
    folder.write("episodes", [episode("a", "q", budget=1_000), episode("a", "q", budget=2_000), episode("b", "q")])
    assert [pairs.first.budget for pairs in compare(load(folder.path), "a", "b")] == [1_000, 2_000]


def test_nothing_in_common(folder: RunFolder) -> None:
    fill(folder, {"a": {"i1q1": 1}, "b": {}})
    pairs = only(folder)
    assert (len(pairs), pairs.difference, pairs.interval(), pairs.left_out) == (0, None, None, 8)


def test_what_can_not_be_compared_is_said(folder: RunFolder) -> None:
    folder.plan(
        [{"arm": "a", "n": 1, "budget": 1_000}, {"arm": "b", "n": 1, "budget": 2_000}, {"arm": "c", "n": 1}],
        rewriting=["c"],
    )
    run = load(folder.path)
    with pytest.raises(RunError, match="has no arm 'x'; it has a, b, c"):
        compare(run, "a", "x")
    with pytest.raises(RunError, match="no benchmark, budget and reader in common"):
        compare(run, "a", "b")
    with pytest.raises(RunError, match="'c' rewrites text"):
        compare(run, "a", "c")
