"""Episodes in this process: every one leaves a row that says what was shown, scored and paid, or why not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.protocol import Question
from flexmem.history import Unit
from flexmem.llm import errors
from flexmem.llm.config import ModelConfig
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.assemble import assemble
from flexmem.memory.protocol import Budget, Query, Rendering
from flexmem.ports import ChatModel, ChatReply, ChatRequest, Usage
from flexmem.sweep import worker
from flexmem.sweep.builds import BuildStore
from flexmem.sweep.episodes import StopRun
from flexmem.sweep.plan import Plan, make_plan
from flexmem.sweep.results import finished_keys

from . import fake_methods as fake
from .harness import LOCOMO, InProcess, Row, by_key, rows, sweep, timeless, with_questions

READER: dict[str, Any] = {"reader": {"model": {"provider": "scripted", "model": "echo"}, "max_tokens": 64}}
MEMORY: dict[str, Any] = {"memory": {"provider": "scripted", "model": "json_record"}}
BY_MODEL = {"method": "flexa_piece", "label": "by model", "options": {"writer": "model"}}

Reply = Callable[[ChatRequest], str]


def planned(**changes: Any) -> Plan:
    return make_plan(sweep(**changes))


def run(plan: Plan, out: Path) -> Counter[str]:
    """Run a plan with a new worker."""
    return InProcess(plan, out).run()


def questions(plan: Plan) -> dict[str, Question]:
    """All questions by their ids."""
    return {
        question.question_id: question
        for loaded in plan.benchmarks
        for instance in loaded.instances.values()
        for question in instance.questions
    }


class Failing:
    """A chat model whose every call raises, counted."""

    name = "failing"

    def __init__(self, error: errors.ModelError) -> None:
        self.error = error
        self.calls = 0

    def describe(self) -> Mapping[str, Any]:
        return {"provider": "scripted", "model": self.name}

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.calls += 1
        raise self.error


def models(
    monkeypatch: pytest.MonkeyPatch, *, reader: ChatModel | None = None, memory: ChatModel | None = None
) -> None:
    """What workers get for the configured models; plans still describe the configured ones."""

    def make(config: ModelConfig) -> ChatModel:
        model = reader if config.model == READER["reader"]["model"]["model"] else memory
        assert model is not None
        return model

    monkeypatch.setattr(worker, "make_model", make)


# ---------------------------------------------------------------- rows


def test_every_planned_episode_leaves_one_whole_row(out: Path) -> None:
    plan = planned(arms=["no_memory", "truncation", "piece_retrieval", "flexa_unit"], budgets=[400, 800], repeats=2)
    counts = run(plan, out)
    found = by_key(rows(out, "episodes"))
    assert found.keys() == {task.key for group in plan.groups() for task in group.episodes}
    assert counts == {"ok": len(found)}
    assert Counter((row["arm"], row["budget"]) for row in found.values()) == {
        (cell["arm"], cell["budget"]): cell["n"] for cell in plan.cells()
    }
    asked = questions(plan)
    for row in found.values():
        question = asked[row["question"]]
        assert (row["outcome"], row["error_class"], row["error"]) == ("ok", None, None)
        assert (row["question_type"], row["n_evidence"]) == (question.question_type, len(question.evidence))
        assert row["scored_by_evidence"] == question.scored_by_evidence
        assert (row["reader"], row["reply"], row["memory_model"]) == (None, None, None)
        assert (row["metric"], row["score"]) == ("verbatim_evidence", row["verbatim_evidence"])
        assert row["usd"] is None
        assert isinstance(row["finished_at"], datetime)
        assert row["render_ms"] >= 0
    assert not rows(out, "failures")


def test_each_episode_has_its_rendering_and_each_build_its_row(out: Path) -> None:
    plan = planned(arms=["truncation", "flexa_piece"], budgets=[400, 800])
    run(plan, out)
    episodes = by_key(rows(out, "episodes"))
    renderings = by_key(rows(out, "renderings"))
    builds = by_key(rows(out, "builds"), "build")
    assert renderings.keys() == episodes.keys()
    assert builds.keys() == {group.build for group in plan.groups()} == {row["build"] for row in episodes.values()}
    for key, rendering in renderings.items():
        assert rendering["build"] == episodes[key]["build"]
        assert rendering["tokens"] == sum(block["tokens"] for block in rendering["blocks"])
        assert rendering["tokens"] == sum(share["tokens"] for share in rendering["tokens_by_resolution"])
        assert rendering["tokens"] == episodes[key]["memory_tokens"]
    units = next(iter(plan.benchmarks[0].instances.values())).units
    for build in builds.values():
        assert (build["units"], build["history_tokens"]) == (len(units), sum(unit.tokens for unit in units))
        assert (build["memory_calls"], build["memory_input_tokens"], build["memory_output_tokens"]) == (0, 0, 0)


def test_tokens_are_counted_by_the_harness_and_kept_within_the_room(out: Path) -> None:
    run(planned(arms=["piece_retrieval", "flexa_unit", "dense_units", "full_history", "no_memory"]), out)
    for row in rows(out, "episodes"):
        if row["budget"] is None:
            assert (row["room"], row["utilisation"], row["violation_tokens"]) == (None, None, 0)
        else:
            assert 0 < row["memory_tokens"] <= row["room"] == 400
            assert row["utilisation"] == row["memory_tokens"] / 400


def test_a_run_that_is_done_runs_nothing(out: Path) -> None:
    plan = planned(arms=["truncation"])
    run(plan, out)
    again = InProcess(plan, out)
    assert again.run() == Counter()
    assert again.parts == 0


def test_another_budget_leaves_finished_episodes_as_they_were(out: Path) -> None:
    run(planned(budgets=[300]), out)
    old = by_key(rows(out, "episodes"))
    assert run(planned(budgets=[300, 600]), out) == {"ok": 6}
    new = by_key(rows(out, "episodes"))
    assert len(new) == 12
    assert {key: new[key] for key in old} == old


def test_side_by_side_and_one_after_the_other_give_the_same_rows(tmp_path: Path) -> None:
    plan = planned(arms=["no_memory", "dense_pieces", "flexa_unit", "flexa_piece"], budgets=[300, 600])
    one, other = tmp_path / "one", tmp_path / "other"
    InProcess(plan, one).run()
    InProcess(with_questions(plan, reversed), other).run_together()
    assert timeless(rows(one, "episodes")) == timeless(rows(other, "episodes"))
    assert timeless(rows(one, "renderings")) == timeless(rows(other, "renderings"))


def test_pieces_are_kept_once_however_many_arms_and_budgets_show_them(out: Path) -> None:
    run(planned(arms=["piece_retrieval", "dense_pieces", "truncation", "flexa_unit"], budgets=[200, 400, 800]), out)
    pieces = [(row["cut"], row["number"]) for row in rows(out, "pieces") if row["kind"] == "piece"]
    assert len(pieces) == len(set(pieces))
    assert len({cut for cut, _ in pieces}) == 1
    lines = [row["digest"] for row in rows(out, "pieces") if row["kind"] == "line"]
    assert len(lines) == len(set(lines))


def test_a_history_is_indexed_once_for_all_arms_that_cut_it_alike(out: Path) -> None:
    small_pieces = {"method": "piece_retrieval", "label": "small", "options": {"piece_tokens": 32}}
    benchmark = {"name": "synthetic", "options": {"conversations": 2, "tokens": 1_000, "questions": 2}}
    arms = ["full_history", "dense_pieces", "truncation", "flexa_piece", "flexa_unit", small_pieces]
    run = InProcess(planned(arms=arms, benchmarks=[benchmark], budgets=[300, 600]), out)
    run.run_together()
    assert set(run.snapshots.values()) == {1}
    assert sorted(config.piece_tokens for _, config in run.snapshots) == [32, 32, 128, 128]


# ---------------------------------------------------------------- evidence, and where its score does not apply


def test_the_verbatim_evidence_score_says_whether_all_evidence_is_shown(out: Path) -> None:
    run(planned(arms=["no_memory", "truncation", "full_history"], budgets=[200]), out)
    for row in rows(out, "episodes"):
        if not row["scored_by_evidence"]:
            assert row["verbatim_evidence"] is None
            assert row["score"] is None
            continue
        assert row["n_evidence"] > 0
        assert row["evidence_visible"] <= row["evidence_partly"] <= row["n_evidence"]
        assert row["verbatim_evidence"] == float(row["evidence_visible"] == row["n_evidence"])
        assert row["evidence_rank"] >= 1
        wanted = {"no_memory": 0.0, "full_history": 1.0}.get(row["arm"], row["verbatim_evidence"])
        assert row["verbatim_evidence"] == wanted


def test_questions_without_evidence_keep_their_rows_without_a_score(out: Path) -> None:
    plan = planned(arms=["full_history"], benchmarks=[LOCOMO])
    run(plan, out)
    found = {row["question"]: row for row in rows(out, "episodes")}
    asked = questions(plan)
    unscored = {name for name, question in asked.items() if not question.scored_by_evidence}
    assert unscored
    assert {name for name, row in found.items() if row["score"] is None} == unscored


def test_a_method_that_rewrites_text_has_answer_recall_in_place_of_the_evidence_score(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.register(monkeypatch, "rewriter", fake.rewritten, rewrites_text=True)
    run(planned(arms=["rewriter"]), out)
    found = rows(out, "episodes")
    assert {row["outcome"] for row in found} == {"ok"}
    assert [row["verbatim_evidence"] for row in found] == [row["score"] for row in found] == [None] * len(found)
    assert any(row["scored_by_evidence"] for row in found)
    assert any(row["answer_recall"] is not None for row in found)
    assert all(row["extractive"] == (row["answer_recall"] is not None) for row in found)


# ---------------------------------------------------------------- control arms


def test_control_arms_show_nothing_everything_and_the_evidence(out: Path) -> None:
    plan = planned(arms=["no_memory", "full_history", "oracle_evidence"], budgets=[1_000])
    run(plan, out)
    history = next(iter(plan.benchmarks[0].instances.values()))
    whole = sum(unit.tokens for unit in history.units)
    asked = questions(plan)
    shown = {row["episode"]: row for row in rows(out, "renderings")}
    for row in rows(out, "episodes"):
        evidence = asked[row["question"]].evidence
        blocks = shown[row["episode"]]["blocks"]
        if row["arm"] == "no_memory":
            assert (row["budget"], row["memory_tokens"], blocks) == (None, 0, [])
            assert row["evidence_visible"] == 0
        elif row["arm"] == "full_history":
            assert (row["budget"], row["memory_tokens"]) == (None, whole)
            assert row["evidence_visible"] == row["n_evidence"] == len(evidence)
            assert row["answer_recall"] in (None, 1.0)
        else:
            assert row["budget"] == 1_000
            assert row["evidence_visible"] == row["n_evidence"]
            assert {block["resolution"] for block in blocks} == ({"piece"} if evidence else set())


def test_oracle_evidence_that_does_not_fit_is_shown_in_part(out: Path) -> None:
    run(planned(arms=["oracle_evidence"], budgets=[20]), out)
    found = [row for row in rows(out, "episodes") if row["n_evidence"]]
    assert all(row["memory_tokens"] <= 20 and row["violation_tokens"] == 0 for row in found)
    assert any(row["evidence_visible"] < row["n_evidence"] for row in found)


def test_random_candidates_differ_from_repeat_to_repeat_and_not_from_run_to_run(tmp_path: Path) -> None:
    plan = planned(arms=["flexa_piece.random_candidates"], budgets=[600], repeats=2)
    digests = []
    for name in ("one", "other"):
        run(plan, tmp_path / name)
        shown = by_key(rows(tmp_path / name, "renderings"))
        episodes = by_key(rows(tmp_path / name, "episodes"))
        places = {key: (row["repeat"], row["question"]) for key, row in episodes.items()}
        digests.append({places[key]: row["digest"] for key, row in shown.items()})
    assert digests[0] == digests[1]
    assert all(digests[0][0, name] != digests[0][1, name] for _, name in digests[0])


# ---------------------------------------------------------------- methods that misbehave


@pytest.mark.parametrize("render", [fake.everything, fake.understated], ids=["over budget", "and miscounted"])
def test_a_rendering_over_budget_is_recorded_and_scores_nothing(
    render: fake.Render, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.register(monkeypatch, "greedy", render)
    assert run(planned(arms=["greedy"], budgets=[300, 20_000]), out) == {"ok": 6, "method": 6}
    for row in rows(out, "episodes"):
        if row["budget"] == 20_000:
            assert (row["outcome"], row["violation_tokens"]) == ("ok", 0)
            continue
        assert (row["outcome"], row["error_class"]) == ("failed", "method")
        assert row["violation_tokens"] == row["memory_tokens"] - 300 > 0
        assert row["error"] == f"the rendering has {row['violation_tokens']} tokens more than its room"
        assert (row["metric"], row["score"]) == ("verbatim_evidence", 0.0)
        assert row["verbatim_evidence"] == (0.0 if row["scored_by_evidence"] else None)
        assert row["answer_recall"] == (0.0 if row["extractive"] else None)


def test_a_rendering_over_budget_is_never_read(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.register(monkeypatch, "greedy", fake.everything)
    reader = ScriptedModel("echo")
    models(monkeypatch, reader=reader)
    run(planned(arms=["greedy"], budgets=[300], models=READER), out)
    assert reader.calls.total() == 0
    assert {(row["metric"], row["score"], row["outcome"]) for row in rows(out, "episodes")} == {("f1", 0.0, "failed")}


def test_a_method_that_raises_while_writing_fails_all_its_episodes_and_no_others(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(unit: Unit) -> None:
        raise RuntimeError(f"can't take {unit.label}")

    fake.register(monkeypatch, "broken", fake.everything, spoilt)
    plan = planned(arms=["broken", "truncation"])
    counts = run(plan, out)
    assert counts == {"method": 6, "ok": 6}
    by_arm: dict[str, list[Row]] = {"broken": [], "truncation": []}
    for row in rows(out, "episodes"):
        by_arm[row["arm"]].append(row)
    assert {(row["outcome"], row["error_class"], row["error"], row["score"]) for row in by_arm["broken"]} == {
        ("failed", "method", "RuntimeError: can't take u00", 0.0)
    }
    assert {row["outcome"] for row in by_arm["truncation"]} == {"ok"}
    assert finished_keys(out) == {task.key for group in plan.groups() for task in group.episodes}


def test_a_method_that_raises_while_rendering_fails_that_episode_with_score_0(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fussy(build: fake.FakeBuild, query: Query, budget: Budget) -> Rendering:
        if build.units and query.text == spoilt.text:
            raise ZeroDivisionError("no such luck")
        return assemble([])

    plan = planned(arms=["truncation"])
    spoilt = next(question for question in questions(plan).values() if question.scored_by_evidence)
    fake.register(monkeypatch, "fussy", fussy)
    counts = run(planned(arms=["fussy"]), out)
    assert counts == {"ok": 5, "method": 1}
    (row,) = (row for row in rows(out, "episodes") if row["outcome"] == "failed")
    assert row["question"] == spoilt.question_id
    assert (row["error_class"], row["error"]) == ("method", "ZeroDivisionError: no such luck")
    assert (row["metric"], row["score"], row["verbatim_evidence"]) == ("verbatim_evidence", 0.0, 0.0)
    assert (row["n_evidence"], row["evidence_visible"]) == (len(spoilt.evidence), 0)


@pytest.mark.parametrize("where", ["write", "render", "budget"])
def test_populations_do_not_shrink_where_a_method_fails(where: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed episode counts as 0 in every score that its question belongs to, or failing would pay."""

    def spoilt(unit: Unit) -> None:
        raise RuntimeError("broken")

    render = fake.everything if where == "budget" else fake.raising
    fake.register(monkeypatch, "broken", render, spoilt if where == "write" else None)
    run(planned(arms=["broken", "truncation"]), out)
    populations: dict[str, set[tuple[Any, ...]]] = {"broken": set(), "truncation": set()}
    for row in rows(out, "episodes"):
        of_question = ("question", "scored_by_evidence", "n_evidence", "extractive", "evidence_rank")
        populations[row["arm"]].add(tuple(row[name] for name in of_question))
        if row["arm"] == "broken":
            assert row["answer_recall"] == (0.0 if row["extractive"] else None)
    assert populations["broken"] == populations["truncation"]


@pytest.mark.parametrize("returned", [None, "some text"])
def test_a_method_that_breaks_the_protocol_fails_its_episodes(
    returned: object, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(build: fake.FakeBuild, query: Query, budget: Budget) -> Any:
        return returned if build.units else assemble([])

    fake.register(monkeypatch, "odd", odd)
    assert run(planned(arms=["odd"]), out) == {"method": 6}
    assert {(row["outcome"], row["score"]) for row in rows(out, "episodes")} == {("failed", 0.0)}


# ---------------------------------------------------------------- the reader


def right_answers(plan: Plan) -> Reply:
    """A reader that knows every answer."""
    asked = questions(plan).values()

    def reply(request: ChatRequest) -> str:
        text = request.messages[-1].content
        question = max((one for one in asked if one.text.strip() in text), key=lambda one: len(one.text))
        return question.answer or "Not mentioned"

    return reply


def test_a_readers_replies_are_scored_by_the_benchmark(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(models=READER, repeats=2)
    reader = ScriptedModel(right_answers(plan), name="echo")
    models(monkeypatch, reader=reader)
    assert run(plan, out) == {"ok": 12}
    asked = questions(plan)
    for row in rows(out, "episodes"):
        question = asked[row["question"]]
        assert row["reply"] == (question.answer or "Not mentioned")
        assert (row["reader"], row["metric"], row["score"]) == ("echo", "f1", 1.0)
        assert row["scores"] == [{"metric": "f1", "value": 1.0}, {"metric": "contains", "value": 1.0}]
        assert row["reader_output_tokens"] > 0
        assert row["reader_input_tokens"] > row["memory_tokens"]
        assert row["attempts"] == 1
        assert row["verbatim_evidence"] is not None or not question.scored_by_evidence
    assert reader.calls == {"reader": 12}
    assert {request.max_tokens for request in reader.requests} == {64}


def test_wrong_replies_score_nothing_and_are_no_failures(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models(monkeypatch, reader=ScriptedModel(lambda request: "xyzzy"))
    run(planned(models=READER), out)
    assert {(row["outcome"], row["score"]) for row in rows(out, "episodes")} == {("ok", 0.0)}


def test_the_reader_sees_the_rendering_and_only_that(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ScriptedModel(lambda request: "x")
    models(monkeypatch, reader=reader)
    run(planned(arms=["no_memory", "full_history"], models=READER), out)
    said = [request.messages[-1].content for request in reader.requests]
    assert sum("There is no memory of earlier conversations." in text for text in said) == 6
    assert sum("<memory>\n### u00" in text for text in said) == 6


def test_tokens_that_an_endpoint_does_not_say_are_null(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(ScriptedModel):
        async def complete(self, request: ChatRequest) -> ChatReply:
            reply = await super().complete(request)
            return ChatReply(reply.text, reply.model, Usage(), reply.finish)

    models(monkeypatch, reader=Silent(lambda request: "x"))
    run(planned(models=READER), out)
    found = rows(out, "episodes")
    assert {(row["reader_input_tokens"], row["reader_output_tokens"]) for row in found} == {(None, None)}


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        (errors.ContextOverflow("too long"), "limit"),
        (errors.Truncated("cut"), "limit"),
        (errors.Refused("no"), "agent"),
    ],
)
def test_a_readers_limit_or_refusal_is_a_result_with_score_0(
    error: errors.ModelError, error_class: str, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models(monkeypatch, reader=Failing(error))
    plan = planned(models=READER)
    assert run(plan, out) == {error_class: 6}
    found = rows(out, "episodes")
    assert {(row["outcome"], row["error_class"], row["metric"], row["score"]) for row in found} == {
        ("failed", error_class, "f1", 0.0)
    }
    assert not rows(out, "failures")
    assert not list(plan.groups(finished_keys(out)))


def test_what_the_memory_showed_stands_where_only_the_reader_failed(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models(monkeypatch, reader=Failing(errors.Refused("no", usage=Usage(input=90, output=4))))
    run(planned(arms=["full_history"], models=READER), out)
    for row in rows(out, "episodes"):
        assert (row["outcome"], row["reply"], row["score"]) == ("failed", None, 0.0)
        assert (row["reader_input_tokens"], row["reader_output_tokens"]) == (90, 4)
        assert row["verbatim_evidence"] == (1.0 if row["scored_by_evidence"] else None)
        assert row["memory_tokens"] > 0
        assert row["answer_recall"] == (1.0 if row["extractive"] else None)


@pytest.mark.parametrize("error", [errors.Transient("down"), errors.RateLimited("slow"), errors.Malformed("html")])
def test_a_readers_infrastructure_failure_is_no_result_and_runs_again(
    error: errors.ModelError, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(models=READER)
    models(monkeypatch, reader=Failing(error))
    assert run(plan, out) == {"infrastructure": 6}
    assert not rows(out, "episodes")
    failures = by_key(rows(out, "failures"))
    assert failures.keys() == {task.key for group in plan.groups() for task in group.episodes}
    assert {row["error_class"] for row in failures.values()} == {"infrastructure"}
    assert {row["error"] for row in failures.values()} == {f"{type(error).__name__}: {error}"}
    models(monkeypatch, reader=ScriptedModel(right_answers(plan)))
    assert run(plan, out) == {"ok": 6}
    assert {row["score"] for row in by_key(rows(out, "episodes")).values()} == {1.0}


@pytest.mark.parametrize("error", [errors.QuotaExhausted("empty"), errors.ModelConfigurationError("no key")])
def test_a_call_that_all_would_fail_like_stops_the_run_and_scores_nothing(
    error: errors.ModelError, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(models=READER, engine={"in_flight": 2}, arms=["piece_retrieval", "truncation"])
    reader = Failing(error)
    models(monkeypatch, reader=reader)
    with pytest.raises(StopRun, match=str(error)):
        run(plan, out)
    assert 1 <= reader.calls <= 2
    assert not rows(out, "episodes")
    assert {row["error_class"] for row in rows(out, "failures")} == {"configuration"}
    models(monkeypatch, reader=ScriptedModel(right_answers(plan)))
    assert run(plan, out) == {"ok": 12}


def test_what_was_answered_before_the_stop_is_kept(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(models=READER, engine={"in_flight": 1})
    script: Sequence[str | errors.ModelError] = ["one", "two", errors.QuotaExhausted("empty")]
    models(monkeypatch, reader=ScriptedModel(script))
    with pytest.raises(StopRun, match="empty"):
        run(plan, out)
    assert sorted(row["reply"] for row in rows(out, "episodes")) == ["one", "two"]
    kept = by_key(rows(out, "episodes"))
    models(monkeypatch, reader=ScriptedModel(lambda request: "three"))
    assert run(plan, out) == {"ok": 4}
    found = by_key(rows(out, "episodes"))
    assert len(found) == 6
    assert {key: found[key] for key in kept} == kept


# ---------------------------------------------------------------- the memory model


def test_a_memory_models_calls_and_tokens_are_metered(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ScriptedModel("json_record")
    models(monkeypatch, memory=memory)
    plan = planned(arms=[BY_MODEL, "flexa_piece"], models=MEMORY, budgets=[200])
    run(plan, out)
    found = rows(out, "builds")
    builds = {row["arm"]: row for row in found if row["phase"] == "written"}
    written, read = (row for row in found if row["arm"] == "by model")  # entries are merged while it is read
    spent = [model_reply(memory, request) for request in memory.requests]
    assert written["memory_calls"] == written["units"]
    assert read["memory_calls"] > 0
    assert written["memory_calls"] + read["memory_calls"] == memory.calls["memory"] == len(spent)
    assert written["memory_input_tokens"] + read["memory_input_tokens"] == sum(usage.input or 0 for usage in spent)
    assert written["memory_output_tokens"] + read["memory_output_tokens"] == sum(usage.output or 0 for usage in spent)
    assert builds["by model"]["memory_model"] == "json_record"
    assert builds["flexa_piece"]["memory_calls"] == 0
    assert builds["flexa_piece"]["memory_model"] is None
    assert {row["memory_model"] for row in rows(out, "episodes") if row["arm"] == "by model"} == {"json_record"}


def model_reply(model: ScriptedModel, request: ChatRequest) -> Usage:
    """What a scripted model says of a request's tokens."""
    return asyncio.run(ScriptedModel("json_record", keep_requests=False).complete(request)).usage


def records_and_merges(model: ScriptedModel) -> tuple[int, int]:
    """Calls that asked for a record, and others."""
    records = sum(request.schema is not None for request in model.requests)
    return records, len(model.requests) - records


def test_a_build_that_a_model_wrote_is_kept_and_never_written_again(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (ScriptedModel("json_record") for _ in range(3))
    large = planned(arms=[BY_MODEL], models=MEMORY, budgets=[20_000])
    models(monkeypatch, memory=first)
    run(large, out)
    units = len(next(iter(large.benchmarks[0].instances.values())).units)
    assert records_and_merges(first) == (units, 0)
    # Another budget reads the kept build; what it merges for itself is kept as well.
    both = planned(arms=[BY_MODEL], models=MEMORY, budgets=[300, 20_000])
    models(monkeypatch, memory=second)
    assert run(both, out) == {"ok": 6}
    records, merges = records_and_merges(second)
    assert records == 0
    assert merges > 0
    # A question that comes later finds records and merged records.
    models(monkeypatch, memory=third)
    reworded = with_questions(both, lambda asked: [*asked, fresh(asked[0])])
    assert run(reworded, out) == {"ok": 2}
    assert records_and_merges(third) == (0, 0)


def fresh(question: Question) -> Question:
    return replace(question, question_id="fresh", text="What else is there?")


def test_a_restored_build_renders_as_the_one_that_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ScriptedModel("json_record")
    models(monkeypatch, memory=memory)
    plan = planned(arms=[BY_MODEL], models=MEMORY, budgets=[300, 800])
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    run(plan, whole)
    for budget in (800, 300):
        run(planned(arms=[BY_MODEL], models=MEMORY, budgets=[budget]), parted)
    assert timeless(rows(whole, "renderings")) == timeless(rows(parted, "renderings"))
    assert timeless(rows(whole, "episodes")) == timeless(rows(parted, "episodes"))


def test_another_budget_reads_the_builds_that_are_there(tmp_path: Path) -> None:
    arms = ["flexa_unit", "truncation", "oracle_evidence"]
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    run(planned(arms=arms, budgets=[300, 800]), whole)
    run(planned(arms=arms, budgets=[800]), parted)
    run(planned(arms=arms, budgets=[300, 800]), parted)
    found = rows(parted, "builds")
    methods = [row["restored"] for row in found if row["arm"] != "oracle_evidence"]
    assert sorted(methods) == [False] * 2 + [True] * 2  # two arms, written once and read once
    assert not any(row["restored"] for row in found if row["arm"] == "oracle_evidence")
    assert timeless(rows(whole, "renderings")) == timeless(rows(parted, "renderings"))


def test_a_build_that_cant_be_kept_is_said_and_stops_nobody(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stateless(fake.FakeBuild):
        def state(self) -> bytes:
            raise RuntimeError("no state")

    monkeypatch.setattr(fake, "FakeBuild", Stateless)
    fake.register(monkeypatch, "stateless", fake.everything)
    assert run(planned(arms=["stateless"], budgets=[100_000]), out) == {"ok": 6}
    (said,) = {fallback["reason"] for row in rows(out, "builds") for fallback in row["fallbacks"]}
    assert said == "build not kept (RuntimeError: no state)"


def test_a_kept_build_that_is_damaged_is_named(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(arms=[BY_MODEL], models=MEMORY, budgets=[300])
    models(monkeypatch, memory=ScriptedModel("json_record"))
    run(plan, out)
    (state,) = (out / "builds-state").glob("*.state")
    state.write_bytes(state.read_bytes()[:100])
    more = planned(arms=[BY_MODEL], models=MEMORY, budgets=[300, 600])
    with pytest.raises(StopRun, match=rf"{state.name}: the kept build of arm 'by model': the saved memory is damaged"):
        run(more, out)
    assert {(row["budget"], row["outcome"]) for row in rows(out, "episodes")} == {(300, "ok")}
    state.unlink()
    assert run(more, out) == {"ok": 6}


def test_fallbacks_of_a_memory_model_are_counted(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models(monkeypatch, memory=ScriptedModel("garbage"))
    plan = planned(arms=[BY_MODEL], models=MEMORY)
    run(plan, out)
    build, *more = rows(out, "builds")
    assert [row["phase"] for row in (build, *more)] == ["written", "read"]  # entries merged while it was read
    assert {"reason": "record written by rule, not by the model", "times": build["units"]} in build["fallbacks"]


@pytest.mark.parametrize(
    ("error", "counted"),
    [(errors.Transient("down"), {"infrastructure": 6}), (errors.ContextOverflow("too long"), {"limit": 6})],
)
def test_a_memory_model_that_fails_fails_the_groups_episodes_alike(
    error: errors.ModelError, counted: dict[str, int], out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models(monkeypatch, memory=Failing(error))
    assert run(planned(arms=[BY_MODEL], models=MEMORY), out) == counted


def test_a_memory_model_without_quota_stops_the_run(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Failing(errors.QuotaExhausted("empty"))
    models(monkeypatch, memory=memory)
    with pytest.raises(StopRun, match="empty"):
        run(planned(arms=[BY_MODEL, "truncation"], models=MEMORY), out)
    assert memory.calls == 1
    assert not rows(out, "episodes")


def test_a_state_is_there_whole_or_not_at_all(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BuildStore(out)
    assert store.load("k") is None
    store.save("k", b"one")
    monkeypatch.setattr("flexmem.sweep.builds.os.replace", lambda *_: (_ for _ in ()).throw(OSError("killed")))
    with pytest.raises(OSError, match="killed"):
        store.save("k", b"two")
    assert store.load("k") == b"one"
