"""From drafts to a plan: the goals in a seed's order, their series, and what tells effects apart."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from flexmem.agents.context_bound.needs import api_of, needs_of, normal_placeholders, placeholder
from flexmem.agents.context_bound.plan import Conventions, Mark, Plan, Series, Step, Value
from flexmem.agents.context_bound.variation import Variation
from flexmem.benchmarks.context_bound.drafts import Draft, Drafts


def make_plan(drafts: Drafts, variation: Variation, instruction: str, conventions: Conventions) -> Plan:
    """The plan of a seed."""
    goals = _ordered([draft for draft in drafts.steps if draft.goal], drafts, variation)
    series = _series(goals, variation)
    marks = _marks(drafts)
    steps = tuple(
        Step(
            id=draft.id,
            code=draft.code,
            kind=draft.kind,
            marks=marks.get(draft.id, ()),
            literals=tuple(drafts.values[key] for key in needs_of(draft.code).values),
            series=series.get(draft.id),
            page=draft.origin.page is not None,
        )
        for draft in drafts.steps
    )
    return Plan(variation.task, instruction, steps, tuple(draft.id for draft in goals), drafts.last, conventions)


# ---------------------------------------------------------------- order


def _ordered(goals: Sequence[Draft], drafts: Drafts, variation: Variation) -> list[Draft]:
    """Goals of one statement after the other, each statement's as the seed walks them."""
    rng = variation.stream("items")
    blocks: dict[int, list[Draft]] = defaultdict(list)
    for goal in goals:
        blocks[goal.origin.statement].append(goal)
    ordered = [_walked(block, variation, rng) for block in blocks.values()]
    if variation.order == "act as you read":
        ordered = _acting_early(ordered, drafts)
    return [goal for block in ordered for goal in block]


def _walked(block: list[Draft], variation: Variation, rng: Random) -> list[Draft]:
    """The goals of one statement."""
    if block[0].origin.page is not None:
        return block[::-1] if variation.pages_backward else block
    items = list(dict.fromkeys(goal.origin.item for goal in block if goal.origin.item is not None))
    if variation.items_shuffled:
        rng.shuffle(items)
    of_items = [goal for item in items for goal in block if goal.origin.item == item]
    if variation.order == "read all, then act":
        of_items.sort(key=lambda goal: goal.kind == "effect")
    return [*of_items, *(goal for goal in block if goal.origin.item is None)]


def _acting_early(blocks: list[list[Draft]], drafts: Drafts) -> list[list[Draft]]:
    """Items of a page, where nothing but this page is needed for them, follow it, and not the last page."""
    binder = {name: draft for draft in drafts.steps for name in needs_of(draft.code).binds}
    placed = list(blocks)
    for position, block in enumerate(blocks):
        if not any(goal.kind == "effect" and goal.origin.item is not None for goal in block):
            continue
        for before, pages in enumerate(placed[:position]):
            if pages[0].origin.page is not None and _takes_pages_only(block, pages, binder, drafts.values):
                placed[before] = _dealt(pages, block, binder, drafts.values)
                placed[position] = []
                break
    return [block for block in placed if block]


def _takes_pages_only(
    block: Iterable[Draft], pages: Sequence[Draft], binder: Mapping[str, Draft], values: Mapping[str, Value]
) -> bool:
    """Whether each of the goals needs, of all goals, only one of the pages and those of its own item."""
    allowed = {page.id for page in pages}
    for goal in block:
        own = {other.id for other in block if other.origin.item == goal.origin.item}
        needed = {one.id for one in _needed(goal, binder, values) if one.goal} - own
        if goal.origin.item is None or not needed <= allowed or len(needed) > 1:
            return False
    return True


def _dealt(
    pages: Sequence[Draft], block: Sequence[Draft], binder: Mapping[str, Draft], values: Mapping[str, Value]
) -> list[Draft]:
    """Each page with the goals of its items behind it; those that need none come after the last."""
    page_of: dict[int | None, str] = {}
    for goal in block:
        for needed in _needed(goal, binder, values):
            if needed.id in {page.id for page in pages}:
                page_of[goal.origin.item] = needed.id
    dealt: list[Draft] = []
    for page in pages:
        dealt += [page, *(goal for goal in block if page_of.get(goal.origin.item) == page.id)]
    return [*dealt, *(goal for goal in block if goal.origin.item not in page_of)]


def _needed(goal: Draft, binder: Mapping[str, Draft], values: Mapping[str, Value]) -> list[Draft]:
    """All steps that a step leads back to."""
    reached: dict[str, Draft] = {}
    waiting = [goal]
    while waiting:
        needs = needs_of(waiting.pop().code)
        names = [*needs.names, *(name for key in needs.values for name in needs_of(values[key].display).names)]
        for name in names:
            draft = binder[name]
            if draft.id not in reached:
                reached[draft.id] = draft
                waiting.append(draft)
    return list(reached.values())


# ---------------------------------------------------------------- series


def _series(goals: Sequence[Draft], variation: Variation) -> dict[str, Series]:
    """The numbered series that goals belong to: pages, and items that are gone through in the order of their list."""
    found: dict[str, Series] = {}
    sizes: dict[str, int] = defaultdict(int)
    for goal in goals:
        origin = goal.origin
        if origin.page is not None:
            name = f"pages {origin.statement}"
        elif origin.item is not None and not variation.items_shuffled:
            name = f"items {origin.statement}.{origin.inner}"
        else:
            continue
        found[goal.id] = Series(name, sizes[name])
        sizes[name] += 1
    return found


# ---------------------------------------------------------------- marks


def _marks(drafts: Drafts) -> dict[str, tuple[Mark, ...]]:
    """For each effect, the arguments that tell it from the others of its function."""
    tokens = {
        name
        for draft in drafts.steps
        if any(api.function == "login" for api in needs_of(draft.code).apis)
        for name in needs_of(draft.code).binds
    }
    by_function: dict[tuple[str, str], list[tuple[Draft, dict[str, str]]]] = defaultdict(list)
    for draft in drafts.steps:
        if draft.call is not None and (api := api_of(draft.call)):
            arguments = {
                keyword.arg: _filled(ast.unparse(keyword.value), drafts.values)
                for keyword in draft.call.keywords
                if keyword.arg and ast.unparse(keyword.value) not in tokens
            }
            by_function[api.app, api.function].append((draft, arguments))
    return {
        draft.id: (Mark(app, function, _telling(arguments, [other for _, other in calls])),)
        for (app, function), calls in by_function.items()
        for draft, arguments in calls
    }


def _telling(arguments: Mapping[str, str], calls: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """The first argument that no other of the calls has, or all of them where none does alone."""
    for name, text in arguments.items():
        if sum(call.get(name) == text for call in calls) == 1:
            return (f"{name}={text}",)
    return tuple(f"{name}={text}" for name, text in arguments.items())


def _filled(text: str, values: Mapping[str, Value]) -> str:
    filled = normal_placeholders(text)
    for key, value in values.items():
        filled = filled.replace(placeholder(key), repr(value.value))
    return filled
