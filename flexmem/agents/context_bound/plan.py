"""A plan: a program cut into steps, each of them one cell of code, and the goals that they serve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from flexmem.agents.context_bound.needs import Api, Needs, needs_of
from flexmem.errors import FlexmemError

Kind = Literal["bind", "effect", "final"]


class PlanError(FlexmemError, ValueError):
    """A plan contradicts itself; the message names the step."""


@dataclass(frozen=True)
class Mark:
    """By what an agent recognises that it has done an effect: its own call with the arguments, as written, that tell it
    from the plan's other calls of that function.
    """

    app: str
    function: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Value:
    """A value that is read by eye. ``shown`` is a pattern with one group: what identifies it, and the value, word for
    word as an output shows them. ``form`` says what the group holds: ``json``, a JSON scalar with its quotes, or the
    value's bare ``text``. ``display`` is code that shows it again.
    """

    key: str
    value: str | int | float
    shown: str
    form: Literal["json", "text"]
    display: str


@dataclass(frozen=True)
class Series:
    """Membership in a numbered series: what is read or done one after the other, like pages, or the items of a list in
    their order. ``place`` counts in the order in which this plan walks it.
    """

    name: str
    place: int


@dataclass(frozen=True)
class Step:
    """One cell of code. ``marks`` are an effect's; ``literals`` the values that its placeholders stand for."""

    id: str
    code: str
    kind: Kind
    marks: tuple[Mark, ...] = ()
    literals: tuple[Value, ...] = ()
    series: Series | None = None
    page: bool = False

    @property
    def needs(self) -> Needs:
        """What its code needs."""
        return needs_of(self.code)

    @property
    def logs_in(self) -> bool:
        """Whether it logs in somewhere."""
        return any(api.function == "login" for api in self.needs.apis)


@dataclass(frozen=True)
class Conventions:
    """How the world that a plan is for speaks.

    Attributes:
        document: code that shows the documentation of ``{function}`` of ``{app}``.
        listing: code that shows the names of the functions of ``{app}``.
        exempt: apps that the world's own prompt documents.
        failure: pattern of an output that tells of a failed call.
        harmless: pattern of a failure which says that nothing was left to do.
    """

    document: str
    listing: str
    exempt: frozenset[str]
    failure: str
    harmless: str


@dataclass(frozen=True)
class Plan:
    """A task's steps as one seed varies them. ``goals`` are the ids of pages to read, results and effects, in the order
    in which they are gone through; ``final`` closes the task.
    """

    task: str
    instruction: str
    steps: tuple[Step, ...]
    goals: tuple[str, ...]
    final: str
    conventions: Conventions = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse a plan whose names have no binder, or two."""
        binders = [name for step in self.steps for name in step.needs.binds]
        twice = {name for name in binders if binders.count(name) > 1}
        if twice:
            raise PlanError(f"plan of {self.task}: bound by two steps: {', '.join(sorted(twice))}")
        for step in self.steps:
            unbound = set(step.needs.names) - set(binders)
            unread = set(step.needs.values) - {value.key for value in step.literals}
            if unbound or unread:
                raise PlanError(f"plan of {self.task}: step {step.id} reads {sorted(unbound | unread)}, bound nowhere")
        missing = {*self.goals, self.final} - {step.id for step in self.steps}
        if missing:
            raise PlanError(f"plan of {self.task}: no step {', '.join(sorted(missing))}")

    @cached_property
    def by_id(self) -> Mapping[str, Step]:
        """Steps by id."""
        return {step.id: step for step in self.steps}

    @cached_property
    def binder(self) -> Mapping[str, Step]:
        """The step that binds a name."""
        return {name: step for step in self.steps for name in step.needs.binds}

    @cached_property
    def tokens(self) -> Mapping[str, Value]:
        """Names that log-ins bind, each with its token as a value to be read: the log-in's cell shows it as the only
        entry of an object, under the name.
        """
        return {
            name: Value(
                key=name,
                value="",
                shown=rf"[\"']{name}[\"']:\s*(\"[^\"\s\\]+\"|'[^'\s\\]+')",
                form="json",
                display=f"print({{{name!r}: {name}}})",
            )
            for step in self.steps
            if step.logs_in
            for name in step.needs.binds
        }

    @cached_property
    def in_order(self) -> tuple[Step, ...]:
        """The steps that goals and final lead back to, as an agent that forgets nothing takes them."""
        taken: dict[str, Step] = {}

        def take(step: Step) -> None:
            if step.id not in taken:
                for name in (*step.needs.names, *(n for one in step.literals for n in needs_of(one.display).names)):
                    take(self.binder[name])
                taken[step.id] = step

        for id_ in (*self.goals, self.final):
            take(self.by_id[id_])
        return tuple(taken.values())

    @cached_property
    def closure(self) -> frozenset[str]:
        """The ids of `in_order`."""
        return frozenset(step.id for step in self.in_order)

    @cached_property
    def apis(self) -> frozenset[Api]:
        """What the steps of the closure call, without what is exempt from documentation."""
        found = {api for id_ in self.closure for api in self.by_id[id_].needs.apis}
        return frozenset(api for api in found if api.app not in self.conventions.exempt)
