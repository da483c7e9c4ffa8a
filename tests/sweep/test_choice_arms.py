"""Arms that answer multiple-choice questions by rule: in every sweep that has such questions, and in no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flexmem.agents.choice_controls import CHOICE_CONTROLS
from flexmem.analysis.cells import cells
from flexmem.analysis.frames import load
from flexmem.analysis.matrices import sections
from flexmem.sweep.config import ConfigError
from flexmem.sweep.plan import BY_RULE, Plan, make_plan

from .harness import LOCOMO, InProcess, open_manifest, rows, sweep

PERSONAMEM = {"name": "personamem", "options": {"path": str(Path(__file__).parents[1] / "fixtures" / "personamem")}}
READER: dict[str, Any] = {"reader": {"model": {"provider": "scripted", "model": "echo"}}}
RULES = list(CHOICE_CONTROLS)

# Worked out by hand from the fixture's five questions. Of the right options the longest are q-rye's, q-boat's and
# (of two equal ones the first) q-same's; q-idea, a suggest_new_ideas question, has the shortest.
SCORES = {"always_longest": 3 / 5, "length_rule": 4 / 5, "chance": 1 / 4}


def planned(**changes: Any) -> Plan:
    return make_plan(sweep(**{"benchmarks": [PERSONAMEM], "arms": ["truncation"], **changes}))


def at(plan: Plan, benchmark: str) -> list[str]:
    return [cell["arm"] for cell in plan.cells() if cell["benchmark"] == benchmark]


# ---------------------------------------------------------------- plans


def test_they_are_added_where_there_is_something_to_choose_and_nowhere_else() -> None:
    plan = planned(benchmarks=[LOCOMO, PERSONAMEM], budgets=[400, 800])
    assert at(plan, "personamem") == ["truncation", "truncation", *RULES]
    assert at(plan, "locomo") == ["truncation", "truncation"]
    groups = [(group.benchmark, group.arm) for group in plan.groups()]
    assert {arm for benchmark, arm in groups if benchmark == "locomo"} == {"truncation"}
    assert plan.size() == (len(groups), sum(len(group.episodes) for group in plan.groups()))


def test_a_sweep_that_lists_one_has_it_once() -> None:
    plan = planned(arms=["chance", "truncation"])
    assert [arm.name for arm in plan.arms] == ["chance", "truncation", "always_longest", "length_rule"]


def test_a_sweep_without_choices_has_none_and_refuses_them() -> None:
    assert at(planned(benchmarks=[LOCOMO]), "locomo") == ["truncation"]
    with pytest.raises(
        ConfigError, match="arm 'chance' answers multiple-choice questions, and no benchmark here has any"
    ):
        planned(benchmarks=[LOCOMO], arms=["truncation", "chance"])


# ---------------------------------------------------------------- runs


@pytest.mark.parametrize("models", [READER, {}], ids=["with a reader", "without"])
def test_they_score_without_a_call(tmp_path: Path, models: dict[str, Any]) -> None:
    plan = planned(models=models, repeats=2)
    open_manifest(tmp_path, plan)
    counts = InProcess(plan, tmp_path).run()
    assert counts == {"ok": plan.size()[1]}
    found = [row for row in rows(tmp_path, "episodes") if row["arm"] in RULES]
    assert len(found) == 3 * 5 * 2
    for arm, score in SCORES.items():
        scored = [row for row in found if row["arm"] == arm]
        assert sum(row["score"] for row in scored) / len(scored) == pytest.approx(score)
        assert {row["scores"][0]["metric"] for row in scored} == {row["metric"] for row in scored} == {"accuracy"}
        assert {(row["memory_tokens"], row["reader_input_tokens"], row["usd"]) for row in scored} == {(0, 0, 0.0)}
        assert {row["reader"] for row in scored} == {"echo" if models else BY_RULE}
    replies = {row["question"]: row["reply"] for row in found if row["arm"] == "length_rule"}
    assert replies == {"q-rye": "(c)", "q-boat": "(a)", "q-idea": "(b)", "q-oil": "(a)", "q-same": "(b)"}
    assert {row["reply"] for row in found if row["arm"] == "chance"} == {None}


@pytest.mark.parametrize("models", [READER, {}], ids=["with a reader", "without"])
def test_a_report_has_them_in_the_benchmarks_table_of_scores(tmp_path: Path, models: dict[str, Any]) -> None:
    plan = planned(models=models)
    open_manifest(tmp_path, plan)
    InProcess(plan, tmp_path).run()
    tables = [matrix for section in sections(cells(load(tmp_path))) for matrix in section.matrices]
    (scores,) = [matrix for matrix in tables if matrix.title.startswith("Score (accuracy)")]
    shown = {row.arm: row.values[0].split(" ")[0] for row in scores.rows}
    assert {arm: shown[arm] for arm in RULES} == {"always_longest": "60.0", "length_rule": "80.0", "chance": "25.0"}
    assert ("truncation" in shown) is bool(models)


def test_a_multiple_choice_benchmark_has_neither_evidence_scores_nor_answer_recall(tmp_path: Path) -> None:
    plan = planned()
    open_manifest(tmp_path, plan)
    InProcess(plan, tmp_path).run()
    shown = [row for row in rows(tmp_path, "episodes") if row["arm"] == "truncation"]
    assert {(row["verbatim_evidence"], row["answer_recall"], row["extractive"]) for row in shown} == {
        (None, None, False)
    }
    assert {row["memory_tokens"] > 0 for row in shown} == {True}
