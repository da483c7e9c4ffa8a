"""The policy: the first goal that the context does not show as done, and what it takes, fetched backwards.

    next(C):   the first goal, in the seed's order, that C does not show as done; the final step after the last
    act(s, C): s, if C shows all that it needs; else what fetches the first missing thing, by the same rule

Nothing is kept from step to step but what the environment keeps: which variables exist is known only from C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Literal

from flexmem.agents.agent_memory import AgentContext
from flexmem.agents.context_bound.cells import Cell, document_cell, listing_cell, print_cell, step_cell
from flexmem.agents.context_bound.needs import Api, needs_of
from flexmem.agents.context_bound.plan import Plan, Step, Value
from flexmem.agents.context_bound.profiles import Profile
from flexmem.agents.context_bound.variation import Variation, pick, think
from flexmem.agents.context_bound.witness import Seen, Sight
from flexmem.agents.policy import Decision
from flexmem.memory.tools import Tool


@dataclass(frozen=True)
class Missing:
    """Something that a step needs and a context does not show. ``wanted`` is the thing itself."""

    kind: Literal["name", "value", "api", "mark"]
    key: str
    wanted: str | Value | Api | Step


@dataclass(frozen=True)
class Choice:
    """One decision: the cell, what was missing on the way to it, and the values filled in, as the context shows them.
    Kept for the outcome; no decision reads it.
    """

    cell: Cell
    goal: str
    missing: tuple[Missing, ...] = ()
    filled: tuple[tuple[str, Seen], ...] = ()


@dataclass
class _Look:
    """One decision in the making."""

    sight: Sight
    rng: Random
    missing: list[Missing] = field(default_factory=list)


class ContextBoundPolicy:
    """A `flexmem.agents.policy.Policy` that follows a plan with one profile's habits."""

    def __init__(self, plan: Plan, profile: Profile, variation: Variation) -> None:
        self._plan = plan
        self._profile = profile
        self._variation = variation
        self.choices: list[Choice] = []

    async def decide(self, context: AgentContext, tools: Sequence[Tool]) -> Decision:
        """The next action (`Policy.decide`). Tools of a memory are left alone: a rule has no use for them."""
        choice = self.choose(visible_text(context), len(self.choices))
        words = think(self._profile.thought_words, self._variation.stream(f"thought {len(self.choices)}"))
        self.choices.append(choice)
        return Decision(words, choice.cell.code)

    def choose(self, text: str, number: int) -> Choice:
        """What is done in a context that shows ``text``; ``number`` is the step's, from 0, and sets the stream that
        slips are drawn from.
        """
        look = _Look(Sight(text, self._plan.conventions), self._variation.stream(f"slip {number}"))
        goal = self._next_goal(look.sight)
        cell, filled = self._act(goal, look)
        return Choice(cell, goal.id, tuple(look.missing), tuple(filled.items()))

    def shown(self, missing: Missing, sight: Sight) -> bool:
        """Whether a context shows a thing."""
        match missing.wanted:
            case Api() as api:
                return self._knows(api, sight)
            case Value() as value:
                return sight.value(value) is not None
            case Step() as step:
                return self._traced(step, sight)
            case name:
                return sight.name(name)

    # ------------------------------------------------------------ goals

    @cached_property
    def _goals(self) -> tuple[Step, ...]:
        return tuple(self._plan.by_id[id_] for id_ in self._plan.goals)

    def _next_goal(self, sight: Sight) -> Step:
        """Goals from the last to the first, so that each knows which later ones are visible."""
        first = self._plan.by_id[self._plan.final]
        later_in: set[str] = set()
        any_later = False
        for goal in reversed(self._goals):
            traced = self._traced(goal, sight)
            inferred = False
            if self._profile.inference == "order":
                inferred = any_later
            elif self._profile.inference == "series":
                inferred = goal.series is not None and goal.series.name in later_in
            if not (traced or inferred):
                first = goal
            if traced:
                any_later = True
                if goal.series is not None:
                    later_in.add(goal.series.name)
        return first

    def _traced(self, goal: Step, sight: Sight) -> bool:
        """Whether a goal's own trace is visible: its marks, or the name that it binds."""
        if goal.kind == "effect":
            return all(sight.mark(mark) for mark in goal.marks)
        return all(sight.name(name) for name in goal.needs.binds)

    # ------------------------------------------------------------ backward chaining

    def _act(self, step: Step, look: _Look) -> tuple[Cell, dict[str, Seen]]:
        while True:
            missing = self._missing(step, look.sight)
            look.missing += missing
            if not missing:
                return self._filled(step, look.sight)
            following = self._producer(missing[pick(missing, look.rng)], look.sight)
            if isinstance(following, Cell):
                return following, {}
            step = following

    def _missing(self, step: Step, sight: Sight) -> list[Missing]:
        """What a step needs and ``sight`` lacks, in the order in which it is fetched."""
        names = [Missing("name", name, name) for name in self._names(step) if not sight.name(name)]
        values = [Missing("value", one.key, one) for one in self._values(step) if sight.value(one) is None]
        apis = [
            Missing("api", f"{api.app}.{api.function}", api) for api in step.needs.apis if not self._knows(api, sight)
        ]
        return [*apis, *names, *values] if self._profile.documents_first else [*names, *values, *apis]

    def _names(self, step: Step) -> list[str]:
        held = self._tokens(step)
        return [name for name in step.needs.names if name not in held]

    def _values(self, step: Step) -> list[Value]:
        return [*step.literals, *self._tokens(step).values()]

    def _tokens(self, step: Step) -> dict[str, Value]:
        """The tokens that must be seen themselves."""
        if not self._profile.tokens_verbatim:
            return {}
        return {name: self._plan.tokens[name] for name in step.needs.names if name in self._plan.tokens}

    def _knows(self, api: Api, sight: Sight) -> bool:
        if api.app in self._plan.conventions.exempt:
            return True
        return (not self._profile.documents_only and sight.used(api)) or sight.documented(api)

    def _producer(self, missing: Missing, sight: Sight) -> Step | Cell:
        """What fetches a missing thing: a cell that can be run as it is, or a step with needs of its own."""
        match missing.wanted:
            case Api() as api:
                known = sight.word(api.function)
                return document_cell(self._plan, api) if known else listing_cell(self._plan, api.app)
            case Value() as value:
                hidden = [name for name in needs_of(value.display).names if not sight.name(name)]
                return self._plan.binder[hidden[0]] if hidden else print_cell(value)
            case Step() as step:
                return step
            case name:
                return self._plan.binder[name]

    def _filled(self, step: Step, sight: Sight) -> tuple[Cell, dict[str, Seen]]:
        """The step's cell, its values as ``sight`` shows them."""
        filled = {one.key: seen for one in self._values(step) if (seen := sight.value(one)) is not None}
        values = {key: seen.value for key, seen in filled.items()}
        tokens = {name: values[name] for name in self._tokens(step)}
        return step_cell(step, values, tokens), filled


def visible_text(context: AgentContext) -> str:
    """C: the rendered memory and the recent window, nothing else."""
    memory = [context.rendering.text] if context.rendering is not None else []
    return "\n".join([*memory, *(message.content for message in context.window)])
