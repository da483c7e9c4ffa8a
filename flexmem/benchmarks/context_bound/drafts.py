"""Steps in the making, in the order of the solution, before a seed orders them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from flexmem.agents.context_bound.needs import api_of, needs_of, normal_placeholders
from flexmem.agents.context_bound.plan import Kind, Value
from flexmem.benchmarks.context_bound.naming import Namer


@dataclass(frozen=True)
class Origin:
    """Where in the solution a step comes from: the statement's number, and the page, or the item and the statement in
    the loop, that it is for.
    """

    statement: int
    page: int | None = None
    item: int | None = None
    inner: int = 0


@dataclass(frozen=True)
class Draft:
    """A step without series and marks. ``goal`` tells whether it is gone through in its own right, and not only when
    something else needs it. ``call`` is an effect's.
    """

    id: str
    code: str
    kind: Kind
    origin: Origin
    goal: bool
    call: ast.Call | None = None


class Drafts:
    """Collects steps and the values that they read. ``imports`` are modules that cells import where they use them."""

    def __init__(self, imports: frozenset[str], namer: Namer) -> None:
        self._imports = imports
        self._namer = namer
        self.steps: list[Draft] = []
        self.values: dict[str, Value] = {}
        self.last = ""

    def bind(self, base: str, expression: ast.expr, origin: Origin, *, shown: bool, goal: bool = False) -> ast.Name:
        """A step that binds a new variable named after ``base``, and shows it; gives the variable."""
        name = self._namer.name(base)
        code = f"{name} = {_text(expression)}"
        if any((api := api_of(node)) and api.function == "login" for node in _calls(expression)):
            code += f"\nprint({{{name!r}: {name}}})"  # a token that is shown says whose it is
        elif shown:
            code += f"\nprint({name})"
        self._add(base, code, "bind", origin, goal)
        return ast.Name(id=name, ctx=ast.Load())

    def effect(self, expression: ast.expr, origin: Origin) -> None:
        """A step that is taken for what it does, which its first API call tells."""
        call = next(node for node in _calls(expression) if api_of(node))
        api = api_of(call)
        assert api is not None
        self._add(api.function, f"print({_text(expression)})", "effect", origin, goal=True, call=call)

    def final(self, expression: ast.expr) -> None:
        """The step that closes the task."""
        self._add("complete_task", _text(expression), "final", Origin(len(self.steps)), goal=False)
        self.last = self.steps[-1].id

    def value(
        self, base: str, value: str | int | float, shown: str, form: Literal["json", "text"], held: ast.expr
    ) -> str:
        """A value to be read where ``held``, an expression over variables, is printed; gives its key."""
        key = base
        while key in self.values:
            key += "_"
        self.values[key] = Value(key, value, shown, form, f"print({_text(held)})")
        return key

    def _add(self, base: str, code: str, kind: Kind, origin: Origin, goal: bool, call: ast.Call | None = None) -> None:
        used = sorted(self._imports.intersection(needs_of(code).names))
        code = "".join(f"import {module}\n" for module in used) + code
        self.steps.append(Draft(f"{len(self.steps):02d}_{base}", code, kind, origin, goal, call))


def _text(expression: ast.expr) -> str:
    return normal_placeholders(ast.unparse(expression))


def _calls(expression: ast.expr) -> list[ast.Call]:
    return [node for node in ast.walk(expression) if isinstance(node, ast.Call)]
