"""Cells: hand-computed figures, failures, gaps, and a recomputation of random runs."""

from __future__ import annotations

import math
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem.analysis.attempts import open_failures
from flexmem.analysis.cells import Cell, cells
from flexmem.analysis.frames import load

from .runs import Row, RunFolder, episode


def whole(folder: RunFolder) -> dict[tuple[str, int | None, str | None], Cell]:
    return {
        (cell.key.arm, cell.key.budget, cell.key.reader): cell
        for cell in cells(load(folder.path))
        if cell.question_type is None
    }


def only(folder: RunFolder) -> Cell:
    (cell,) = whole(folder).values()
    return cell


def seen(arm: str, question: str, visible: int, turns: int, **columns: Any) -> Row:
    shown = {"evidence_visible": visible, "n_evidence": turns, "verbatim_evidence": float(visible == turns)}
    return episode(arm, question, **(shown | columns))


class TestEvidence:
    def test_by_hand(self, folder: RunFolder) -> None:
        """Four questions with 2 of 2, 1 of 4, 0 of 1 and 3 of 3 turns visible, and one that has no evidence.

        All: 2 of 4 questions. Any: 3 of 4. Turns: 6 of 10. Mean share: (1 + 1/4 + 0 + 1) / 4.
        """
        folder.plan([{"arm": "a", "n": 5}])
        rows = [seen("a", "q1", 2, 2), seen("a", "q2", 1, 4), seen("a", "q3", 0, 1, instance="i2")]
        rows += [seen("a", "q4", 3, 3, instance="i2")]
        rows += [episode("a", "q5", scored_by_evidence=False, n_evidence=0, evidence_visible=0, verbatim_evidence=None)]
        folder.write("episodes", rows)
        cell = only(folder)
        assert cell.complete
        assert (cell.metric, cell.planned, cell.present, cell.questions) == ("verbatim_evidence", 5, 5, 5)
        assert (cell.conversations, cell.n_evidence, cell.evidence_turns_total) == (2, 4, 10)
        for estimate, value in (
            (cell.score, 0.5),
            (cell.verbatim_evidence, 0.5),
            (cell.evidence_all, 0.5),
            (cell.evidence_any, 0.75),
            (cell.evidence_turns, 0.6),
            (cell.evidence_mean_share, 0.5625),
        ):
            assert estimate is not None
            assert (estimate.value, estimate.questions, estimate.clusters) == (pytest.approx(value), 4, 2)
        # Conversation means 1/2 and 1/2: they agree, so the interval has no width.
        assert cell.score is not None
        assert (cell.score.low, cell.score.high) == (0.5, 0.5)
        assert (cell.worst, cell.best) == (0.5, 0.5)

    def test_an_arm_that_rewrites_text_has_no_such_figures(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1}, {"arm": "b", "n": 1}], rewriting=["b"])
        folder.write(
            "episodes", [seen("a", "q", 1, 1), seen("b", "q", 0, 1, verbatim_evidence=None, answer_recall=0.5)]
        )
        a, b = whole(folder).values()
        assert a.score is not None
        assert b.complete
        assert b.n_evidence == 1
        figures = (
            b.score,
            b.verbatim_evidence,
            b.evidence_all,
            b.evidence_any,
            b.evidence_turns,
            b.evidence_mean_share,
        )
        assert figures == (None,) * 6
        assert (b.worst, b.best) == (None, None)
        assert b.answer_recall is not None
        assert b.answer_recall.value == 0.5

    def test_repeats(self, folder: RunFolder) -> None:
        """Two repeats of two questions: 1 and 0, 1 and 1. Mean over questions (1/2 + 1) / 2; 3 evidence turns."""
        folder.plan([{"arm": "a", "n": 4, "repeats": 2}])
        rows = [seen("a", "q1", 1, 1, repeat=0), seen("a", "q1", 0, 1, repeat=1)]
        rows += [seen("a", "q2", 2, 2, repeat=repeat) for repeat in (0, 1)]
        folder.write("episodes", rows)
        cell = only(folder)
        assert (cell.repeats, cell.present, cell.questions, cell.n_evidence) == (2, 4, 2, 4)
        assert (cell.evidence_questions, cell.evidence_turns_total) == (2, 3)
        assert cell.score is not None
        assert cell.score.value == 0.75
        assert cell.score.questions == 2
        assert cell.evidence_turns is not None
        assert cell.evidence_turns.value == pytest.approx(2.5 / 3)

    def test_the_same_question_id_in_two_conversations_is_two_questions(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 2}])
        folder.write("episodes", [seen("a", "q1", 1, 1, instance="i1"), seen("a", "q1", 0, 1, instance="i2")])
        cell = only(folder)
        assert cell.complete
        assert (cell.questions, cell.conversations) == (2, 2)


class TestFailures:
    def test_a_failure_scores_0_and_stays_in_the_denominator(self, folder: RunFolder) -> None:
        """Of four, one was read right, the reader refused one and the method raised on two: score 1/4.

        What the memory showed still stands where only the reader failed: evidence 2 of 4, recall (1 + 0.5) / 4.
        """
        folder.plan([{"arm": "a", "n": 4, "reader": "r"}])
        common: Row = {"reader": "r", "metric": "f1"}
        refused = {"outcome": "failed", "error_class": "agent", "score": None, "answer_recall": 0.5}
        broken = {"outcome": "failed", "error_class": "method", "score": 1.0, "violation_tokens": 7}
        raised = {
            "outcome": "failed",
            "error_class": "method",
            "score": 0.0,
            "evidence_visible": None,
            "verbatim_evidence": None,
            "answer_recall": None,
            "violation_tokens": None,
        }
        folder.write(
            "episodes",
            [
                episode("a", "q1", **common, score=1.0),
                episode("a", "q2", **common, **refused),
                episode("a", "q3", **common, **broken),
                episode("a", "q4", **common, **raised),
            ],
        )
        cell = only(folder)
        assert cell.complete
        assert cell.metric == "f1"
        values = [cell.score, cell.verbatim_evidence, cell.evidence_turns, cell.answer_recall]
        assert [estimate.value if estimate else None for estimate in values] == [0.25, 0.5, 0.5, 0.375]
        assert cell.failures == {"agent": 1, "method": 2}
        assert cell.violations == 1

    def test_recall_keeps_a_failed_question_whose_flag_another_episode_knows(self, folder: RunFolder) -> None:
        """b failed on q1 and q2 before either was looked up; a knows that only q1's answer is extractive."""
        folder.plan([{"arm": "a", "n": 3}, {"arm": "b", "n": 3}])
        lost = {"outcome": "failed", "error_class": "method", "extractive": None, "answer_recall": None}
        rows = [episode("a", "q1"), episode("a", "q2", extractive=False, answer_recall=None), episode("a", "q3")]
        rows += [episode("b", "q1", **lost), episode("b", "q2", **lost), episode("b", "q3")]
        folder.write("episodes", rows)
        b = whole(folder)["b", None, None]
        assert b.extractive_questions == 2
        assert b.answer_recall is not None
        assert b.answer_recall.value == 0.5

    def test_recall_is_unknown_where_no_episode_knows(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 2}])
        lost = {"outcome": "failed", "error_class": "method", "extractive": None, "answer_recall": None}
        folder.write("episodes", [episode("a", "q1", **lost), episode("a", "q2")])
        assert only(folder).answer_recall is None

    def test_open_failures_are_those_that_no_attempt_made_good(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 3, "budget": 2000}])
        done = seen("a", "q1", 1, 1, budget=2000)
        folder.write("episodes", [done])
        early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
        common = {"benchmark": "bench", "arm": "a", "budget": 2000}
        folder.write(
            "failures",
            [
                common | {"episode": done["episode"], "error_class": "infrastructure", "failed_at": early},
                common | {"episode": "open", "error_class": "infrastructure", "failed_at": late},
                common | {"episode": "open", "error_class": "configuration", "failed_at": early},
            ],
        )
        assert only(folder).failures == {"infrastructure": 1}

    def test_failures_of_one_of_several_readers_are_told_apart_from_none(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1, "reader": reader} for reader in ("r", "s")])
        folder.write("failures", [{"benchmark": "bench", "arm": "a", "episode": "x", "error_class": "infrastructure"}])
        found = open_failures(load(folder.path), [cell.key for cell in whole(folder).values()])
        assert found.elsewhere == {"infrastructure": 1}
        assert all(not cell.failures for cell in whole(folder).values())


class TestGaps:
    def test_scores_are_withheld_and_bounded(self, folder: RunFolder) -> None:
        """3 of 5 episodes, of which 2 show their evidence: at worst 2/5, at best 4/5."""
        folder.plan([{"arm": "a", "n": 5}])
        rows = [
            seen("a", f"q{number}", number % 2, 1, render_ms=float(number), memory_tokens=10) for number in (1, 2, 3)
        ]
        folder.write("episodes", rows)
        cell = only(folder)
        assert cell.problems == ("3 of 5 episodes",)
        assert (cell.planned, cell.present) == (5, 3)
        withheld = (cell.score, cell.verbatim_evidence, cell.evidence_all, cell.evidence_any, cell.evidence_turns)
        assert withheld == (None,) * 5
        assert (cell.evidence_mean_share, cell.answer_recall) == (None, None)
        assert (cell.worst, cell.best) == (pytest.approx(2 / 5), pytest.approx(4 / 5))
        assert (cell.render_ms, cell.tokens) == (2.0, 10.0)

    def test_other_cells_tell_which_missing_questions_count(self, folder: RunFolder) -> None:
        """b lacks q2, q3 and q4. From a: only q2 has evidence. So b has 1 of 2 for sure, and 2 of 2 at best."""
        folder.plan([{"arm": "a", "n": 4}, {"arm": "b", "n": 4}])
        without: Row = {"scored_by_evidence": False, "verbatim_evidence": None, "question_type": "other"}
        rows = [
            seen("a", "q1", 1, 1),
            seen("a", "q2", 0, 1),
            episode("a", "q3", **without),
            episode("a", "q4", **without),
        ]
        folder.write("episodes", [*rows, seen("b", "q1", 1, 1)])
        found = [cell for cell in cells(load(folder.path)) if cell.key.arm == "b"]
        assert [(cell.question_type, cell.planned, cell.present) for cell in found] == [(None, 4, 1), ("single", 2, 1)]
        assert [(cell.worst, cell.best) for cell in found] == [(0.5, 1.0), (0.5, 1.0)]
        assert all(cell.score is None for cell in found)

    def test_a_reader_has_bounds_over_all_questions(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 4, "reader": "r"}])
        folder.write("episodes", [episode("a", f"q{n}", reader="r", metric="f1", score=0.5) for n in (1, 2)])
        cell = only(folder)
        assert (cell.score, cell.worst, cell.best) == (None, 0.25, 0.75)

    def test_nothing_yet(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 2}, {"arm": "a", "n": 2, "reader": "r"}])
        by_evidence, by_reader = whole(folder).values()
        assert by_evidence.problems == by_reader.problems == ("0 of 2 episodes",)
        assert (by_evidence.worst, by_evidence.best, by_reader.worst, by_reader.best) == (0.0, 1.0, 0.0, 1.0)
        assert (by_evidence.metric, by_reader.metric) == ("verbatim_evidence", None)
        assert (by_evidence.utilisation, by_evidence.tokens, by_evidence.usd, by_evidence.render_ms) == (None,) * 4

    def test_rows_written_twice_count_once(self, folder: RunFolder) -> None:
        """Without that, q1 alone would fill a plan of two."""
        folder.plan([{"arm": "a", "n": 2}])
        folder.write("episodes", [seen("a", "q1", 1, 1)])
        folder.write("episodes", [seen("a", "q1", 1, 1)])
        cell = only(folder)
        assert (cell.present, cell.problems, cell.score) == (1, ("1 of 2 episodes",), None)

    def test_two_configurations_in_one_folder(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 2}])
        folder.write("episodes", [seen("a", "q1", 1, 1), seen("a", "q1", 0, 1, episode="another fingerprint")])
        cell = only(folder)
        (problem,) = cell.problems
        assert "configurations are mixed" in problem
        assert (cell.score, cell.worst, cell.best) == (None, None, None)

    def test_more_than_planned(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1}])
        folder.write("episodes", [seen("a", "q1", 1, 1), seen("a", "q2", 1, 1)])
        cell = only(folder)
        assert cell.problems == ("2 episodes, 1 planned",)
        assert (cell.score, cell.worst) == (None, None)

    def test_outside_the_plan(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "z", "n": 1}])
        folder.write("episodes", [seen("z", "q1", 1, 1), seen("a", "q1", 1, 1), seen("a", "q1", 1, 1, budget=2000)])
        found = whole(folder)
        assert list(found) == [("z", None, None), ("a", None, None), ("a", 2000, None)]
        assert found["z", None, None].complete
        unplanned = found["a", 2000, None]
        assert unplanned.problems == ("1 episode outside the plan",)
        assert (unplanned.planned, unplanned.repeats, unplanned.score) == (None, 1, None)

    def test_a_finished_episode_without_a_score(self, folder: RunFolder) -> None:
        """Only the reader's score waits: what the memory showed is known."""
        folder.plan([{"arm": "a", "n": 2, "reader": "r"}])
        rows = [episode("a", "q1", reader="r", metric="judge", score=1.0), episode("a", "q2", reader="r")]
        folder.write("episodes", rows)
        cell = only(folder)
        assert cell.problems == ("1 finished episode without a score",)
        assert (cell.score, cell.worst, cell.best) == (None, 0.5, 1.0)
        assert cell.verbatim_evidence is not None

    def test_visibility_that_should_be_known_and_is_not(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 2}])
        folder.write("episodes", [seen("a", "q1", 1, 1), seen("a", "q2", 1, 1, verbatim_evidence=None)])
        cell = only(folder)
        assert cell.problems == ("1 finished episode without a score",)
        assert cell.score is None

    def test_scores_of_two_metrics(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 2, "reader": "r"}])
        rows = [episode("a", f"q{n}", reader="r", metric=metric, score=1.0) for n, metric in enumerate(("f1", "bleu"))]
        folder.write("episodes", rows)
        cell = only(folder)
        assert cell.problems == ("scores of several metrics: bleu, f1",)
        assert (cell.metric, cell.score) == (None, None)


class TestCosts:
    def test_means_and_median(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 3}])
        times, used = (1.0, 2.0, 9.0), (0.5, 1.0, None)
        rows = [
            episode("a", f"q{n}", render_ms=times[n], utilisation=used[n], memory_tokens=10 * n, usd=0.25 * n)
            for n in range(3)
        ]
        folder.write("episodes", rows)
        cell = only(folder)
        assert (cell.render_ms, cell.render_ms_mean, cell.utilisation) == (2.0, 4.0, 0.75)
        assert (cell.tokens, cell.usd) == (10.0, 0.25)

    def test_one_unknown_price_leaves_the_sum_unknown(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 2}])
        folder.write("episodes", [episode("a", "q1", usd=0.5), episode("a", "q2", usd=None)])
        assert only(folder).usd is None


def test_question_types_follow_their_cell(folder: RunFolder) -> None:
    folder.plan([{"arm": "b", "n": 3}, {"arm": "a", "n": 0}])
    rows = [seen("b", "q1", 1, 1, question_type="temporal"), seen("b", "q2", 0, 1, question_type="multi")]
    folder.write("episodes", [*rows, seen("b", "q3", 1, 1, question_type=None)])
    found = cells(load(folder.path))
    assert [(cell.key.arm, cell.question_type, cell.present) for cell in found] == [
        ("b", None, 3),
        ("b", "multi", 1),
        ("b", "temporal", 1),
        ("a", None, 0),
    ]
    assert [cell.score.value if cell.score else None for cell in found] == [pytest.approx(2 / 3), 0.0, 1.0, None]


_EPISODES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from([None, 1000, 2000]),
        st.integers(0, 3),  # conversation
        st.integers(0, 5),  # question
        st.integers(0, 2),  # repeat
        st.integers(0, 3),  # turns visible, of 3
        st.booleans(),  # of the population
        st.sampled_from([None, "method", "agent"]),
    ),
    unique_by=lambda row: row[:5],
    max_size=60,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_EPISODES, st.randoms(use_true_random=False))
def test_means_equal_a_plain_recomputation(drawn: list[tuple[Any, ...]], shuffle: Any) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = RunFolder(Path(temporary) / "run")
        rows, plan = [], {}
        wanted: dict[tuple[str, int | None], dict[tuple[int, int], list[tuple[float, float]]]] = {}
        for arm, budget, conversation, question, repeat, visible, counted, failure in drawn:
            visible_then = 0 if failure == "method" else visible
            rows.append(
                seen(
                    arm,
                    f"q{question}",
                    visible,
                    3,
                    budget=budget,
                    instance=f"i{conversation}",
                    repeat=repeat,
                    scored_by_evidence=counted,
                    outcome="failed" if failure else "ok",
                    error_class=failure,
                )
            )
            plan[arm, budget] = plan.get((arm, budget), 0) + 1
            if counted:
                by_question = wanted.setdefault((arm, budget), {})
                by_question.setdefault((conversation, question), []).append(
                    (float(visible_then == 3), visible_then / 3)
                )
        folder.plan([{"arm": arm, "budget": budget, "n": n, "repeats": 3} for (arm, budget), n in plan.items()])
        shuffle.shuffle(rows)
        folder.write("episodes", rows[::2])
        folder.write("episodes", rows[1::2] + rows[:5])
        found = whole(folder)
        assert set(found) == {(arm, budget, None) for arm, budget in plan}
        for (arm, budget), n in plan.items():
            cell = found[arm, budget, None]
            assert cell.present == n
            by_question = wanted.get((arm, budget), {})
            if not by_question:
                assert cell.score is None
                continue
            scores, shares = np.array([np.mean(pairs, axis=0) for pairs in by_question.values()]).T
            assert cell.score is not None
            assert cell.evidence_turns is not None
            assert cell.evidence_mean_share is not None
            assert math.isclose(cell.score.value, scores.mean(), abs_tol=1e-12)
            assert math.isclose(cell.evidence_turns.value, shares.mean(), abs_tol=1e-12)  # all have 3 turns
            assert math.isclose(cell.evidence_mean_share.value, shares.mean(), abs_tol=1e-12)
            assert cell.score.clusters == len({conversation for conversation, _ in by_question})
