"""SWE-agent's trajectories."""

from __future__ import annotations

from typing import Any

import pytest

from flexmem.logs import LogError
from tests.logs.files import TRAJECTORY, content, load, loaded

STEP = {"action": "ls", "observation": "a.py", "thought": "Look.", "response": "Look.\n\n```\nls\n```"}


def test_steps_are_word_for_word_and_the_task_is_the_first_that_is_no_demonstration() -> None:
    log = loaded(TRAJECTORY)
    written = content(TRAJECTORY)["trajectory"]
    assert (log.format, log.kind, log.item, log.length, log.language) == ("swe-agent", "agent", "step", 15, "bash")
    assert [step.number for step in log.steps] == list(range(1, 16))
    for step, was in zip(log.steps, written, strict=True):
        assert (step.action, step.output) == (was["action"], was["observation"])
        assert step.thought == (was["thought"] or was["response"])
    assert log.task.startswith("The repository `parcelsort` sends heavy parcels to the wrong bay.\n")


def test_fields_that_are_not_read_are_counted() -> None:
    assert loaded(TRAJECTORY).left_out == {"field 'query'": 1, "field 'state'": 15}


@pytest.mark.parametrize(
    ("response", "counted"),
    [
        (STEP["response"], 0),
        ("Look.\n<command>\nls\n</command>", 0),
        ("", 0),
        (None, 0),
        ("Look.\n\n```\nls\n```\nI expect a file.", 1),
    ],
)
def test_a_reply_that_says_more_than_was_parsed_is_counted(response: str | None, counted: int) -> None:
    left_out = load({"trajectory": [STEP | {"response": response}]}).left_out
    assert left_out.get("raw response that says more than thought and action", 0) == counted


def test_a_log_without_a_history_has_no_task() -> None:
    assert load({"trajectory": [STEP]}).task == ""


def test_null_is_no_text() -> None:
    (step,) = load({"trajectory": [{"action": None, "observation": None, "thought": None}]}).steps
    assert (step.action, step.output, step.thought) == ("", "", "")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"trajectory": []}, "log: its trajectory has no step"),
        (
            {"trajectory": {}},
            "log: trajectory: expected a SWE-agent trajectory: an object with 'trajectory', a list of",
        ),
        ({"trajectory": [STEP, 3]}, "log: trajectory[1]: expected a step: an object with 'action' and 'observation'"),
        ({"trajectory": [{"action": "ls"}]}, "log: trajectory[0]: 'observation' is missing; expected a step"),
        ({"trajectory": [{"observation": "ls"}]}, "log: trajectory[0]: 'action' is missing; expected a step"),
        ({"trajectory": [STEP | {"thought": 1}]}, "log: trajectory[0].thought: expected text, found a number"),
        ({"trajectory": [STEP], "history": [1]}, "log: history[0]: expected a message"),
        ({"history": []}, "log: expected chat messages"),
    ],
)
def test_what_is_no_trajectory_is_named_by_its_place(value: Any, said: str) -> None:
    with pytest.raises(LogError) as caught:
        load(value)
    assert str(caught.value).startswith(said)
