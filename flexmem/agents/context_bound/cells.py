"""The cells of code that a plan's agent can run: its steps, and what fetches a thing that is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from flexmem.agents.context_bound.needs import Api, placeholder
from flexmem.agents.context_bound.plan import Plan, Step, Value
from flexmem.agents.context_bound.witness import Scalar

CellKind = Literal["login", "page", "other", "effect", "final", "document", "listing", "print"]


@dataclass(frozen=True)
class Cell:
    """One cell as it is run. ``id`` is the same whenever the same thing is done, whatever its code then is."""

    id: str
    kind: CellKind
    code: str


def step_kind(step: Step) -> CellKind:
    """What a step counts as."""
    if step.kind != "bind":
        return step.kind
    if step.logs_in:
        return "login"
    return "page" if step.page else "other"


def step_cell(step: Step, values: Mapping[str, Scalar], tokens: Mapping[str, Scalar] | None = None) -> Cell:
    """A step with its placeholders filled, and with tokens in the places of the variables that hold them."""
    code = step.code
    for value in step.literals:
        code = code.replace(placeholder(value.key), repr(values[value.key]))
    for name, token in (tokens or {}).items():
        code = re.sub(rf"\b{name}\b", lambda match, token=token: repr(token), code)  # type: ignore[misc]
    return Cell(f"step:{step.id}", step_kind(step), code)


def document_cell(plan: Plan, api: Api) -> Cell:
    """Shows a function's documentation."""
    code = plan.conventions.document.format(app=api.app, function=api.function)
    return Cell(f"document:{api.app}.{api.function}", "document", code)


def listing_cell(plan: Plan, app: str) -> Cell:
    """Shows the names of an app's functions."""
    return Cell(f"listing:{app}", "listing", plan.conventions.listing.format(app=app))


def print_cell(value: Value) -> Cell:
    """Shows a value that a variable holds."""
    return Cell(f"print:{value.key}", "print", value.display)


def all_cells(plan: Plan) -> Iterator[Cell]:
    """Every cell that can be run while a plan is followed; tokens by their variables."""
    known = {value.key: value.value for step in plan.steps for value in step.literals}
    for api in sorted(plan.apis):
        yield document_cell(plan, api)
    for app in sorted({api.app for api in plan.apis}):
        yield listing_cell(plan, app)
    shown: dict[str, Value] = dict(plan.tokens)
    for step in plan.steps:
        yield step_cell(step, known)
        shown |= {value.key: value for value in step.literals}
    for value in shown.values():
        yield print_cell(value)
