"""A run's trajectories as logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexmem.logs import load_log
from flexmem.logs.problems import LogError
from flexmem.sweep.results import make_table, write_parts


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two episodes, a short one and one that only began."""
    steps = [
        {"episode": "abc1", "step": 2, "kind": "action", "thought": "more", "action": "b()", "output": "two"},
        {"episode": "abc1", "step": 0, "kind": "task", "output": "Do it."},
        {"episode": "abc1", "step": 1, "kind": "none", "thought": "hm", "action": "", "output": "nothing was done"},
        {"episode": "abd2", "step": 0, "kind": "task", "output": "Do that."},
    ]
    write_parts(tmp_path, "1", {"steps": make_table("steps", steps)})
    return tmp_path


def test_an_episode_is_its_task_and_steps_in_order(run: Path) -> None:
    log = load_log(run, sample="abc")
    assert (log.format, log.kind, log.task, log.sample) == ("run", "agent", "Do it.", "abc1")
    assert [(step.number, step.thought, step.action, step.output) for step in log.steps] == [
        (1, "hm", "", "nothing was done"),
        (2, "more", "b()", "two"),
    ]


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (None, "there are 2 episodes; give --sample the key of one, such as abc1, abd2"),
        ("ab", "2 episodes begin with 'ab'"),
        ("x", "0 episodes begin with 'x'; give --sample the key of one, such as abc1"),
        ("abd2", "episode abd2 has no step"),
    ],
)
def test_what_names_no_episode_is_told(run: Path, sample: str | None, said: str) -> None:
    with pytest.raises(LogError, match=said):
        load_log(run, sample=sample)


def test_a_folder_without_steps_is_told(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="holds no steps of an agent"):
        load_log(tmp_path)
