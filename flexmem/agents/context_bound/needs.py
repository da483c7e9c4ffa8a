"""What a step needs, read off its code: names, API calls with their keywords, and values that are read by eye.

A value that is read stands in code as ``{lit:key}``, which Python parses as a set of pairs, so one parser sees both.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

_BUILTINS = frozenset(dir(builtins))
_ROOT = "apis"
_PLACEHOLDER = re.compile(r"\{lit: ?(\w+)\}")
_NESTED = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Api(NamedTuple):
    """A function of an app with the keywords that it is called with, in alphabetical order."""

    app: str
    function: str
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True)
class Needs:
    """Of one cell of code, each in the order of first use: ``names`` that it reads and does not bind itself, ``binds``
    those that it leaves bound, ``values`` the keys of its placeholders, ``apis`` what it calls.
    """

    names: tuple[str, ...]
    binds: tuple[str, ...]
    values: tuple[str, ...]
    apis: tuple[Api, ...]


@lru_cache(maxsize=1 << 14)
def needs_of(code: str) -> Needs:
    """The needs of a cell.

    Raises:
        SyntaxError: it is no Python.
    """
    reader = _Reader()
    reader.visit(ast.parse(code))
    return Needs(tuple(reader.names), tuple(reader.bound), tuple(reader.values), tuple(reader.apis))


def placeholder(key: str) -> str:
    """How a value that is read stands in code."""
    return f"{{lit:{key}}}"


def normal_placeholders(code: str) -> str:
    """Placeholders as `placeholder` writes them, where a printer of syntax trees put a space in."""
    return _PLACEHOLDER.sub(lambda match: placeholder(match[1]), code)


def api_of(call: ast.Call) -> Api | None:
    """The API that a call ``apis.app.function(…)`` is of, None of any other call."""
    match call.func:
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="apis"), attr=app), attr=function):
            return Api(app, function, tuple(sorted(keyword.arg for keyword in call.keywords if keyword.arg)))
    return None


class _Reader(ast.NodeVisitor):
    """Walks a cell in the order of its evaluation, as far as that matters for what is bound before it is read."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.bound: dict[str, None] = {}
        self.values: dict[str, None] = {}
        self.apis: dict[Api, None] = {}
        self._imported: set[str] = set()
        self._inner: list[set[str]] = []

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self._read(node.target.id)
        self.visit(node.target)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        for part in (node.target, *node.body, *node.orelse):
            self.visit(part)

    def visit_Import(self, node: ast.Import) -> None:
        self._imported |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._imported |= {alias.asname or alias.name for alias in node.names}

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(node.id)
        elif self._inner:
            self._inner[-1].add(node.id)
        else:
            self.bound[node.id] = None

    def visit_Lambda(self, node: ast.Lambda) -> None:
        arguments = node.args
        self._inner.append({one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)})
        self.visit(node.body)
        self._inner.pop()

    def visit_Dict(self, node: ast.Dict) -> None:
        match node:
            case ast.Dict(keys=[ast.Name(id="lit")], values=[ast.Name(id=key)]):
                self.values[key] = None
            case _:
                self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        api = api_of(node)
        if api is not None:
            self.apis[api] = None
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, _NESTED):
            self._comprehension(node)
        else:
            super().generic_visit(node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        self._inner.append(set())
        for generator in node.generators:
            self.visit(generator.iter)
            self.visit(generator.target)
            for test in generator.ifs:
                self.visit(test)
        for part in _elements(node):
            self.visit(part)
        self._inner.pop()

    def _read(self, name: str) -> None:
        known = name == _ROOT or name in _BUILTINS or name in self._imported or name in self.bound
        if not known and not any(name in scope for scope in self._inner):
            self.names[name] = None


def _elements(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Iterator[ast.expr]:
    if isinstance(node, ast.DictComp):
        yield node.key
        yield node.value
    else:
        yield node.elt
