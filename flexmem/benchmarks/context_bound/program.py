"""A solution's statements, as far as they keep to the idioms that can be cut into an agent's steps.

name = <expression>                                     a bind, with any number of API calls
name = read("<what>", <text>, r"<pattern, one group>")  a reading: what a person finds by eye
rows = [] / page = 0 / while True: …                    a page loop
for item in <expression>: …                             an item loop: binds, readings, `if …: continue`, calls
name = name + [<expression>]                            in an item loop: a list that grows
apis.app.function(…)                                    an effect
apis.supervisor.complete_task(…)                        the last statement
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flexmem.agents.context_bound.needs import api_of
from flexmem.benchmarks.protocol import DataError

READ = "read"
_PAGE_STATEMENTS = 4


class CuttingError(DataError):
    """A solution can't be cut into steps; the message names the task, the line and what stands there."""


@dataclass(frozen=True)
class Bind:
    """``name = value``."""

    node: ast.stmt
    name: str
    value: ast.expr


@dataclass(frozen=True)
class Reading:
    """``name = read(label, text, pattern)``."""

    node: ast.stmt
    name: str
    label: str
    text: ast.expr
    pattern: str


@dataclass(frozen=True)
class Growth:
    """``name = name + added``, or ``name += added``."""

    node: ast.stmt
    name: str
    added: ast.expr


@dataclass(frozen=True)
class Effect:
    """A call for what it does."""

    node: ast.stmt
    call: ast.Call


@dataclass(frozen=True)
class Skip:
    """``if test: continue``."""

    node: ast.stmt
    test: ast.expr


@dataclass(frozen=True)
class PageLoop:
    """A listing read page by page into ``rows``. ``page`` and ``limit`` name the call's keywords."""

    node: ast.stmt
    rows: str
    call: ast.Call
    page: str
    limit: str


@dataclass(frozen=True)
class ItemLoop:
    """The same for each of several items; ``target`` is a name or a tuple of names."""

    node: ast.stmt
    target: ast.expr
    over: ast.expr
    body: tuple[Statement, ...]


Statement = Bind | Reading | Growth | Effect | Skip | PageLoop | ItemLoop


@dataclass(frozen=True)
class Program:
    """A solution. ``preamble`` is what stands before its function, ``imports`` the names that modules have in it."""

    preamble: str
    imports: frozenset[str]
    statements: tuple[Statement, ...]
    final: ast.Call


def read_program(source: str, task: str) -> Program:
    """Take a solution apart.

    Raises:
        CuttingError: it leaves the idioms.
    """
    return _Taker(task).take(source)


class _Taker:
    def __init__(self, task: str) -> None:
        self._task = task

    def take(self, source: str) -> Program:
        try:
            tree = ast.parse(source)
        except SyntaxError as error:
            raise CuttingError(f"{self._task}: its solution is no Python: {error}") from error
        *before, solution = tree.body
        if not isinstance(solution, ast.FunctionDef) or solution.name != "solution":
            raise self._refuse(solution, "a solution ends with `def solution(apis, requester)`")
        body = list(solution.body)
        while isinstance(body[0], ast.Import | ast.ImportFrom | ast.FunctionDef):
            before.append(body.pop(0))
        for node in before:
            helper = isinstance(node, ast.FunctionDef) and node.name == READ
            if not helper and not isinstance(node, ast.Import | ast.ImportFrom):
                raise self._refuse(node, "before a solution stand imports and the helper `read` only")
        match body[-1]:
            case ast.Expr(value=ast.Call() as final) if (api := api_of(final)) and api.function == "complete_task":
                pass
            case last:
                raise self._refuse(last, "the last statement is complete_task")
        imports = {
            alias.asname or alias.name
            for node in before
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        preamble = "\n".join(map(ast.unparse, before))
        return Program(preamble, frozenset(imports), tuple(self._statements(body[:-1])), final)

    def _statements(self, body: Sequence[ast.stmt]) -> Iterator[Statement]:
        position = 0
        while position < len(body):
            if position + 2 < len(body) and isinstance(body[position + 2], ast.While):
                yield self._page_loop(body[position : position + 3])
                position += 3
            else:
                yield self._statement(body[position], in_loop=False)
                position += 1

    def _statement(self, node: ast.stmt, *, in_loop: bool) -> Statement:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="read"), args=args)):
                return self._reading(node, name, args)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(ast.Name(id=grown), ast.Add(), added)) if (
                name == grown and in_loop
            ):
                return Growth(node, name, added)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=added) if in_loop:
                return Growth(node, name, added)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return Bind(node, name, self._plain(node, value))
            case ast.Expr(value=ast.Call() as call) if api_of(call):
                return Effect(node, call)
            case ast.If(test=test, body=[ast.Continue()], orelse=[]) if in_loop:
                return Skip(node, self._plain(node, test))
            case ast.For(target=ast.Name() | ast.Tuple() as target, iter=over, body=body, orelse=[]) if not in_loop:
                inner = tuple(self._statement(one, in_loop=True) for one in body)
                return ItemLoop(node, target, self._plain(node, over), inner)
        raise self._refuse(node, "no bind, reading, page loop, item loop or API call")

    def _reading(self, node: ast.stmt, name: str, args: Sequence[ast.expr]) -> Reading:
        match args:
            case [ast.Constant(value=str() as label), text, ast.Constant(value=str() as pattern)]:
                return Reading(node, name, label, self._plain(node, text), pattern)
        raise self._refuse(node, "a reading is name = read(<what>, <text>, <pattern>)")

    def _page_loop(self, nodes: Sequence[ast.stmt]) -> PageLoop:
        match nodes:
            case [
                ast.Assign(targets=[ast.Name(id=rows)], value=ast.List(elts=[])),
                ast.Assign(targets=[ast.Name(id=page)], value=ast.Constant(value=0)),
                ast.While(
                    test=ast.Constant(value=True),
                    body=[
                        ast.Assign(targets=[ast.Name(id=got)], value=ast.Call() as call),
                        ast.If(
                            test=ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=tested)),
                            body=[ast.Break()],
                            orelse=[],
                        ),
                        ast.AugAssign(target=ast.Name(id=grown), op=ast.Add(), value=ast.Name(id=added)),
                        ast.AugAssign(target=ast.Name(id=turned), op=ast.Add(), value=ast.Constant(value=1)),
                    ],
                    orelse=[],
                ),
            ] if (tested, grown, added, turned) == (got, rows, got, page) and api_of(call):
                return self._paged(nodes[2], rows, page, call)
        raise self._refuse(nodes[-1], "no page loop as the idioms have it")

    def _paged(self, node: ast.stmt, rows: str, page: str, call: ast.Call) -> PageLoop:
        index = [k.arg for k in call.keywords if isinstance(k.value, ast.Name) and k.value.id == page]
        limit = [k.arg for k in call.keywords if isinstance(k.value, ast.Constant) and "limit" in (k.arg or "")]
        if len(index) != 1 or len(limit) != 1 or index[0] is None or limit[0] is None:
            raise self._refuse(node, "a page loop's call has one keyword for the page and a constant limit")
        return PageLoop(node, rows, call, index[0], limit[0])

    def _plain(self, node: ast.stmt, value: ast.expr) -> ast.expr:
        """An expression that binds nothing and reads nothing by eye."""
        for child in ast.walk(value):
            odd = isinstance(child, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.JoinedStr)
            if odd or (isinstance(child, ast.Name) and child.id == READ):
                raise self._refuse(node, f"{ast.unparse(child)} within an expression")
        return value

    def _refuse(self, node: ast.stmt, wanted: str) -> CuttingError:
        line = ast.unparse(node).splitlines()[0]
        return CuttingError(f"{self._task}: line {node.lineno} of its solution can't be cut: {wanted} ({line})")


def names_read(node: ast.AST) -> Iterator[str]:
    """Names that a piece of code reads, however they are bound."""
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            yield child.id


def names_bound(target: ast.expr) -> list[str]:
    """The names of a loop's target, in order."""
    return [child.id for child in ast.walk(target) if isinstance(child, ast.Name)]


def calls_api(node: ast.AST) -> bool:
    """Whether a piece of code calls an API."""
    return any(isinstance(child, ast.Call) and api_of(child) is not None for child in ast.walk(node))
