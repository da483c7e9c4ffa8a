"""Judges' words: scores, agreement, and what a missing word does."""

from __future__ import annotations

import numpy as np
import pytest

from flexmem.analysis.cells import cells
from flexmem.analysis.costs import costs
from flexmem.analysis.footer import footer
from flexmem.analysis.frames import load
from flexmem.analysis.judged import agreements, cohen_kappa, judge_scores

from .runs import Row, RunFolder, episode

JUDGED = {"judges": {"first": {}, "second": {}}, "judged": {"bench": ["single"]}}


def word(of: Row, judge: str, label: float | None, usd: float | None = 0.01) -> Row:
    return {
        "judgement": f"{of['episode']}|{judge}",
        "episode": of["episode"],
        "judge": judge,
        "label": label,
        "error_class": None if label is not None else "agent",
        "input_tokens": 100,
        "output_tokens": 5,
        "usd": usd,
    }


def replies(arm: str, n: int, **columns: object) -> list[Row]:
    return [
        episode(
            arm,
            f"q{i}",
            budget=1000,
            reader="m",
            metric="f1",
            score=0.5,
            reader_input_tokens=50,
            reader_output_tokens=10,
            **columns,
        )
        for i in range(n)
    ]


def cell(arm: str, n: int) -> dict[str, object]:
    return {"arm": arm, "budget": 1000, "reader": "m", "n": n}


def test_the_first_judge_gives_the_score_and_every_judge_is_shown(folder: RunFolder) -> None:
    a, b = replies("a", 4), replies("b", 4)
    folder.plan([cell("a", 4), cell("b", 4)], **JUDGED)
    folder.write("episodes", a + b)
    first = dict(zip([row["episode"] for row in a + b], [1, 1, 1, 0, 1, 0, 0, 0], strict=True))
    second = dict(zip([row["episode"] for row in a + b], [1, 1, 0, 0, 1, 0, 1, 1], strict=True))
    words = [word(row, "first", first[row["episode"]]) for row in a + b]
    folder.write("judgements", words + [word(row, "second", second[row["episode"]]) for row in a + b])

    run = load(folder.path)
    assert run.episodes.numbers("score").tolist() == [1, 1, 1, 0, 1, 0, 0, 0]
    assert {(score.key.arm, score.judge): score.score for score in judge_scores(run)} == {
        ("a", "first"): 0.75,
        ("b", "first"): 0.25,
        ("a", "second"): 0.5,
        ("b", "second"): 0.75,
    }
    (both,) = agreements(run)
    # They differ on the third of a and the last two of b: 5 of 8 agree; each says yes 4 and 5 times of 8, so chance is
    # (4*5 + 4*3) / 64 = 1/2 and kappa (5/8 - 1/2) / (1/2) = 1/4. a is ahead by the first, b by the second.
    assert (both.n, both.raw, both.comparisons, both.same_sign) == (8, 0.625, 1, 0.0)
    assert both.kappa == pytest.approx(0.25)


def test_a_failure_scores_nothing_and_a_reply_without_a_word_has_no_score(folder: RunFolder) -> None:
    rows = replies("a", 2)
    failed = episode("a", "q2", budget=1000, reader="m", outcome="failed", score=0.0, error_class="method")
    folder.plan([cell("a", 3)], **JUDGED)
    folder.write("episodes", [*rows, failed])
    folder.write("judgements", [word(rows[0], "first", 1.0), word(rows[0], "second", 1.0)])
    folder.write("judgements", [word(rows[1], "second", 1.0)])

    run = load(folder.path)
    score = run.episodes.numbers("score")
    np.testing.assert_array_equal(score, [1, np.nan, 0])
    found = {score.judge: (score.score, score.n, score.missing) for score in judge_scores(run)}
    assert found == {"first": (None, 3, 1), "second": (pytest.approx(2 / 3), 3, 0)}


@pytest.mark.parametrize(
    ("words", "tokens", "usd"),
    [
        ([("q0", "first"), ("q0", "second"), ("q1", "first"), ("q1", "second")], 210, 0.02),
        ([("q0", "first"), ("q0", "second"), ("q1", "first")], None, None),  # a reply that is still to be judged
        ([], None, None),
    ],
)
def test_what_judges_cost_is_unknown_until_all_have_judged(
    folder: RunFolder, words: list[tuple[str, str]], tokens: float | None, usd: float | None
) -> None:
    rows = {row["question"]: row for row in replies("a", 2)}
    folder.plan([cell("a", 2)], **JUDGED)
    folder.write("episodes", list(rows.values()))
    folder.write("judgements", [word(rows[question], judge, 1.0) for question, judge in words])
    (cost,) = costs(load(folder.path))
    assert (cost.judge_tokens, cost.judge_usd) == (tokens, usd if usd is None else pytest.approx(usd))
    assert cost.read_tokens == 60


def test_failures_and_questions_without_a_judge_cost_judges_nothing(folder: RunFolder) -> None:
    own = episode("a", "own", budget=1000, reader="m", question_type="multiple choice", score=1.0)
    failed = episode("a", "q2", budget=1000, reader="m", outcome="failed", score=0.0, error_class="agent")
    folder.plan([cell("a", 2)], **JUDGED)
    folder.write("episodes", [own, failed])
    (cost,) = costs(load(folder.path))
    assert (cost.judge_tokens, cost.judge_usd) == (0, 0)


def test_kappa_is_not_defined_where_chance_alone_agrees() -> None:
    ones, mixed = np.ones(4), np.array([1.0, 0, 1, 0])
    assert cohen_kappa(np.array([]), np.array([])) is None
    assert cohen_kappa(ones, ones) is None
    assert cohen_kappa(mixed, mixed) == 1
    assert cohen_kappa(mixed, 1 - mixed) == -1


def test_words_that_are_neither_yes_nor_no_are_told(folder: RunFolder) -> None:
    rows = replies("a", 3)
    folder.plan([cell("a", 3)], **JUDGED)
    folder.write("episodes", rows)
    odd = word(rows[0], "first", 0.0) | {"error_class": "agent"}
    folder.write("judgements", [odd, word(rows[1], "first", None), word(rows[2], "first", 1.0)])
    folder.write("judgements", [word(row, "second", 1.0) for row in rows])
    run = load(folder.path)
    told = [line for line in footer(run, cells(run)) if line.startswith("Judge ")]
    assert told == [
        "Judge first: 2 of 3 judgements say neither yes nor no. That counts as no; a refusal leaves the reply without "
        "a score."
    ]
