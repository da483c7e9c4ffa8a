"""What an agent is told of its task."""

from __future__ import annotations

from flexmem.benchmarks.appworld.environment import Supervisor, TaskStart
from flexmem.benchmarks.appworld.prompts import SYSTEM, task_prompt

START = TaskStart(
    "own1_1", "Pay Bram back.", Supervisor("Ada", "Quill", "ada@example.com", "5550100001"), "2023-05-18T12:00:00", {}
)


def test_the_task_names_the_person_the_time_and_what_to_do() -> None:
    prompt = task_prompt(START)
    assert prompt.task.endswith("Task: Pay Bram back.")
    for told in ("Ada Quill", "ada@example.com", "5550100001", "2023-05-18T12:00:00"):
        assert told in prompt.task
        assert told not in prompt.system


def test_the_instruction_shows_the_form_of_an_action_and_how_to_end() -> None:
    for told in ("```python", "show_api_doc", "show_account_passwords", "complete_task(answer=...)"):
        assert told in SYSTEM
