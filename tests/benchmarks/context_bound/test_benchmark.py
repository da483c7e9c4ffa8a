"""The benchmark over recordings of the toy world: what a sweep asks of it, and the rows that it gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.appworld.installation import PYTHON_VARIABLE
from flexmem.benchmarks.context_bound.benchmark import ContextBoundBenchmark
from flexmem.benchmarks.context_bound.config import ContextBoundConfig
from flexmem.benchmarks.context_bound.recording_files import Index, write_index, write_recording
from flexmem.benchmarks.data import CACHE_VARIABLE
from flexmem.benchmarks.protocol import DataError, DataMissingError
from flexmem.benchmarks.registry import BenchmarkOptionError, make_benchmark, task_of
from flexmem.sweep.config import ConfigError, SweepConfig
from flexmem.sweep.plan import make_plan
from tests.agents.context_bound.toy_tasks import TASKS
from tests.benchmarks.context_bound.toy_worlds import recording_of
from tests.sweep.harness import InProcess, rows, sweep

ARMS = [
    "full_history",
    "no_memory",
    "truncation",
    {"method": "flexa_unit", "label": "f", "options": {"writer": "rule"}},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of all toy tasks, one of which could not be cut."""
    at = tmp_path_factory.mktemp("recordings")
    for task in TASKS:
        for seed in range(2):
            write_recording(at, recording_of(task, seed))
    write_index(at, Index("the toys", tuple(sorted(TASKS)), {"odd": "odd: line 3 of its solution can't be cut"}))
    return at


def benchmark(folder: Path, **options: Any) -> ContextBoundBenchmark:
    return ContextBoundBenchmark(ContextBoundConfig(recordings=folder, **options))


def config(folder: Path, **changes: Any) -> SweepConfig:
    options = {"recordings": str(folder), **changes.pop("options", {})}
    content = {"benchmarks": [{"name": "context_bound", "options": options}], "arms": ARMS, "budgets": [1_500]}
    return sweep(**{**content, **changes})


def test_an_instance_is_a_task_and_a_question_a_profile_and_seed(folder: Path) -> None:
    instances = benchmark(folder, seeds=2).instances()
    assert [instance.instance_id for instance in instances] == ["all", "debts", "likes"]
    questions = instances[1].questions
    assert len(questions) == 14
    assert questions[0].question_id == "debts/P1/0"
    assert {question.question_type for question in questions} == {f"P{n}" for n in range(1, 8)}
    assert {question.text for question in questions} == {TASKS["debts"].instruction}
    assert all(len(str(question.details["recording"])) == 64 for question in questions)


def test_options_select_tasks_profiles_and_seeds(folder: Path) -> None:
    chosen = benchmark(folder, tasks=("likes",), profiles=("P5", "P1")).instances()
    assert [[question.question_id for question in one.questions] for one in chosen] == [["likes/P5/0", "likes/P1/0"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"profiles": ["P9"]}, "profiles are some of P1, P2"),
        ({"profiles": []}, "profiles are some of"),
        ({"seeds": 0}, "greater than or equal to 1"),
        ({"world": "toy"}, "'recorded' or 'real'"),
        ({"seed": 1}, "did you mean 'seeds'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BenchmarkOptionError, match=said):
        make_benchmark("context_bound", options)
    assert task_of("context_bound") == "agent"


def test_notes_say_what_may_be_claimed(folder: Path) -> None:
    notes = " ".join(benchmark(folder, seeds=2).notes())
    for said in (
        "no language model",
        "does not show completion rates of language-model agents",
        "read P5 (strict) beside P1",
        "sign is the same in all of P1 to P7 (ties allowed) and it holds on the median task",
        "solutions of the toys, cut into steps: 3 tasks, 2 seeds, at most 60 steps; the world is recorded",
        "1 tasks are left out",
    ):
        assert said in notes


def test_missing_recordings_are_said_with_what_to_do(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    for options in ({"seeds": 3}, {"tasks": ("none",)}):
        with pytest.raises(DataMissingError, match="recordings made elsewhere") as missing:
            benchmark(folder, **options).instances()
        assert missing.value.reason == "there are no recordings, and AppWorld is not installed"
    with pytest.raises(DataMissingError, match="flexmem appworld install"):
        ContextBoundBenchmark().instances()
    with pytest.raises(DataError, match="line 3 of its solution can't be cut"):
        benchmark(folder, tasks=("odd",)).instances()


def test_digests_follow_recordings_and_options(folder: Path) -> None:
    first = benchmark(folder)
    assert first.data_digest() == benchmark(folder).data_digest()
    assert first.data_digest() != benchmark(folder, seeds=2).data_digest()
    assert first.data_digest() != benchmark(folder, steps=150).data_digest()
    first.check_environment({})


def test_a_sweep_leaves_rows_with_scores_and_measures(folder: Path, tmp_path: Path) -> None:
    process = InProcess(make_plan(config(folder, options={"profiles": ["P1", "P5"]})), tmp_path)
    counts = process.run()
    episodes = rows(tmp_path, "episodes")
    assert len(episodes) == sum(counts.values()) == 4 * 3 * 2
    assert set(counts) <= {"ok", "limit"}
    full = [row for row in episodes if row["arm"] == "full_history"]
    assert len(full) == 6
    for row in full:
        measures = {entry["metric"]: entry["value"] for entry in row["measures"]}
        assert (row["metric"], row["score"], row["ended"], row["reader"]) == ("completed", 1.0, "completed", "rule")
        assert row["usd"] == 0.0
        assert row["steps"] == measures["optimal_steps"]
        assert (measures["steps_over_optimal"], measures["repeats"], measures["misses"]) == (1.0, 0.0, 0.0)
    rest = [row for row in episodes if row["arm"] != "full_history"]
    assert all(row["violation_tokens"] == 0 for row in episodes)
    assert any(row["score"] == 0.0 and row["ended"] == "steps" for row in rest)
    assert {row["error_class"] for row in rest if row["score"] == 0.0} == {"limit"}
    assert {row["question_type"] for row in episodes} == {"P1", "P5"}


def test_the_same_sweep_gives_the_same_steps(folder: Path, tmp_path: Path) -> None:
    def steps(out: Path) -> list[tuple[Any, ...]]:
        InProcess(make_plan(config(folder, arms=ARMS[2:], options={"tasks": ["debts"], "profiles": ["P1"]})), out).run()
        columns = ("episode", "step", "thought", "action", "output", "window_tokens", "memory_tokens")
        return sorted(tuple(row[name] for name in columns) for row in rows(out, "steps"))

    assert steps(tmp_path / "a") == steps(tmp_path / "b")


def test_an_agents_model_has_no_place_in_it(folder: Path) -> None:
    agent = {"agent": {"model": {"provider": "scripted", "model": "echo"}}}
    with pytest.raises(ConfigError, match=r"a rule acts; take models\.agent out"):
        make_plan(config(folder, models=agent))
