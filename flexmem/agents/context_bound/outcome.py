"""What an episode of the context-bound agent tells: what was done again, what was lost, and where that stood last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from flexmem.agents.agent_memory import AgentContext
from flexmem.agents.context_bound.cells import CellKind
from flexmem.agents.context_bound.needs import Api, needs_of
from flexmem.agents.context_bound.plan import Plan, Step, Value
from flexmem.agents.context_bound.policy import Choice, ContextBoundPolicy, Missing, visible_text
from flexmem.agents.context_bound.witness import Sight, tells_failure
from flexmem.memory.protocol import Resolution

REPEAT_CLASSES: Mapping[CellKind, str] = {
    "login": "login",
    "document": "document",
    "listing": "document",
    "page": "page",
    "other": "page",
    "print": "print",
    "effect": "effect",
    "final": "final",
}
"""What repeats are counted under: documentation with listings, pages with other reads and results."""
NEED_CLASSES = ("name", "api", "value", "mark")
PLACES = ("window", *(resolution.value for resolution in Resolution), "between", "nowhere")
"""Where a thing can have stood last, the plainest first; ``between``: in two places of a rendering together;
``nowhere``: it was fetched and never seen.
"""


@dataclass
class Outcome:
    """Counts over one episode's steps.

    Attributes:
        steps: cells that were run.
        repeats: cells that had been run before, by class.
        wrong_effects: effects that were done once more although they had succeeded, and succeeded again.
        misses: things that had been fetched before and were not to be seen when they were needed, by class.
        last_seen: the same, by where they stood in the last context that showed them.
        merged: merged lines in the last rendering.
        hidden: timeline entries that renderings did not show, the mean over renderings.
    """

    steps: int = 0
    repeats: Counter[str] = field(default_factory=Counter)
    wrong_effects: int = 0
    misses: Counter[str] = field(default_factory=Counter)
    last_seen: Counter[str] = field(default_factory=Counter)
    merged: int = 0
    hidden: float = 0.0

    def measures(self) -> dict[str, float]:
        """By name, zeros included, so that every episode has the same."""
        repeats = {f"repeats_{name}": float(self.repeats[name]) for name in sorted({*REPEAT_CLASSES.values()})}
        misses = {f"misses_{name}": float(self.misses[name]) for name in NEED_CLASSES}
        places = {f"last_seen_{place}": float(self.last_seen[place]) for place in PLACES}
        return {
            "repeats": float(self.repeats.total()),
            **repeats,
            "wrong_effects": float(self.wrong_effects),
            "misses": float(self.misses.total()),
            **misses,
            **places,
            "merged_lines": float(self.merged),
            "hidden_records": self.hidden,
        }


def describe(
    policy: ContextBoundPolicy, plan: Plan, contexts: Sequence[AgentContext], outputs: Sequence[str]
) -> Outcome:
    """The outcome of an episode; ``contexts`` and ``outputs`` are its steps', in order."""
    outcome = Outcome(steps=len(outputs))
    history = _History(policy, plan, contexts)
    run: set[str] = set()
    succeeded: set[str] = set()
    for number, (choice, output) in enumerate(zip(policy.choices, outputs, strict=False)):
        cell = choice.cell
        for missing in _lost(plan, choice, run):
            outcome.misses[missing.kind] += 1
            outcome.last_seen[history.last_place(missing, number)] += 1
        if cell.id in run:
            outcome.repeats[REPEAT_CLASSES[cell.kind]] += 1
        fine = not tells_failure(output, plan.conventions)
        if cell.kind == "effect" and fine and cell.id in succeeded:
            outcome.wrong_effects += 1
        if fine:
            succeeded.add(cell.id)
        run.add(cell.id)
    renderings = [context.rendering for context in contexts if context.rendering is not None]
    if renderings:
        outcome.merged = sum(block.resolution is Resolution.MERGED for block in renderings[-1].blocks)
        outcome.hidden = sum(rendering.hidden for rendering in renderings) / len(renderings)
    return outcome


def _lost(plan: Plan, choice: Choice, run: Collection[str]) -> Iterator[Missing]:
    """What was missing although it had been fetched, once each; a goal that is gone after once more is one of it."""
    seen: set[tuple[str, str]] = set()
    goal = plan.by_id[choice.goal]
    forgotten: list[Missing] = []
    if f"step:{goal.id}" in run:
        forgotten.append(Missing("mark" if goal.kind == "effect" else "name", goal.id, goal))
    for missing in (*forgotten, *choice.missing):
        if (missing.kind, missing.key) not in seen and _was_fetched(plan, missing, run):
            seen.add((missing.kind, missing.key))
            yield missing


def _was_fetched(plan: Plan, missing: Missing, run: Collection[str]) -> bool:
    match missing.wanted:
        case Api() as api:
            return f"document:{api.app}.{api.function}" in run
        case Value() as value:
            holders = [plan.binder[name].id for name in needs_of(value.display).names]
            return f"print:{value.key}" in run or any(f"step:{holder}" in run for holder in holders)
        case Step() as step:
            return f"step:{step.id}" in run
        case name:
            return f"step:{plan.binder[name].id}" in run


class _History:
    """The contexts of an episode, looked at again, part by part."""

    def __init__(self, policy: ContextBoundPolicy, plan: Plan, contexts: Sequence[AgentContext]) -> None:
        self._policy = policy
        self._conventions = plan.conventions
        self._contexts = contexts
        self._whole: dict[int, Sight] = {}
        self._parts: dict[int, dict[str, Sight]] = {}

    def last_place(self, missing: Missing, number: int) -> str:
        """Where a thing that the context ``number`` lacks stood in the last one before that showed it."""
        for earlier in range(number - 1, -1, -1):
            if self._policy.shown(missing, self._sight(earlier)):
                for place, sight in self._places(earlier).items():
                    if self._policy.shown(missing, sight):
                        return place
                return "between"
        return "nowhere"

    def _sight(self, number: int) -> Sight:
        if number not in self._whole:
            self._whole[number] = Sight(visible_text(self._contexts[number]), self._conventions)
        return self._whole[number]

    def _places(self, number: int) -> Mapping[str, Sight]:
        """One sight a place, in the order of `PLACES`."""
        if number not in self._parts:
            context = self._contexts[number]
            texts = {"window": [message.content for message in context.window]}
            if context.rendering is not None:
                for block in context.rendering.blocks:
                    text = context.rendering.text[block.start : block.end]
                    texts.setdefault(block.resolution.value, []).append(text)
            self._parts[number] = {
                place: Sight("\n".join(texts[place]), self._conventions) for place in PLACES if place in texts
            }
        return self._parts[number]
