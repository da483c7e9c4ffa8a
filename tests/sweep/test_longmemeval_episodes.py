"""LongMemEval's questions as episodes: populations, and nothing of the gold in what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexmem.sweep.plan import make_plan

from .harness import InProcess, Row, rows, sweep

SMALL = Path(__file__).parents[1] / "fixtures" / "longmemeval" / "small.json"
LONGMEMEVAL = {"name": "longmemeval", "options": {"path": str(SMALL)}}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Row]:
    """Rows by arm and question."""
    out = tmp_path_factory.mktemp("run")
    plan = make_plan(sweep(benchmarks=[LONGMEMEVAL], arms=["full_history", "oracle_evidence"], budgets=[400]))
    assert InProcess(plan, out).run() == {"ok": 10}
    return {(row["arm"], row["question"]): row for row in rows(out, "episodes")}


def test_questions_with_marked_turns_that_do_not_abstain_have_an_evidence_score(
    found: dict[tuple[str, str], Row],
) -> None:
    scores = {question: row["verbatim_evidence"] for (arm, question), row in found.items() if arm == "oracle_evidence"}
    assert scores == {"bike_01": 1.0, "lamp_02": 1.0, "lamp_02_abs": None, "gpt4_mass": 1.0, "hike_04": None}
    turns = {question: row["n_evidence"] for (arm, question), row in found.items() if arm == "full_history"}
    assert turns == {"bike_01": 1, "lamp_02": 3, "lamp_02_abs": 0, "gpt4_mass": 3, "hike_04": 0}


def test_an_abstentions_explanation_is_no_answer_to_recall(found: dict[tuple[str, str], Row]) -> None:
    # All content words of both keys occur in the history.
    assert found["full_history", "lamp_02"]["answer_recall"] == 1.0
    assert not found["full_history", "lamp_02_abs"]["extractive"]
