"""What a solution's names stand for in an agent's code, and its expressions put into those terms."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flexmem.agents.context_bound.needs import placeholder

Path = tuple[str | int, ...]
"""Constant subscripts below an item: ``item["sender"]["email"]`` has ("sender", "email")."""

_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True)
class Held:
    """It is this expression over the agent's variables."""

    expression: ast.expr


@dataclass(frozen=True)
class Inlined:
    """It is this expression of the solution, wherever it is used."""

    expression: ast.expr


@dataclass(frozen=True)
class ReadByEye:
    """It is a value that is read; ``key`` is its placeholder's."""

    key: str


@dataclass(frozen=True)
class Item:
    """It is what a loop is at: ``expression`` over the agent's variables. ``choose`` gives, for a path below it, the
    key of the value that is read by eye in its place, or None.
    """

    expression: ast.expr
    choose: Callable[[Path], str | None]


Meaning = Held | Inlined | ReadByEye | Item


def translated(expression: ast.expr, meanings: Mapping[str, Meaning], *, by_eye: bool) -> ast.expr:
    """An expression of the solution over the agent's variables; with ``by_eye`` an item's values may be read."""
    made = _Translator(meanings, by_eye).visit(copy.deepcopy(expression))
    assert isinstance(made, ast.expr)
    return ast.fix_missing_locations(made)


class _Translator(ast.NodeTransformer):
    def __init__(self, meanings: Mapping[str, Meaning], by_eye: bool) -> None:
        self._meanings = meanings
        self._by_eye = by_eye
        self._own: list[set[str]] = []

    def visit_Name(self, node: ast.Name) -> ast.expr:
        match self._meaning(node.id):
            case Held(expression):
                return copy.deepcopy(expression)
            case Inlined(expression):
                return translated(expression, self._meanings, by_eye=self._by_eye)
            case ReadByEye(key):
                return _placeholder(key)
            case Item(expression, choose):
                read = choose(()) if self._by_eye else None
                return copy.deepcopy(expression) if read is None else _placeholder(read)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        path: list[str | int] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
            key = inner.slice.value
            if not isinstance(key, str | int):
                break
            path.insert(0, key)
            inner = inner.value
        if isinstance(inner, ast.Name) and path and isinstance(self._meaning(inner.id), Item):
            meaning = self._meanings[inner.id]
            assert isinstance(meaning, Item)
            read = meaning.choose(tuple(path)) if self._by_eye else None
            if read is not None:
                return _placeholder(read)
        self.generic_visit(node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self._own.append({argument.arg for argument in node.args.args})
        self.generic_visit(node)
        self._own.pop()
        return node

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, _COMPREHENSIONS):
            visited: ast.AST = super().visit(node)
            return visited
        own = {
            child.id
            for generator in node.generators
            for child in ast.walk(generator.target)
            if isinstance(child, ast.Name)
        }
        self._own.append(own)
        self.generic_visit(node)
        self._own.pop()
        return node

    def _meaning(self, name: str) -> Meaning | None:
        return None if any(name in own for own in self._own) else self._meanings.get(name)


def _placeholder(key: str) -> ast.expr:
    return ast.parse(placeholder(key), mode="eval").body
