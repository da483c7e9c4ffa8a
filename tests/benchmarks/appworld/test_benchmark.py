"""AppWorld as a benchmark: which tasks, what enters a fingerprint, what a preflight says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.agent_protocol import Place, is_agent_benchmark
from flexmem.benchmarks.appworld.benchmark import AppWorldBenchmark
from flexmem.benchmarks.appworld.config import AppWorldConfig
from flexmem.benchmarks.appworld.environments import experiment_name
from flexmem.benchmarks.protocol import DataError, DataMissingError
from flexmem.sweep.fingerprint import question_digest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two scenarios of train, one of dev; only what tasks are read from."""
    for split, ids in {
        "train": ["a1_1", "a1_2", "b2_1"],
        "dev": ["c3_1"],
        "test_normal": [],
        "test_challenge": [],
    }.items():
        folder = tmp_path / "data" / "datasets"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{split}.txt").write_text("\n".join(ids))
        for number, task_id in enumerate(ids, 1):
            task = tmp_path / "data" / "tasks" / task_id
            (task / "ground_truth").mkdir(parents=True)
            (task / "specs.json").write_text(json.dumps({"instruction": f"Do {task_id}."}))
            (task / "ground_truth" / "metadata.json").write_text(json.dumps({"difficulty": number}))
    return tmp_path


def benchmark(root: Path, **options: Any) -> AppWorldBenchmark:
    return AppWorldBenchmark(AppWorldConfig(root=root, **options))


def test_an_instance_is_a_scenario_with_its_variants(root: Path) -> None:
    found = benchmark(root, splits=("train", "dev"))
    assert is_agent_benchmark(found)
    shape = {one.instance_id: [question.question_id for question in one.questions] for one in found.instances()}
    assert shape == {"a1": ["a1_1", "a1_2"], "b2": ["b2_1"], "c3": ["c3_1"]}
    question = found.instances()[0].questions[1]
    assert (question.text, question.question_type) == ("Do a1_2.", "difficulty 2")
    assert (question.scored_by_evidence, question.scored_by_recall) == (False, False)
    assert "4 tasks in 3 scenarios (train: 3, dev: 1;" in found.notes()[0]


def test_what_changes_an_episode_changes_its_fingerprint(root: Path) -> None:
    def key(**options: Any) -> str:
        return question_digest(benchmark(root, splits=("train",), **options).instances()[0].questions[0])

    keys = [key(), key(steps=150), key(seconds=60.0), key(usd=1.0), key(action_s=5.0), key(observation_tokens=900)]
    assert len(set(keys)) == 6
    assert key() == keys[0]
    (root / "data" / "tasks" / "b2_1" / "specs.json").write_text(json.dumps({"instruction": "Do something else."}))
    assert key() != keys[0]


def test_tasks_can_be_chosen_and_unknown_ones_are_refused(root: Path) -> None:
    chosen = benchmark(root, splits=("train",), tasks=("b2_1",)).instances()
    assert [one.instance_id for one in chosen] == ["b2"]
    with pytest.raises(DataError, match="no task 'c3_1' in train"):
        benchmark(root, splits=("train",), tasks=("c3_1",)).instances()
    with pytest.raises(DataError, match="there are no tasks in test_normal"):
        benchmark(root).instances()


def test_missing_data_is_said_to_be_missing_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataMissingError, match="flexmem appworld fetch"):
        benchmark(tmp_path, splits=("train",)).instances()


def test_a_preflight_says_exactly_what_is_missing(root: Path) -> None:
    with pytest.raises(DataError) as refused:
        benchmark(root, splits=("train",)).check_environment({})
    said = str(refused.value)
    for part in ("version.txt is not there", "base_dbs lacks", "train tasks lack dbs"):
        assert part in said


def test_settings_of_the_environment_are_checked(root: Path) -> None:
    with pytest.raises(DataError, match=r"engine.environment: isolatoin: .*there are isolation"):
        benchmark(root, splits=("train",)).environments({"isolatoin": "docker"}, root, 1)


def test_a_malformed_task_is_named(root: Path) -> None:
    path = root / "data" / "tasks" / "a1_1" / "specs.json"
    path.write_text("{")
    with pytest.raises(DataError, match=r"specs.json: is no JSON"):
        benchmark(root, splits=("train",)).instances()
    path.write_text("{}")
    with pytest.raises(DataError, match=r"specs.json: has no instruction"):
        benchmark(root, splits=("train",)).instances()


def test_outputs_of_a_cell_have_a_folder_that_ends_with_the_split() -> None:
    place = Place("flexa_unit by model", 4_000, 1, "key")
    assert experiment_name(place, "test_normal") == "flexa_unit-by-model-4000-r1_test_normal"
    assert experiment_name(Place("no_memory", 6_000, 0, "key"), "train") == "no_mem-6000-r0_train"
    assert experiment_name(Place("full_history", None, 0, "key"), "dev") == "full_history-unlimited-r0_dev"
