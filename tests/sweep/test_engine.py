"""Sweeps on a real Ray that the engine starts on this machine."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from flexmem.cli import app
from flexmem.sweep.config import SweepConfig
from flexmem.sweep.engine import Progress, run_sweep
from flexmem.sweep.plan import Plan, make_plan
from flexmem.sweep.results import finished_keys
from flexmem.sweep.status import read_status
from tests.llm.endpoint import ChatEndpoint, error, ok, reset, status

from .endpoint import PlainEndpoint, free_port
from .harness import by_key, contents, rows, sweep, timeless, with_questions
from .ray_harness import (
    BrokenEmbeddingActor,
    FlakyEmbeddingActor,
    WordEmbeddingActor,
    actors,
    own_ray,
    use_embedder,
)

BENCHMARK = {"name": "synthetic", "options": {"conversations": 2, "tokens": 6_000, "questions": 4}}
ARMS = ["no_memory", "piece_retrieval", "flexa_piece", "flexa_unit"]
READER = {"model": {"provider": "scripted", "model": "first_sentence", "latency_s": 0.05}}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[Any]:
    """One Ray for this module's sweeps."""
    with own_ray() as ray:
        yield ray


@pytest.fixture
def word_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    use_embedder(monkeypatch, WordEmbeddingActor)


def small(**changes: Any) -> SweepConfig:
    content = {"benchmarks": [BENCHMARK], "arms": ARMS, "budgets": [500, 1_000], "engine": {"workers": 2}}
    return sweep(**{**content, **changes})


def shuffled(plan: Plan) -> Plan:
    """The plan with every instance's questions in another order."""
    return with_questions(plan, lambda questions: random.Random(3).sample(list(questions), len(questions)))


def keys(plan: Plan) -> set[str]:
    return {task.key for group in plan.groups() for task in group.episodes}


def test_a_sweep_runs_to_its_end_once_and_gives_the_same_rows_however_it_is_run(tmp_path: Path) -> None:
    config = tmp_path / "sweep.yaml"
    config.write_text(small().model_dump_json())
    one, other = tmp_path / "one", tmp_path / "other"
    plan = make_plan(small())

    command = ["run", str(config), "--out", str(one), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary == {
        "run": str(one),
        "planned": 56,
        "done": 56,
        "complete": True,
        "counts": {"ok": 56},
        "failed": 0,
        "errors": [],
        "stopped": None,
        "lost": [],
        "torn": [],
        "recycled": 0,
        "judging": None,
    }
    assert by_key(rows(one, "episodes")).keys() == keys(plan)
    assert read_status(one)["complete"]

    # The same command again runs nothing and changes nothing.
    before = contents(one)
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout) == summary | {"counts": {}}
    after = contents(one)
    before.pop("manifest.json"), after.pop("manifest.json")
    assert after == before

    # Other workers, other batches, another order: the same rows.
    changed = shuffled(make_plan(small(engine={"workers": 1, "in_flight": 2, "rows_per_part": 5, "flush_s": 0.5})))
    assert run_sweep(changed, other).complete
    assert timeless(rows(other, "episodes")) == timeless(rows(one, "episodes"))
    assert timeless(rows(other, "renderings")) == timeless(rows(one, "renderings"))


@pytest.mark.slow
def test_another_budget_reuses_what_is_finished(out: Path, word_embedder: None) -> None:
    assert run_sweep(make_plan(small(budgets=[500])), out).complete
    old = by_key(rows(out, "episodes"))
    outcome = run_sweep(make_plan(small(budgets=[500, 1_000])), out)
    assert (outcome.complete, outcome.counts) == (True, {"ok": 24})
    new = by_key(rows(out, "episodes"))
    assert len(new) == len(old) + 24
    assert {key: new[key] for key in old} == old


@pytest.mark.slow
def test_progress_counts_earlier_runs_and_ends_at_what_is_planned(out: Path, word_embedder: None) -> None:
    run_sweep(make_plan(small(budgets=[500])), out)
    seen: list[tuple[int, int]] = []

    def note(progress: Progress) -> None:
        seen.append((progress.done, progress.planned))

    run_sweep(make_plan(small(models={"reader": None}, arms=[*ARMS, "truncation"], budgets=[500])), out, note)
    assert seen[0] == (32, 40)
    assert seen[-1] == (40, 40)
    assert seen == sorted(seen)


def test_more_workers_than_cpus_do_the_work_all_the_same(out: Path, cluster: Any, word_embedder: None) -> None:
    workers = int(cluster.cluster_resources()["CPU"]) + 2
    assert run_sweep(make_plan(small(engine={"workers": workers})), out).complete


@pytest.mark.slow
def test_a_reader_is_asked_in_parallel_with_the_same_rows(tmp_path: Path, word_embedder: None) -> None:
    found = []
    for name, engine in (("one", {"workers": 2, "in_flight": 8}), ("other", {"workers": 1, "in_flight": 1})):
        plan = make_plan(small(models={"reader": READER}, engine=engine, arms=ARMS[:2], budgets=[500]))
        assert run_sweep(plan, tmp_path / name).complete
        found.append(timeless(rows(tmp_path / name, "episodes")))
    assert found[0] == found[1]
    assert all(row["reply"] and row["score"] is not None for row in found[0].values())


@pytest.mark.slow
def test_a_worker_that_is_killed_takes_no_result_with_it(out: Path, word_embedder: None) -> None:
    engine = {"workers": 2, "in_flight": 1, "rows_per_part": 1}
    plan = make_plan(small(models={"reader": READER}, engine=engine))
    killed: list[int] = []

    def kill_one(progress: Progress) -> None:
        if not killed and finished_keys(out):
            victim = actors("WorkerActor")[0]
            killed.append(victim.pid)
            victim.kill()

    outcome = run_sweep(plan, out, kill_one)
    assert killed
    assert (outcome.complete, outcome.stopped, outcome.lost) == (True, "", ())
    assert by_key(rows(out, "episodes")).keys() == keys(plan)


@pytest.mark.slow
def test_work_whose_workers_keep_dying_is_given_up_and_named(out: Path, word_embedder: None) -> None:
    engine = {"workers": 1, "in_flight": 1, "rows_per_part": 1, "group_attempts": 2}
    reader = {"model": {**READER["model"], "latency_s": 0.5}}
    plan = make_plan(small(models={"reader": reader}, engine=engine, arms=["piece_retrieval"], budgets=[500]))

    def kill_all(progress: Progress) -> None:
        for victim in actors("WorkerActor"):
            victim.kill()

    outcome = run_sweep(plan, out, kill_all)
    assert not outcome.complete
    assert len(outcome.lost) == 2
    assert all(f"synthetic/{group.instance}, piece_retrieval: " in "".join(outcome.lost) for group in plan.groups())
    assert run_sweep(plan, out).complete
    assert by_key(rows(out, "episodes")).keys() == keys(plan)


@pytest.mark.slow
def test_a_service_that_fails_now_and_then_fails_no_episode(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_embedder(monkeypatch, FlakyEmbeddingActor)
    plan = make_plan(small())
    outcome = run_sweep(plan, out)
    assert (outcome.complete, outcome.lost) == (True, ())
    assert {row["outcome"] for row in by_key(rows(out, "episodes")).values()} == {"ok"}


@pytest.mark.slow
def test_an_embedder_that_cant_embed_stops_the_run_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_embedder(monkeypatch, BrokenEmbeddingActor)
    config, out = tmp_path / "sweep.yaml", tmp_path / "run"
    config.write_text(small().model_dump_json())
    done = CliRunner().invoke(app, ["run", str(config), "--out", str(out)])
    assert done.exit_code == 1, done.output
    (why,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert why.endswith("the model has no weights")
    assert not rows(out, "episodes")


@pytest.mark.slow
def test_an_embedding_model_that_cant_be_loaded_is_named_without_a_traceback(tmp_path: Path) -> None:
    config, out = tmp_path / "sweep.yaml", tmp_path / "run"
    config.write_text(small(embedding={"model": str(tmp_path / "no-model")}).model_dump_json())
    done = CliRunner().invoke(app, ["run", str(config), "--out", str(out)])
    assert done.exit_code == 2, done.output
    (why,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert why.startswith(f"error: the embedding model '{tmp_path / 'no-model'}' can't be loaded")
    assert not rows(out, "episodes")


# ---------------------------------------------------------------- a reader over HTTP


class Command:
    """``flexmem run`` in this process, of a sweep whose reader is at ``url``."""

    def __init__(self, folder: Path, url: str, **model: Any) -> None:
        self.out = folder / "run"
        reader = {"model": {"model": "local", "base_url": url, "attempts": 1, **model}}
        engine = {"workers": 2, "in_flight": 1, "rows_per_part": 1}
        config = small(models={"reader": reader}, engine=engine, arms=ARMS[:2], budgets=[500])
        self.path = folder / "sweep.yaml"
        self.path.write_text(config.model_dump_json())
        self.keys = keys(make_plan(config))

    def run(self, *options: str) -> Result:
        return CliRunner().invoke(app, ["run", str(self.path), "--out", str(self.out), *options])


def quota() -> Any:
    return status(429, error("You exceeded your current quota.", code="insufficient_quota"))


@pytest.mark.slow
def test_a_run_without_quota_stops_and_the_same_command_goes_on(tmp_path: Path, word_embedder: None) -> None:
    with ChatEndpoint([ok("one"), ok("two"), quota()]) as endpoint:
        command = Command(tmp_path, endpoint.url)
        stopped = command.run()
        assert stopped.exit_code == 1, stopped.output
        kept = by_key(rows(command.out, "episodes"))
        assert len(kept) == 2
        assert {row["error_class"] for row in rows(command.out, "failures")} == {"configuration"}
        said = stopped.stderr.splitlines()
        (why,) = (line for line in said if line.startswith("error: the run stopped: "))
        assert why.startswith("error: the run stopped: QuotaExhausted: local at http://127.0.0.1:")
        assert "the account has no credit left; add credit, then run the same command again" in why
        assert said[-1] == "incomplete: 14 of 16 episodes are still to run; the same command resumes"
        assert "Traceback" not in stopped.output
        assert CliRunner().invoke(app, ["status", str(command.out)]).exit_code == 1

        endpoint.script = [ok("three")]
        resumed = command.run("--json")
        assert resumed.exit_code == 0, resumed.output
        assert json.loads(resumed.stdout)["counts"] == {"ok": 14}
    found = by_key(rows(command.out, "episodes"))
    assert found.keys() == command.keys
    assert {key: found[key] for key in kept} == kept


@pytest.mark.slow
def test_an_endpoint_that_fails_during_the_run_leaves_it_incomplete_and_resumable(
    tmp_path: Path, word_embedder: None
) -> None:
    with ChatEndpoint([ok("one"), reset]) as endpoint:
        command = Command(tmp_path, endpoint.url)
        failed = command.run("--json")
        assert failed.exit_code == 1, failed.output
        summary = json.loads(failed.stdout)
        assert (summary["complete"], summary["counts"]) == (False, {"ok": 1, "infrastructure": 15})
        assert len(rows(command.out, "episodes")) == 1
        failures = by_key(rows(command.out, "failures"))
        assert len(failures) == 15
        assert all(row["error"].startswith("Transient: local at ") for row in failures.values())
        endpoint.script = [ok("two")]
        assert command.run().exit_code == 0
    assert by_key(rows(command.out, "episodes")).keys() == command.keys


@pytest.mark.slow
def test_an_unreachable_endpoint_is_found_before_anything_runs_and_the_same_command_works_once_it_is_there(
    tmp_path: Path, word_embedder: None
) -> None:
    port = free_port()
    command = Command(tmp_path, f"http://127.0.0.1:{port}/v1")
    refused = command.run()
    assert refused.exit_code == 2, refused.output
    said = refused.stderr.splitlines()[-1]
    assert said.startswith(f"error: local at http://127.0.0.1:{port}/v1: the connection failed")
    assert not rows(command.out, "episodes")
    assert not rows(command.out, "failures")
    with PlainEndpoint(port):
        assert command.run().exit_code == 0
    assert by_key(rows(command.out, "episodes")).keys() == command.keys
