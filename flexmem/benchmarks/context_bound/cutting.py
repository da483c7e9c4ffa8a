"""Cutting a solution into the steps of an agent, for one seed (docs/context-agent.md).

The solution is run once, statement by statement. Page loops become a step a page, item loops a step an item and call;
a reading becomes a value to be read, or to be looked up by code. Variables get names that can't be guessed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from random import Random
from typing import Any

from flexmem.agents.context_bound.plan import Conventions, Plan
from flexmem.agents.context_bound.variation import Variation
from flexmem.benchmarks.context_bound.drafts import Drafts, Origin
from flexmem.benchmarks.context_bound.meanings import Held, Inlined, Item, Meaning, Path, ReadByEye, translated
from flexmem.benchmarks.context_bound.naming import Namer
from flexmem.benchmarks.context_bound.ordering import make_plan
from flexmem.benchmarks.context_bound.program import (
    Bind,
    CuttingError,
    Effect,
    Growth,
    ItemLoop,
    PageLoop,
    Program,
    Reading,
    Skip,
    Statement,
    calls_api,
    names_bound,
    names_read,
    read_program,
)
from flexmem.benchmarks.context_bound.showing import element_pattern, field_pattern, is_scalar, prose_pattern
from flexmem.benchmarks.context_bound.trial import Execute, Trial

_MOST_PAGES = 40
_GLANCE = 600
"""Characters up to which an agent shows what it has computed."""
_SCRATCH = "scratch_of_the_cutter"


async def cut(source: str, instruction: str, variation: Variation, conventions: Conventions, execute: Execute) -> Plan:
    """The plan of a solution as ``variation`` has it.

    Args:
        execute: of a fresh world of the task, which is used up.

    Raises:
        CuttingError: the solution leaves the idioms, or fails.
    """
    program = read_program(source, variation.task)
    cutter = _Cutter(program, variation, Trial(variation.task, conventions, execute), source + instruction)
    drafts = await cutter.cut()
    return make_plan(drafts, variation, instruction, conventions)


class _Cutter:
    def __init__(self, program: Program, variation: Variation, trial: Trial, taken: str) -> None:
        self._program = program
        self._variation = variation
        self._trial = trial
        self._drafts = Drafts(program.imports, Namer(variation.style, variation.stream("names"), taken))
        self._eyes: Random = variation.stream("eyes")
        self._meanings: dict[str, Meaning] = {}
        self._pages: dict[str, list[tuple[ast.expr, int]]] = {}  # of a loop's rows: each page and how many it has
        self._growing: dict[str, list[ast.expr]] = {}
        read = [program.final, *(statement.node for statement in program.statements)]
        self._read = {name for node in read for name in names_read(node)}

    async def cut(self) -> Drafts:
        if self._program.preamble:
            await self._trial.run(self._program.preamble, 1)
        for number, statement in enumerate(self._program.statements):
            match statement:
                case PageLoop():
                    await self._page_loop(statement, number)
                case ItemLoop():
                    await self._item_loop(statement, number)
                case _:
                    await self._single(statement, Origin(number))
        self._drafts.final(translated(self._program.final, self._meanings, by_eye=False))
        return self._drafts

    # ------------------------------------------------------------ single statements

    async def _single(self, statement: Statement, origin: Origin) -> None:
        """A statement of the top level or of an item's turn."""
        line = statement.node.lineno
        match statement:
            case Bind(name=name, value=ast.List(elts=[])):
                await self._run(statement)
                self._growing[name] = []
                self._meanings[name] = Held(statement.value)
            case Bind(name=name, value=value) if calls_api(value):
                await self._run(statement)
                expression = translated(value, self._meanings, by_eye=origin.item is not None)
                if name in self._read:
                    base = name if origin.item is None else f"{name}_{origin.item}"
                    in_loop = origin.item is not None
                    self._meanings[name] = Held(self._drafts.bind(base, expression, origin, shown=True, goal=in_loop))
                else:
                    self._drafts.effect(expression, origin)
            case Bind(name=name, value=value):
                await self._run(statement)
                if origin.item is not None:
                    self._meanings[name] = Inlined(value)
                elif name in self._read:
                    await self._result(name, translated(value, self._meanings, by_eye=False), origin, line)
            case Reading():
                await self._run(statement)
                await self._reading(statement, origin)
            case Effect(call=call):
                await self._run(statement)
                self._drafts.effect(translated(call, self._meanings, by_eye=origin.item is not None), origin)
            case Growth(name=name, added=added):
                await self._run(statement)
                if name not in self._growing:
                    raise self._refuse(statement, f"{name} does not begin as an empty list")
                self._growing[name].append(translated(added, self._meanings, by_eye=False))
            case _:
                raise self._refuse(statement, "it stands in the wrong place")

    async def _run(self, statement: Statement) -> None:
        await self._trial.run(ast.unparse(statement.node), statement.node.lineno)

    async def _result(self, name: str, expression: ast.expr, origin: Origin, line: int) -> None:
        """A variable that is computed; it is shown where that takes no more than a glance."""
        size = len(repr(await self._trial.ask(name, line)))
        held = self._drafts.bind(name, expression, origin, shown=size <= _GLANCE, goal=True)
        self._meanings[name] = Held(held)

    async def _reading(self, reading: Reading, origin: Origin) -> None:
        line = reading.node.lineno
        text = translated(reading.text, self._meanings, by_eye=False)
        if self._eyes.random() >= self._variation.eye:
            found = ast.parse(f"re.search({reading.pattern!r}, text, re.S).group(1)", mode="eval").body
            by_code = translated(found, {"text": Held(text)}, by_eye=False)
            if origin.item is not None:
                self._meanings[reading.name] = Held(by_code)
            elif reading.name in self._read:
                await self._result(reading.name, by_code, origin, line)
            return
        whole = await self._trial.ask(reading.text, line)
        match = f"re.search({reading.pattern!r}, {ast.unparse(reading.text)}, re.S)"
        searched = f"(lambda found: [*found.span(1), *found.span()])({match})"
        start, end, first, last = await self._trial.ask(searched, line)
        key = self._drafts.value(
            reading.name if origin.item is None else f"{reading.name}_{origin.item}",
            whole[start:end],
            prose_pattern(whole, start, end, first, last),
            "text",
            text,
        )
        self._meanings[reading.name] = ReadByEye(key)

    # ------------------------------------------------------------ page loops

    async def _page_loop(self, loop: PageLoop, number: int) -> None:
        line = loop.node.lineno
        size = self._variation.page_size
        await self._trial.run(f"{loop.rows} = []", line)
        pages: list[tuple[ast.expr, int]] = []
        for page in range(_MOST_PAGES):
            call = ast.unparse(_paged(loop, page, size))
            await self._trial.run(f"{_SCRATCH} = {call}\n{loop.rows} += {_SCRATCH}", line)
            count = await self._trial.ask(f"len({_SCRATCH})", line)
            if count == 0 and page > 0:
                break
            expression = translated(_paged(loop, page, size), self._meanings, by_eye=False)
            origin = Origin(number, page=page)
            held = self._drafts.bind(f"{loop.rows}_{page}", expression, origin, shown=True, goal=True)
            pages.append((held, count))
            if count < size:
                break
        else:
            raise self._refuse(loop, f"there are more than {_MOST_PAGES} pages")
        self._pages[loop.rows] = pages
        self._meanings[loop.rows] = Held(_joined([page for page, _ in pages]))

    # ------------------------------------------------------------ item loops

    async def _item_loop(self, loop: ItemLoop, number: int) -> None:
        line = loop.node.lineno
        items = f"{_SCRATCH}_{number}"
        await self._trial.run(f"{items} = list({ast.unparse(loop.over)})", line)
        rows: list[Any] = await self._trial.ask(items, line)
        holders = await self._holders(loop, number, len(rows))
        outer = self._meanings
        for index, holder in enumerate(holders):
            await self._trial.run(f"{ast.unparse(loop.target)} = {items}[{index}]", line)
            self._meanings = {**outer, **self._targets(loop, rows, index, holder)}
            await self._turn(loop, number, index)
        self._meanings = outer
        for name, parts in self._growing.items():
            if parts:
                before = outer[name]
                assert isinstance(before, Held)
                await self._result(name, _joined([before.expression, *parts]), Origin(number), line)
                parts.clear()

    async def _turn(self, loop: ItemLoop, number: int, index: int) -> None:
        """The loop's body for one item."""
        for position, statement in enumerate(loop.body):
            if not isinstance(statement, Skip):
                await self._single(statement, Origin(number, item=index, inner=position))
            elif await self._trial.ask(f"bool({ast.unparse(statement.test)})", statement.node.lineno):
                return

    async def _holders(self, loop: ItemLoop, number: int, count: int) -> list[ast.expr]:
        """For each item an expression over variables that is the item."""
        line, over = loop.node.lineno, loop.over
        if isinstance(over, ast.Name) and over.id in self._pages:
            return [_subscript(page, row) for page, rows in self._pages[over.id] for row in range(rows)]
        if isinstance(over, ast.List | ast.Tuple) and all(isinstance(element, ast.Constant) for element in over.elts):
            return list(over.elts)
        held = translated(over, self._meanings, by_eye=False)
        listed = await self._trial.ask(f"isinstance({ast.unparse(over)}, (list, tuple))", line)
        if not listed:
            held = ast.Call(ast.Name("list", ast.Load()), [held], [])
        if not isinstance(held, ast.Name):
            size = len(repr(await self._trial.ask(f"{_SCRATCH}_{number}", line)))
            base = "_".join([*names_bound(loop.target), "list"])
            held = self._drafts.bind(base, held, Origin(number), shown=size <= _GLANCE, goal=True)
        return [_subscript(held, index) for index in range(count)]

    def _targets(self, loop: ItemLoop, rows: Sequence[Any], index: int, holder: ast.expr) -> dict[str, Meaning]:
        """What the loop's targets stand for at one item."""
        if isinstance(loop.target, ast.Name):
            return {loop.target.id: self._item(loop.target.id, list(rows), index, holder)}
        return {
            name: self._item(name, [row[place] for row in rows], index, _subscript(holder, place))
            for place, name in enumerate(names_bound(loop.target))
        }

    def _item(self, name: str, rows: list[Any], index: int, holder: ast.expr) -> Item:
        chosen: dict[Path, str | None] = {}

        def choose(path: Path) -> str | None:
            if path not in chosen:
                chosen[path] = self._read_off(name, rows, index, holder, path)
            return chosen[path]

        return Item(holder, choose)

    def _read_off(self, name: str, rows: list[Any], index: int, holder: ast.expr, path: Path) -> str | None:
        """The key of the value below an item, if the seed has it read by eye."""
        if isinstance(holder, ast.Constant):
            return None
        value = _below(rows[index], path)
        if not is_scalar(value):
            return None
        parent = _below(rows[index], path[:-1]) if path else None
        if path and not isinstance(parent, dict | list):
            return None  # a character of a text
        if self._eyes.random() >= self._variation.eye:
            return None
        if isinstance(parent, dict):
            others = [found for row in rows if isinstance(found := _below(row, path[:-1]), dict) and found != parent]
            shown = field_pattern(parent, str(path[-1]), others)
        else:
            shown = element_pattern(value)
        printed = holder if isinstance(rows[index], dict | list) else ast.List([holder], ast.Load())
        base = "_".join(re.sub(r"\W", "_", str(part)) for part in (name, index, *path))
        return self._drafts.value(base, value, shown, "json", printed)

    def _refuse(self, statement: Statement, why: str) -> CuttingError:
        line = ast.unparse(statement.node).splitlines()[0]
        task, number = self._variation.task, statement.node.lineno
        return CuttingError(f"{task}: line {number} of its solution can't be cut: {why} ({line})")


def _paged(loop: PageLoop, page: int, size: int) -> ast.Call:
    """The call of a page loop for one page."""
    values = {loop.page: page, loop.limit: size}
    keywords = [
        ast.keyword(one.arg, ast.Constant(values[one.arg]) if one.arg in values else one.value)
        for one in loop.call.keywords
    ]
    return ast.Call(loop.call.func, loop.call.args, keywords)


def _joined(parts: Sequence[ast.expr]) -> ast.expr:
    """Lists put together; displays of single elements become one display."""
    joined: list[ast.expr] = []
    for part in parts:
        if isinstance(part, ast.List) and joined and isinstance(joined[-1], ast.List):
            joined[-1] = ast.List([*joined[-1].elts, *part.elts], ast.Load())
        elif not (isinstance(part, ast.List) and not part.elts):
            joined.append(part)
    whole = joined[0] if joined else ast.List([], ast.Load())
    for part in joined[1:]:
        whole = ast.BinOp(whole, ast.Add(), part)
    return whole


def _subscript(held: ast.expr, index: int) -> ast.expr:
    return ast.Subscript(held, ast.Constant(index), ast.Load())


def _below(value: Any, path: Path) -> Any:
    """What lies at a path, None where there is no such place."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value
