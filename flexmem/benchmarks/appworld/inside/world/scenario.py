"""What a scenario is: one situation, and three variants of it with other people and other facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from world.people import PEOPLE, SUPERVISORS, Person
from world.rows import Rows

Facts = Mapping[str, Any]
"""What a variant's texts name: strings and numbers by name, and lists that only `Scenario.arrange` reads."""

_MARK = re.compile(r"<<(\w+)>>")

_HEAD = '''\
import re


def read(label, text, pattern):
    """What a person finds in a text when looking for ``label``."""
    return re.search(pattern, text, re.S).group(1)


'''


@dataclass(frozen=True)
class Scenario:
    """One situation.

    Attributes:
        name: AppWorld's id of a scenario; a task's is ``NAME_NUMBER``.
        split: the data set that its tasks are in.
        difficulty: 1 to 3, as AppWorld has it.
        apps: the apps that a solution logs in to.
        variants: the facts of each variant; the n-th is about the n-th supervisor.
        arrange: adds the rows of a variant to the base world.
        instruction, solution, evaluation: texts in which ``<<name>>`` stands for a fact.
        slip: what is replaced in the solution, once, and by what, to make a plausible program that is wrong.
        private: what `evaluation` knows and an agent has to find out.
    """

    name: str
    split: str
    difficulty: int
    apps: tuple[str, ...]
    variants: tuple[Facts, Facts, Facts]
    arrange: Callable[[Rows, Facts], None]
    instruction: str
    solution: str
    slip: tuple[str, str]
    evaluation: str
    private: Callable[[Facts], dict[str, Any]]


@dataclass(frozen=True)
class TaskText:
    """A variant of a scenario, spelt out."""

    task_id: str
    scenario: Scenario
    facts: Facts
    supervisor: Person
    instruction: str
    solution: str
    near_miss: str
    evaluation: str
    answer: str | int | float | None


def tasks_of(scenario: Scenario) -> list[TaskText]:
    """The scenario's tasks, in order.

    Raises:
        ValueError: a text names a fact that a variant lacks, or the slip fits nowhere or twice.
    """
    return [_task(scenario, number) for number in range(1, SUPERVISORS + 1)]


def _task(scenario: Scenario, number: int) -> TaskText:
    facts = scenario.variants[number - 1]
    task_id = f"{scenario.name}_{number}"
    body = scenario.solution.strip("\n")
    right, wrong = scenario.slip
    if body.count(right) != 1:
        raise ValueError(f"{task_id}: the slip {right!r} must occur once in the solution")
    return TaskText(
        task_id=task_id,
        scenario=scenario,
        facts=facts,
        supervisor=PEOPLE[number - 1],
        instruction=" ".join(fill(scenario.instruction, facts).split()),
        solution=_program(fill(body, facts)),
        near_miss=_program(fill(body.replace(right, wrong), facts)),
        evaluation=fill(scenario.evaluation.strip("\n"), facts),
        answer=facts.get("answer"),
    )


def fill(text: str, facts: Facts) -> str:
    """The text with facts in their places.

    Raises:
        ValueError: it names a fact that there isn't.
    """

    def fact(mark: re.Match[str]) -> str:
        if mark[1] not in facts:
            raise ValueError(f"no fact {mark[1]!r}; there are {', '.join(facts)}")
        return str(facts[mark[1]])

    return _MARK.sub(fact, text)


def _program(body: str) -> str:
    lines = [f"    {line}".rstrip() for line in body.splitlines()]
    return _HEAD + "def solution(apis, requester):\n" + "\n".join(lines) + "\n"
