"""The idioms that a solution is written in, so that a program can cut it into an agent's steps.

Top-level statements of ``def solution(apis, requester):`` only:

(a) ``name = <expression>``, with at most one log-in and one listing (a call with ``page_index``) in it; a log-in is
    ``x_token = apis.x.login(username=…, password=…)["access_token"]``;
(b) a page loop: ``rows = []``, ``page = 0`` and ``while True:`` with ``got = apis.x.f(…, page_index=page,
    page_limit=20)``, ``if not got: break``, ``rows += got``, ``page += 1``;
(c) ``for item in <expression over names>:`` with binds, ``if …: continue`` and API calls;
(d) ``name = read("<what>", <text expression>, r"<pattern with one group>")``: what a person reads by eye;
(e) last, ``apis.supervisor.complete_task(…)``.

API calls have keyword arguments only. Names are bound before they are read, and only page loops and item loops bind a
name again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

PAGE_LIMIT = 20
_HELPERS = {"dict", "enumerate", "float", "format", "int", "len", "list", "max", "min", "range", "round", "set"}
_HELPERS |= {"sorted", "str", "sum", "tuple", "zip"}
_PROGRAM = ("import re", "def read", "def solution")


class IdiomError(ValueError):
    """A solution leaves the idioms; the message tells the line and what is wrong there."""


def check_solution(source: str) -> None:
    """Check a whole program.

    Raises:
        IdiomError: it leaves the idioms.
    """
    tree = ast.parse(source)
    if tuple(_kind(node) for node in tree.body) != _PROGRAM:
        raise IdiomError(f"a program is {', '.join(_PROGRAM)}, and nothing else")
    solution = tree.body[-1]
    assert isinstance(solution, ast.FunctionDef)
    if [argument.arg for argument in solution.args.args] != ["apis", "requester"]:
        raise IdiomError(f"line {solution.lineno}: the solution takes apis and requester")
    _Checker().check(solution.body)


def api_calls(node: ast.AST) -> list[ast.Call]:
    """The calls ``apis.app.function(…)`` in a piece of code, in its order."""
    return [child for child in ast.walk(node) if isinstance(child, ast.Call) and api_name(child)]


def api_name(call: ast.Call) -> str | None:
    """``app.function`` of an API call, None of any other."""
    match call.func:
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="apis"), attr=app), attr=function):
            return f"{app}.{function}"
    return None


def _kind(node: ast.stmt) -> str:
    match node:
        case ast.Import(names=[ast.alias(name="re", asname=None)]):
            return "import re"
        case ast.FunctionDef(name=name):
            return f"def {name}"
    return f"line {node.lineno}"


class _Checker:
    """Checks statements one after the other and keeps the names that are bound."""

    def __init__(self) -> None:
        self._bound: set[str] = set()

    def check(self, body: Sequence[ast.stmt]) -> None:
        position = 0
        while position < len(body) - 1:
            window = body[position : position + 3]
            if len(window) == 3 and isinstance(window[2], ast.While):
                self._page_loop(window[0], window[1], window[2])
                position += 3
                continue
            self._statement(body[position])
            position += 1
        self._last(body[-1])

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if name in self._bound and name != "page":
                    raise _wrong(node, f"{name} is bound twice")
                self._bind(node, name, value)
            case ast.For(target=ast.Name(id=name), iter=over, body=body, orelse=[]):
                self._expression(node, over)
                if api_calls(over):
                    raise _wrong(node, "what a loop goes over holds an API call")
                self._bound.add(name)
                for inner in body:
                    self._in_loop(inner)
            case _:
                raise _wrong(node, "neither a bind, a page loop nor an item loop")

    def _bind(self, node: ast.stmt, name: str, value: ast.expr) -> None:
        self._expression(node, value)
        calls = [api_name(call) or "" for call in api_calls(value)]
        log_ins = [call for call in calls if call.endswith(".login")]
        listings = [call for call in api_calls(value) if _keyword(call, "page_index") is not None]
        if len(log_ins) > 1 or len(listings) > 1:
            raise _wrong(node, "more than one log-in or listing in one bind")
        if log_ins and not _is_log_in(name, value):
            raise _wrong(node, 'a log-in is x_token = apis.x.login(username=…, password=…)["access_token"]')
        if any(isinstance(child, ast.Name) and child.id == "read" for child in ast.walk(value)):
            self._read(node, value)
        self._bound.add(name)

    def _read(self, node: ast.stmt, value: ast.expr) -> None:
        match value:
            case ast.Call(
                func=ast.Name(id="read"),
                args=[ast.Constant(value=str()), text, ast.Constant(value=str(pattern))],
                keywords=[],
            ) if not api_calls(text):
                if re.compile(pattern).groups != 1:
                    raise _wrong(node, "a pattern has exactly one group")
            case _:
                raise _wrong(node, "a reading is name = read(<text>, <expression>, <pattern>)")

    def _in_loop(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if any((api_name(call) or "").endswith(".login") for call in api_calls(value)):
                    raise _wrong(node, "a log-in within a loop")
                self._bind(node, name, value)
            case ast.If(test=test, body=[ast.Continue()], orelse=[]) if not api_calls(test):
                self._expression(node, test)
            case ast.Expr(value=ast.Call() as call) if api_name(call):
                self._expression(node, call)
            case _:
                raise _wrong(node, "a loop holds binds, `if …: continue` and API calls only")

    def _page_loop(self, rows: ast.stmt, page: ast.stmt, loop: ast.While) -> None:
        names = _names(rows, "[]"), _names(page, "0")
        if names[0] is None or names[1] is None or len(loop.body) != 4:
            raise _wrong(loop, "a page loop follows `rows = []` and `page = 0` and has four statements")
        row_name, page_name = names
        call, stop, more, turn = loop.body
        match call:
            case ast.Assign(targets=[ast.Name(id=got)], value=ast.Call() as request) if api_name(request):
                index, limit = _keyword(request, "page_index"), _keyword(request, "page_limit")
            case _:
                raise _wrong(loop, "a page loop begins with `got = apis.app.function(…)`")
        shape = [ast.unparse(part) if part is not None else "" for part in (index, limit, stop, more, turn)]
        wanted = [page_name, str(PAGE_LIMIT), f"if not {got}:\n    break", f"{row_name} += {got}", f"{page_name} += 1"]
        if shape != wanted or ast.unparse(loop.test) != "True" or loop.orelse:
            raise _wrong(loop, f"a page loop is {wanted}, not {shape}")
        self._bound |= {row_name, page_name}
        self._expression(loop, request)
        self._bound.add(got)

    def _last(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Call() as call) if api_name(call) == "supervisor.complete_task":
                self._expression(node, call)
            case _:
                raise _wrong(node, "the last statement is apis.supervisor.complete_task(…)")

    def _expression(self, node: ast.stmt, value: ast.expr) -> None:
        for call in api_calls(value):
            if call.args or any(keyword.arg is None for keyword in call.keywords):
                raise _wrong(node, "an API call has keyword arguments only")
        own = set(_comprehension_names(value))
        for child in ast.walk(value):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
                known = child.id in own or child.id in self._bound or child.id in _HELPERS
                if not known and child.id not in ("apis", "read", "re"):
                    raise _wrong(node, f"{child.id} is not bound before")
            elif isinstance(child, ast.NamedExpr | ast.Lambda | ast.Await | ast.Yield):
                raise _wrong(node, f"a {type(child).__name__} is no plain expression")


def _wrong(node: ast.stmt, what: str) -> IdiomError:
    return IdiomError(f"line {node.lineno}: {what} ({ast.unparse(node).splitlines()[0]})")


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _is_log_in(name: str, value: ast.expr) -> bool:
    match value:
        case ast.Subscript(value=ast.Call(keywords=keywords) as call, slice=ast.Constant(value="access_token")):
            app = (api_name(call) or ".").split(".")[0]
            return name == f"{app}_token" and [keyword.arg for keyword in keywords] == ["username", "password"]
    return False


def _names(node: ast.stmt, value: str) -> str | None:
    """The name that a statement binds to a literal, None where it is another statement."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=bound) if ast.unparse(bound) == value:
            return name
    return None


def _comprehension_names(value: ast.expr) -> Iterator[str]:
    for child in ast.walk(value):
        if isinstance(child, ast.comprehension):
            for target in ast.walk(child.target):
                if isinstance(target, ast.Name):
                    yield target.id
