"""Judging is a stage of its own: every reply once by every judge, gone on with, and told apart from reading."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flexmem.analysis.cells import cells
from flexmem.analysis.costs import costs, spent
from flexmem.analysis.frames import load
from flexmem.analysis.judged import agreements, cohen_kappa, judge_scores
from flexmem.analysis.report import to_markdown
from flexmem.cli import app
from flexmem.llm import errors
from flexmem.llm.config import ModelConfig, make_model
from flexmem.llm.scripted import ScriptedModel
from flexmem.ports import Attempt, ChatReply, ChatRequest, Usage
from flexmem.sweep import worker
from flexmem.sweep.config import JudgeEntry
from flexmem.sweep.judging import JudgingOutcome, judge_run
from flexmem.sweep.ledger import REPLIES, export_calls
from flexmem.sweep.manifest import RunFolderError, add_judges, plan_manifest
from flexmem.sweep.plan import Plan, make_plan
from flexmem.sweep.status import RATE_OVER_S, read_status

from .harness import LOCOMO, InProcess, open_manifest, rows, sweep

READER = {"reader": {"model": {"provider": "scripted", "model": "first_sentence"}}}
JUDGES = [
    {"label": "strict", "model": {"provider": "scripted", "model": "garbage"}},
    {"label": "kind", "model": {"provider": "scripted", "model": "echo"}},
]


class Judge:
    """Says yes to replies of which its rule approves; each call costs a cent."""

    def __init__(self, name: str, approves: Any, error: errors.ModelError | None = None) -> None:
        self.name = name
        self.requests: list[ChatRequest] = []
        self._approves = approves
        self._error = error

    def describe(self) -> Mapping[str, Any]:
        return {"model": self.name}

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        await asyncio.sleep(0)
        if self._error is not None:
            raise self._error
        said = "yes" if self._approves(request.messages[0].content) else "no"
        sent = Attempt(1, 1_000.0, 0.1, "reply", 200, Usage(20, 1), 0.01)
        return ChatReply(said, self.name, Usage(20, 1), "stop", trail=(sent,))


@pytest.fixture
def plan(out: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A run whose replies are there and not judged."""
    monkeypatch.setattr(worker, "make_model", lambda config: ScriptedModel("first_sentence"))
    made = make_plan(
        sweep(benchmarks=[LOCOMO], arms=["piece_retrieval", "truncation"], models={**READER, "judges": JUDGES})
    )
    open_manifest(out, made)
    InProcess(made, out).run()
    return made


def by_judges(plan: Plan, out: Path, judges: Mapping[str, Judge], **options: Any) -> JudgingOutcome:
    entries = [entry for entry in plan.config.models.judges if entry.label in judges]
    return judge_run(plan.benchmarks, entries, out, lambda entry: judges[entry.label], **options)


def judged(out: Path) -> list[dict[str, Any]]:
    """Episodes whose reply a judge scores."""
    return [row for row in rows(out, "episodes") if row["question_type"] != "adversarial"]


def both() -> dict[str, Judge]:
    return {"strict": Judge("s", lambda prompt: False), "kind": Judge("k", lambda prompt: True)}


def test_every_reply_is_judged_once_by_every_judge(plan: Plan, out: Path) -> None:
    judges = both()
    outcome = by_judges(plan, out, judges)
    wanted = Counter((row["episode"], label) for row in judged(out) for label in judges)
    found = rows(out, "judgements")
    assert Counter((row["episode"], row["judge"]) for row in found) == wanted
    assert (outcome.wanted, outcome.done, outcome.complete) == (len(wanted), len(wanted), True)
    assert {row["label"] for row in found if row["judge"] == "kind"} == {1.0}
    assert {(row["rubric"], row["usd"], row["input_tokens"]) for row in found} == {("locomo", 0.01, 20)}
    again = both()
    assert by_judges(plan, out, again).complete
    assert not any(judge.requests for judge in again.values())
    assert len(rows(out, "judgements")) == len(found)


def test_equal_prompts_are_paid_once_and_the_readers_calls_are_not_made_again(plan: Plan, out: Path) -> None:
    judges = both()
    by_judges(plan, out, judges)
    for judge in judges.values():
        prompts = [request.messages for request in judge.requests]
        assert len(prompts) == len(set(prompts)) <= len(judged(out))


def test_the_score_is_the_primary_judge_s_and_others_stand_beside(plan: Plan, out: Path) -> None:
    judges = {"strict": Judge("s", lambda prompt: "Pottery" in prompt), "kind": Judge("k", lambda prompt: True)}
    before = [cell for cell in cells(load(out)) if cell.question_type is None]
    assert all(cell.score is None for cell in before), "not judged yet: withheld"
    assert any("without a score" in problem for cell in before for problem in cell.problems)
    by_judges(plan, out, judges)
    run = load(out)
    for score in judge_scores(run):
        assert score.missing == 0
        if score.judge == "kind":
            assert score.score == 1.0
    types = [cell for cell in cells(run) if cell.question_type == "multi_hop"]
    assert {cell.metric for cell in types} == {"judge strict"}
    text = to_markdown(run)
    assert "Score by judge kind" in text
    assert "Judges strict and kind" in text
    assert "Judges' tokens" in text


def test_a_judge_that_is_down_leaves_its_replies_to_be_judged(plan: Plan, out: Path) -> None:
    down = Judge("k", None, errors.Transient("no connection"))
    outcome = by_judges(plan, out, {**both(), "kind": down})
    assert not outcome.complete
    assert outcome.done == outcome.wanted // 2
    assert sum(outcome.errors.values()) == outcome.wanted - outcome.done
    assert any("no connection" in error for error in outcome.errors)
    assert {row["judge"] for row in rows(out, "judgements")} == {"strict"}
    assert by_judges(plan, out, both()).complete


def test_a_judge_that_refuses_has_said_so_and_the_score_is_withheld(plan: Plan, out: Path) -> None:
    refusing = Judge("s", None, errors.Refused("I won't"))
    outcome = by_judges(plan, out, {**both(), "strict": refusing})
    assert outcome.complete
    assert {(row["label"], row["error_class"]) for row in rows(out, "judgements") if row["judge"] == "strict"} == {
        (None, "agent")
    }
    assert all(cell.score is None for cell in cells(load(out)) if cell.question_type is None)


def test_a_judge_without_quota_stops_and_what_is_judged_stays(plan: Plan, out: Path) -> None:
    outcome = by_judges(plan, out, {"kind": Judge("k", None, errors.QuotaExhausted("no credit"))}, in_flight=2)
    assert "no credit" in outcome.stopped
    assert not outcome.complete


def test_other_judges_may_come_later(plan: Plan, out: Path) -> None:
    by_judges(plan, out, both())
    later = JudgeEntry.model_validate({"label": "late", "model": {"provider": "scripted", "model": "echo"}})
    add_judges(out, plan.benchmarks, [later])
    judge_run(plan.benchmarks, [later], out, lambda entry: Judge("late", lambda prompt: len(prompt) % 2 == 0))
    run = load(out)
    assert tuple(run.manifest.judges) == ("strict", "kind", "late")
    assert {score.judge for score in judge_scores(run)} == {"strict", "kind", "late"}
    assert [(pair.first, pair.second) for pair in agreements(run)] == [
        ("strict", "kind"),
        ("strict", "late"),
        ("kind", "late"),
    ]


@pytest.mark.parametrize("change", [{"model": {"provider": "scripted", "model": "echo"}}, {"max_tokens": 99}])
def test_another_judge_under_the_same_label_is_refused(plan: Plan, out: Path, change: dict[str, Any]) -> None:
    """Words of two judges under one label would be mixed in one score."""
    by_judges(plan, out, both())
    other = JudgeEntry.model_validate({**JUDGES[0], **change})
    with pytest.raises(RunFolderError, match="judge 'strict' is there as another one"):
        add_judges(out, plan.benchmarks, [other])
    again = sweep(
        benchmarks=[LOCOMO],
        arms=["piece_retrieval", "truncation"],
        models={**READER, "judges": [{**JUDGES[0], **change}, JUDGES[1]]},
    )
    with pytest.raises(RunFolderError, match="give the new one a label of its own"):
        plan_manifest(out, make_plan(again))


def test_a_judgement_is_replayed_for_nothing(plan: Plan, out: Path) -> None:
    by_judges(plan, out, both())
    kept = rows(out, "judgements")
    for path in (out / "judgements").rglob("*.parquet"):
        path.unlink()
    for path in (out / "judgements" / "_merges").glob("*.json"):
        path.unlink()
    silent = both()
    assert by_judges(plan, out, silent, replay=out / REPLIES).complete
    assert not any(judge.requests for judge in silent.values())
    without = [{k: v for k, v in row.items() if k != "finished_at"} for row in kept]
    now = [{k: v for k, v in row.items() if k != "finished_at"} for row in rows(out, "judgements")]
    assert sorted(now, key=repr) == sorted(without, key=repr)


def test_the_ledger_counts_what_was_sent_and_costs_say_their_denominator(plan: Plan, out: Path) -> None:
    judges = both()
    by_judges(plan, out, judges)
    sent = sum(len(judge.requests) for judge in judges.values())
    calls = rows(out, "calls")
    assert Counter(row["role"] for row in calls) == {"judge": sent}
    assert {row["subject_kind"] for row in calls} == {"judgement"}
    assert {row["subject"] for row in calls} <= {row["judgement"] for row in rows(out, "judgements")}
    run = load(out)
    (judging,) = spent(run)
    assert (judging.attempts, judging.failed, judging.unknown) == (sent, 0, 0)
    assert judging.usd == pytest.approx(0.01 * sent)
    per_question = 2 * 21 * len(judged(out)) / len(rows(out, "episodes"))
    found = costs(run)
    assert len(found) == 2
    assert sum(cost.judge_tokens or 0 for cost in found) / 2 == pytest.approx(per_question)
    assert all(cost.usd == 0 for cost in found)  # the reader is scripted and costs nothing; judges are apart
    assert sum(cost.judge_usd or 0 for cost in found) / 2 == pytest.approx(
        0.02 * len(judged(out)) / len(rows(out, "episodes"))
    )
    assert export_calls(out) == len(calls)
    assert len(rows(out, "calls")) == len(calls)


def status(out: Path) -> dict[str, Any]:
    """`read_status`, with what it counts of each judge as planned, done and failed."""
    found = read_status(out)
    by_judge = found["judgements"].pop("by_judge")
    return found | {"by_judge": {row.pop("judge"): tuple(row.values()) for row in by_judge}}


def test_a_run_is_complete_once_every_judge_has_judged_every_reply(plan: Plan, out: Path) -> None:
    replies = len(judged(out))
    found = status(out)
    assert (found["done"], found["planned"]) == (len(rows(out, "episodes")),) * 2
    assert not found["complete"]
    assert found["by_judge"] == {"strict": (replies, 0, 0), "kind": (replies, 0, 0)}
    by_judges(plan, out, {"strict": Judge("s", None, errors.Refused("I won't"))})
    found = status(out)
    assert not found["complete"]
    assert found["by_judge"] == {"strict": (replies, replies, replies), "kind": (replies, 0, 0)}
    by_judges(plan, out, both())
    found = status(out)
    assert found["complete"]
    assert found["judgements"] == {
        "planned": 2 * replies,
        "done": 2 * replies,
        "failed": replies,
        "running": False,
        "rate": None,
        "eta_s": None,
    }
    result = CliRunner().invoke(app, ["status", str(out)])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert f"judge strict: {replies} of {replies} replies judged, {replies} of them without a verdict" in lines
    assert f"judge kind: {replies} of {replies} replies judged" in lines


def heard(out: Path) -> None:
    """Wait for the heartbeat of a stage that has just begun."""
    deadline = time.monotonic() + 30
    while not read_status(out)["judgements"]["running"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_run_that_judges_says_so_and_how_fast(plan: Plan, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked from within a judge's call, when half is judged and on disk."""
    replies = len(judged(out))
    by_judges(plan, out, {"strict": Judge("s", lambda prompt: True)})
    seen: list[tuple[dict[str, Any], list[str]]] = []

    class Slow(Judge):
        async def complete(self, request: ChatRequest) -> ChatReply:
            if not seen:
                await asyncio.to_thread(heard, out)
                seen.append((status(out), CliRunner().invoke(app, ["status", str(out)]).stdout.splitlines()))
            return await super().complete(request)

    told: list[tuple[int, int]] = []
    judges = {"kind": Slow("k", lambda prompt: True)}
    by_judges(plan, out, judges, in_flight=1, on_judged=lambda done, wanted: told.append((done, wanted)))
    ((found, lines),) = seen
    assert found["running"]
    assert found["in_flight"] == {"judge": 1}
    assert (found["workers"], found["stall"]) == (None, None)
    found = found["judgements"]
    assert (found["running"], found["done"], found["planned"]) == (True, replies, 2 * replies)
    assert found["rate"] == pytest.approx(replies / RATE_OVER_S)
    assert found["eta_s"] == pytest.approx(RATE_OVER_S)  # as many are to go as were judged in the last minute
    assert f"judging: {found['rate']:.1f} judgements/s over the last minute, 60 s to go" in lines
    assert any(line.startswith("in flight, ") and line.endswith(" s ago: 1 judge") for line in lines)
    assert not any(line.startswith(("running", "workers")) for line in lines)
    assert told == [(done, replies) for done in range(replies + 1)]
    assert not list(out.glob("*activity*"))


def test_kappa_by_hand() -> None:
    import numpy as np

    # 3 of 4 agree; chance: 0.5 * 0.75 + 0.5 * 0.25 = 0.5, so (0.75 - 0.5) / 0.5.
    left, right = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0])
    assert cohen_kappa(left, right) == pytest.approx(0.5)
    assert cohen_kappa(left[:2], right[:2]) is None
    assert cohen_kappa(left[:0], right[:0]) is None


def test_a_judge_whose_endpoint_is_gone_is_asked_for_nothing(plan: Plan, out: Path) -> None:
    entries = plan.config.models.judges
    gone = ModelConfig(model="m", base_url="http://127.0.0.1:9/v1", api_key_env="NO_KEY", timeout_s=2)
    outcome = judge_run(plan.benchmarks, entries, out, lambda entry: make_model(gone))
    assert "127.0.0.1:9" in outcome.stopped
    assert not outcome.errors
    assert not (out / "judgements").exists()
    assert by_judges(plan, out, both()).complete
