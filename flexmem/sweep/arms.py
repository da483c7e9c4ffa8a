"""Arms: methods and control arms as a sweep runs them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from flexmem.agents.choice_controls import CHOICE_CONTROLS
from flexmem.agents.controls import AGENT_CONTROLS, CONTROLS, WITHOUT_BUDGET
from flexmem.memory.prompts import prompt_digest
from flexmem.memory.protocol import MethodError, TaskKind
from flexmem.memory.registry import ConfiguredMethod, find_method, methods
from flexmem.sweep.config import ArmEntry, ConfigError


@dataclass(frozen=True)
class Arm:
    """A named arm. ``method`` is None for a control arm, whose ``control`` is its kind."""

    name: str
    control: str | None
    method: ConfiguredMethod | None
    task: TaskKind = "reader"

    @property
    def has_budget(self) -> bool:
        """Whether the arm differs from budget to budget; one that doesn't runs once. An agent without memory has its
        recent window, which is a part of the budget.
        """
        return self.control not in WITHOUT_BUDGET or (self.task == "agent" and self.control == "no_memory")

    @property
    def answers_by_rule(self) -> bool:
        """Whether the harness itself answers, out of the options of a multiple-choice question."""
        return self.control in CHOICE_CONTROLS

    @property
    def uses_memory_model(self) -> bool:
        return self.method is not None and (self.method.info.writes_with_model or self.method.info.reads_with_model)

    @property
    def asks_per_call(self) -> bool:
        """Whether what the memory model costs when a memory is read is each question's own."""
        return self.method is not None and self.method.info.asks_per_call

    @property
    def build_per_budget(self) -> bool:
        """Whether a history is written anew for every budget."""
        return self.method is not None and self.method.info.build_per_budget

    @property
    def prompts_digest(self) -> str | None:
        """Digest of what the memory model is asked with; None where none is asked."""
        return prompt_digest(*self.method.info.prompts) if self.method and self.uses_memory_model else None

    @property
    def has_tools(self) -> bool:
        """Whether a reader may use tools of the memory before it answers."""
        return self.method is not None and self.method.info.tools

    @property
    def rewrites_text(self) -> bool:
        """Whether the verbatim-evidence score does not apply (docs/methods.md E.6b)."""
        return self.method is not None and self.method.info.rewrites_text

    @property
    def family(self) -> str:
        return self.method.info.family if self.method else "control arms"

    def describe(self) -> dict[str, Any]:
        """What of the arm enters fingerprints: not its label."""
        if self.method is None:
            return {"control": self.control}
        return {"method": self.method.info.name.split(".")[0], "config": self.method.config.model_dump(mode="json")}


def make_arms(entries: Sequence[ArmEntry], task: TaskKind = "reader") -> list[Arm]:
    """The arms that a configuration lists.

    Raises:
        ConfigError: an unknown method or option, or a method that is not for this kind of task.
    """
    return [_make(entry, task) for entry in entries]


def choice_arms(listed: Iterable[Arm] = ()) -> list[Arm]:
    """The arms that every sweep over a multiple-choice benchmark has, without those that are ``listed`` already."""
    there = {arm.control for arm in listed}
    return [Arm(name, name, None) for name in CHOICE_CONTROLS if name not in there]


def _make(entry: ArmEntry, task: TaskKind) -> Arm:
    if entry.label not in (None, entry.method) and entry.label in {*methods(), *CONTROLS}:
        raise ConfigError(f"arm label {entry.label!r} is the name of another method; take another label")
    if entry.method in CONTROLS:
        if entry.options:
            raise ConfigError(f"control arm {entry.method!r} has no options")
        if task == "agent" and entry.method not in AGENT_CONTROLS:
            raise ConfigError(f"control arm {entry.method!r} is for questions, not for an agent's tasks")
        return Arm(entry.name, entry.method, None, task)
    if entry.method not in methods():
        near = difflib.get_close_matches(entry.method, [*methods(), *CONTROLS], 1)
        hint = f"; did you mean {near[0]!r}?" if near else "; see `flexmem methods`"
        raise ConfigError(f"unknown method {entry.method!r}{hint}")
    try:
        method = find_method(entry.method).configured(entry.options)
    except MethodError as error:
        raise ConfigError(str(error)) from error
    if task not in method.info.tasks:
        what = {"reader": "questions", "agent": "an agent's tasks"}
        is_for = " and ".join(what[kind] for kind in method.info.tasks)
        raise ConfigError(f"method {entry.method!r} is for {is_for}, not for {what[task]}")
    return Arm(entry.name, None, method, task)
