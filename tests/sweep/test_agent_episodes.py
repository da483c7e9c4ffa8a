"""An agent's episodes through a worker: rows, failures and resume, without a sandbox."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks import registry
from flexmem.llm.errors import Refused
from flexmem.llm.scripted import RULES
from flexmem.ports import ChatRequest
from flexmem.sandbox.errors import SandboxDeadlineError, SandboxError
from flexmem.sweep.config import ConfigError, SweepConfig
from flexmem.sweep.plan import make_plan
from tests.agents.errands import Errands
from tests.sweep.harness import InProcess, rows, sweep

AGENT = {"agent": {"model": {"provider": "scripted", "model": "echo"}}}


def shopping(request: ChatRequest) -> str:
    """Looks at shelves 4 to 6, by what it saw last, then buys the lamp that the task names."""
    wanted = request.messages[1].content.removesuffix(".").split()[-1]
    last = re.findall(r"shelf (\d+)\n", request.messages[-1].content)
    seen = int(last[-1]) if last else 3
    return f"Next.\n```shop\n{f'buy {wanted}' if seen == 6 else f'look {seen + 1}'}\n```"


@pytest.fixture
def errands(monkeypatch: pytest.MonkeyPatch) -> type[Errands]:
    """The benchmark, registered, with a scripted agent."""
    monkeypatch.setattr(registry, "BENCHMARKS", {**registry.BENCHMARKS, "errands": "tests.agents.errands:Errands"})
    monkeypatch.setitem(RULES, "echo", shopping)
    return Errands


def config(**changes: Any) -> SweepConfig:
    content = {"benchmarks": ["errands"], "arms": ["truncation"], "budgets": [1_000], "models": AGENT, **changes}
    return sweep(**content)


def benchmark_of(process: InProcess) -> Errands:
    found = process.worker._benchmarks["errands"]
    assert isinstance(found, Errands)
    return found


def run(tmp_path: Path, **changes: Any) -> tuple[InProcess, Counter[str]]:
    process = InProcess(make_plan(config(**changes)), tmp_path)
    return process, process.run()


def test_every_task_leaves_its_rows(errands: type[Errands], tmp_path: Path) -> None:
    process, counts = run(tmp_path, arms=["truncation", "no_memory", "full_history"])
    assert counts == {"ok": 18}
    episodes = rows(tmp_path, "episodes")
    assert {row["arm"] for row in episodes} == {"truncation", "no_memory", "full_history"}
    for row in episodes:
        assert (row["score"], row["metric"], row["ended"], row["steps"]) == (1.0, "bought", "completed", 4)
        assert row["scores"] == [{"metric": "bought", "value": 1.0}]
        assert row["measures"] == [{"metric": "acted", "value": 4.0}]
        assert row["reader"] == "echo"
        assert row["question_type"] == "difficulty 1"
        assert row["reader_input_tokens"] > 0
        assert row["budget"] == (None if row["arm"] == "full_history" else 1_000)
    steps = rows(tmp_path, "steps")
    assert len(steps) == 5 * 18  # the task is row 0
    of_one = sorted((step for step in steps if step["episode"] == episodes[0]["episode"]), key=lambda s: s["step"])
    assert (of_one[0]["kind"], of_one[0]["output"][:16]) == ("task", "Buy the lamp of ")
    assert [step["action"] for step in of_one[1:4]] == ["look 4", "look 5", "look 6"]
    assert of_one[1]["output"].startswith("shelf 4\nitem 4-0: a lamp")
    assert {step["kind"] for step in steps} == {"task", "action"}
    builds = rows(tmp_path, "builds")
    assert {row["build"] for row in builds} == {row["episode"] for row in episodes if row["arm"] == "truncation"}
    assert all(shops.closed and not shops.open for shops in benchmark_of(process).shops)


def test_a_rendering_before_a_step_can_be_shown_again(errands: type[Errands], tmp_path: Path) -> None:
    run(tmp_path)
    renderings = rows(tmp_path, "renderings")
    assert renderings
    calls = {(row["episode"], row["call"]) for row in renderings}
    shown = {(row["episode"], row["step"] - 1) for row in rows(tmp_path, "steps") if row["memory_tokens"] is not None}
    assert calls == shown
    cuts = {row["cut"] for row in rows(tmp_path, "pieces")}
    assert {row["cut"] for row in renderings} <= cuts


def test_a_budget_is_for_memory_and_window_together(errands: type[Errands], tmp_path: Path) -> None:
    run(tmp_path, arms=["truncation", "piece_retrieval", "no_memory"])
    for step in rows(tmp_path, "steps"):
        if step["kind"] == "task":
            continue
        assert step["window_tokens"] + (step["memory_tokens"] or 0) <= 1_000


def test_the_step_limit_is_a_failure_with_its_reason(
    errands: type[Errands], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RULES, "echo", lambda request: "```shop\nlook 1\n```")
    _, counts = run(tmp_path)
    assert counts == {"limit": 6}
    for row in rows(tmp_path, "episodes"):
        assert (row["outcome"], row["error_class"], row["ended"], row["score"]) == ("failed", "limit", "steps", 0.0)
        assert "within 8 steps" in row["error"]


@pytest.mark.parametrize(
    ("error", "counted", "table"),
    [
        (SandboxDeadlineError("it took 9 s"), "limit", "episodes"),
        (SandboxError("docker is gone"), "infrastructure", "failures"),
    ],
)
def test_what_ends_an_episode_in_its_sandbox_has_its_class(
    errands: type[Errands], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, counted: str, table: str
) -> None:
    monkeypatch.setitem(RULES, "echo", lambda request: "```shop\nfail\n```")
    process = InProcess(make_plan(config()), tmp_path)
    benchmark_of(process).failure = error
    assert process.run() == {counted: 6}
    found = rows(tmp_path, table)
    assert len(found) == 6
    assert {row["error_class"] for row in found} == {counted}
    assert all(str(error) in row["error"] for row in found)


def test_what_failed_outside_an_episode_is_run_again(errands: type[Errands], tmp_path: Path) -> None:
    plan = make_plan(config())
    process = InProcess(plan, tmp_path)
    benchmark_of(process).no_lease = SandboxError("no daemon")
    assert process.run() == {"infrastructure": 6}
    again = InProcess(plan, tmp_path)
    assert again.run() == {"ok": 6}
    assert InProcess(plan, tmp_path).run() == {}


def test_a_model_that_refuses_ends_its_episode_which_is_graded(
    errands: type[Errands], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(request: ChatRequest) -> str:
        if len(request.messages) > 4:
            raise Refused("no", attempts=1)
        return "```shop\nlook 1\n```"

    monkeypatch.setitem(RULES, "echo", refuses)
    _, counts = run(tmp_path, arms=["full_history"])
    assert counts == {"agent": 6}
    for row in rows(tmp_path, "episodes"):
        assert row["steps"] == 2
        assert row["scores"] == [{"metric": "bought", "value": 0.0}]


def test_environments_bound_what_runs_at_once(errands: type[Errands], tmp_path: Path) -> None:
    process, _ = run(tmp_path, engine={"environments": 2})
    assert max(shops.most for shops in benchmark_of(process).shops) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": {}}, "benchmark 'errands' needs an agent, but models.agent is not configured"),
        (
            {"models": {"reader": AGENT["agent"]}},
            "models.reader answers questions, and this sweep has an agent's tasks",
        ),
        ({"arms": ["oracle_evidence"]}, "control arm 'oracle_evidence' is for questions"),
        ({"benchmarks": ["errands", "synthetic"]}, "a sweep has questions or an agent's tasks, not both"),
        ({"benchmarks": ["synthetic"]}, "models.agent acts in an agent's tasks, and this sweep has questions"),
        ({"budgets": [200]}, "budget 200 is too small for an agent: memory and its newest step share it"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(errands: type[Errands], changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_plan(config(**changes))


def test_the_same_sweep_gives_the_same_rows(errands: type[Errands], tmp_path: Path) -> None:
    def steps(out: Path) -> list[tuple[Any, ...]]:
        run(out, arms=["truncation", "observation_masking"])
        columns = ("episode", "step", "action", "output", "window_tokens", "memory_tokens")
        return sorted((tuple(row[name] for name in columns) for row in rows(out, "steps")), key=repr)

    assert steps(tmp_path / "a") == steps(tmp_path / "b")
