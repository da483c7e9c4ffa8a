"""Making a recording: the plan is carried out in fresh worlds (`flexmem.benchmarks.context_bound.recording`)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from flexmem.agents.context_bound.cells import Cell, document_cell, listing_cell, print_cell, step_cell
from flexmem.agents.context_bound.needs import Api, needs_of
from flexmem.agents.context_bound.plan import Plan, Step
from flexmem.agents.context_bound.witness import decode, tells_failure
from flexmem.benchmarks.context_bound.recording import NotCarriedOutError, Recording, RecordingError, Reply
from flexmem.benchmarks.context_bound.worlds import OpenWorld, Worlds

MOST_LOG_INS = 150
"""Of one episode: as many as it may have steps."""

_METHOD = re.compile(r"\"method\":\s*\"(\w+)\"")
_AGAIN = "_again"


async def record(plan: Plan, seed: int, worlds: Worlds) -> Recording:
    """Carry a plan out in worlds of its task and keep what they say.

    Raises:
        RecordingError: a step fails, or the plan does not carry out the task.
    """
    return await _Recorder(plan, seed, worlds).record()


class _Recorder:
    def __init__(self, plan: Plan, seed: int, worlds: Worlds) -> None:
        self._plan = plan
        self._seed = seed
        self._worlds = worlds
        self._values = {value.key: value.value for step in plan.steps for value in step.literals}
        self._replies: defaultdict[str, list[Reply]] = defaultdict(list)
        self._reread: defaultdict[str, list[Reply]] = defaultdict(list)
        self._log_ins: dict[str, str] = {}
        self._changes: list[Step] = []

    async def record(self) -> Recording:
        async with self._worlds.open(self._plan.task) as world:
            await self._documents(world)
            await self._first_time(world)
            sensitive = await self._differing(world)
            repeated = {self._cell(step).id: await world.execute(self._cell(step).code) for step in self._changes}
            final = self._cell(self._plan.by_id[self._plan.final])
            self._replies[final.id].append(Reply(0, await world.execute(final.code)))
        if sensitive:
            async with self._worlds.open(self._plan.task) as world:
                await self._watch(world, sensitive)
        tokens = {self._cell(step).id: await self._tokens(step) for step in self._plan.in_order if step.logs_in}
        if not await self._succeeds(again=None):
            raise NotCarriedOutError(f"{self._plan.task}: seed {self._seed}: the plan does not carry out the task")
        return Recording(
            plan=self._plan,
            seed=self._seed,
            replies={cell: tuple(replies) for cell, replies in self._replies.items()},
            reread={cell: tuple(replies) for cell, replies in self._reread.items() if replies},
            repeated=repeated,
            tokens=tokens,
            log_ins=self._log_ins,
            changes=frozenset(self._cell(step).id for step in self._changes),
            spoiling=frozenset(self._cell(step).id for step in await self._spoiling()),
        )

    # ------------------------------------------------------------ what is said, and what changes it

    async def _documents(self, world: OpenWorld) -> None:
        for api in sorted(self._plan.apis):
            await self._note(world, document_cell(self._plan, api))
        for app in sorted({api.app for api in self._plan.apis}):
            await self._note(world, listing_cell(self._plan, app))

    async def _first_time(self, world: OpenWorld) -> None:
        """All steps but the last, and whatever can be printed as soon as it can be."""
        shown: set[str] = set()
        for step in self._plan.in_order:
            for value in step.literals:
                if value.key not in shown:
                    shown.add(value.key)
                    await self._note(world, print_cell(value))
            cell = self._cell(step)
            if step.logs_in:
                self._log_ins[cell.id] = await self._run(world, cell)
            elif step.kind != "final":
                await self._note(world, cell)
                if self._changes_something(step):
                    self._changes.append(step)

    async def _differing(self, world: OpenWorld) -> set[str]:
        """The ids of cells that say something else once all changes were made."""
        if not self._changes:
            return set()
        steps = [step for step in self._plan.in_order if self._only_reads(step)]
        found: set[str] = set()
        for look in (_Again(world, steps), _Again(world, steps, reread=True)):
            for cell in self._reading_cells():
                if await look.said(cell) != self._replies[cell.id][0].text:
                    found.add(cell.id)
        return found

    async def _watch(self, world: OpenWorld, sensitive: Collection[str]) -> None:
        """Take all steps, and after each change keep what the sensitive cells say where that is news: that they fail,
        perhaps, since what they read is gone.
        """
        changes = 0
        taken: list[Step] = []
        watched = [step for step in self._plan.in_order if self._cell(step).id in sensitive]
        reread: _Again | None = None
        for step in self._plan.in_order:
            if step.kind == "final":
                break
            await self._run(world, self._cell(step))
            taken.append(step)
            if step not in self._changes:
                continue
            changes += 1
            bound = {name for one in taken for name in one.needs.binds}
            cells = [cell for cell in self._reading_cells() if cell.id in sensitive and _is_bound(cell, bound)]
            reread = reread or _Again(world, watched, reread=True)
            for look, kept in ((_Again(world, watched), self._replies), (reread, self._reread)):
                for cell in cells:
                    text = await look.said(cell)
                    if text != (kept[cell.id] or self._replies[cell.id])[-1].text:
                        kept[cell.id].append(Reply(changes, text))

    def _reading_cells(self) -> list[Cell]:
        """The cells that read or compute, in the plan's order, then those that print."""
        values = {value.key: value for step in self._plan.in_order for value in step.literals}
        reading = [self._cell(step) for step in self._plan.in_order if self._only_reads(step)]
        return [*reading, *map(print_cell, values.values())]

    def _only_reads(self, step: Step) -> bool:
        return not (step.logs_in or step.kind == "final" or step in self._changes)

    async def _note(self, world: OpenWorld, cell: Cell) -> None:
        self._replies[cell.id].append(Reply(0, await self._run(world, cell)))

    def _changes_something(self, step: Step) -> bool:
        """Whether a step is taken for what it does, or calls what does not only read, as its documentation says."""
        if step.kind == "effect":
            return True
        return not step.logs_in and any(self._method(api) != "GET" for api in step.needs.apis)

    def _method(self, api: Api) -> str:
        if api.app in self._plan.conventions.exempt:
            return "GET"
        said = _METHOD.search(self._replies[document_cell(self._plan, api).id][0].text)
        if said is None:
            raise RecordingError(f"{self._plan.task}: the documentation of {api.app}.{api.function} tells no method")
        return said[1]

    # ------------------------------------------------------------ what happens the second time

    async def _tokens(self, log_in: Step) -> tuple[str, ...]:
        """The tokens of one log-in made over and over."""
        (name,) = log_in.needs.binds
        call, _, _ = self._cell(log_in).code.partition("\n")
        again = f"tokens{_AGAIN} = []\nfor turn{_AGAIN} in range({MOST_LOG_INS}):\n    {call}\n"
        async with self._worlds.open(self._plan.task) as world:
            for step in self._plan.in_order:
                if step.id == log_in.id:
                    break
                if step.id in self._before(log_in):
                    await self._run(world, self._cell(step))
            text = await world.execute(f"{again}    tokens{_AGAIN}.append({name})\nprint('\\n'.join(tokens{_AGAIN}))")
        tokens = tuple(text.split())
        first = self._plan.tokens[name]
        match = re.search(first.shown, self._log_ins[self._cell(log_in).id])
        if len(tokens) != MOST_LOG_INS or match is None:
            raise self._failed(self._cell(log_in), text)
        shown = str(decode(match[1], first.form))
        self._log_ins[self._cell(log_in).id] = self._log_ins[self._cell(log_in).id].replace(shown, tokens[0])
        return tokens

    def _before(self, step: Step) -> set[str]:
        """The ids of the steps that a step needs."""
        found: set[str] = set()
        waiting = [step]
        while waiting:
            for name in waiting.pop().needs.names:
                needed = self._plan.binder[name]
                if needed.id not in found:
                    found.add(needed.id)
                    waiting.append(needed)
        return found

    async def _spoiling(self) -> list[Step]:
        """Changes that may not be made twice; one of each function is tried."""
        by_function: defaultdict[tuple[Api, ...], list[Step]] = defaultdict(list)
        for step in self._changes:
            by_function[step.needs.apis].append(step)
        return [step for steps in by_function.values() if not await self._succeeds(again=steps[0]) for step in steps]

    async def _succeeds(self, again: Step | None) -> bool:
        """Whether the plan, with one step done once more, carries out the task."""
        async with self._worlds.open(self._plan.task) as world:
            for step in self._plan.in_order:
                await self._run(world, self._cell(step))
                if again is not None and step.id == again.id:
                    await world.execute(self._cell(step).code)  # it may fail: that is how some are harmless
            return await world.verdict()

    # ------------------------------------------------------------ cells

    def _cell(self, step: Step) -> Cell:
        return step_cell(step, self._values)

    async def _run(self, world: OpenWorld, cell: Cell) -> str:
        text = await world.execute(cell.code)
        if tells_failure(text, self._plan.conventions):
            raise self._failed(cell, text)
        return text

    def _failed(self, cell: Cell, text: str) -> RecordingError:
        return RecordingError(
            f"{self._plan.task}: seed {self._seed}: cell {cell.id} fails: {text[-600:]}\n{needs_of(cell.code).names}"
        )


def _is_bound(cell: Cell, bound: Collection[str]) -> bool:
    needs = needs_of(cell.code)
    return all(name in bound for name in (*needs.names, *needs.binds))


class _Again:
    """Runs cells again under other names, so that what they had bound stays as it was.

    With ``reread``, what one cell binds is what the next one reads; else each reads what the plan had bound.
    """

    def __init__(self, world: OpenWorld, steps: Iterable[Step], *, reread: bool = False) -> None:
        """``steps``: those whose variables get other names."""
        self._world = world
        self._names = {name: name.swapcase() for step in steps for name in step.needs.binds}
        self._reread = reread
        self._begun: set[str] = set()

    async def said(self, cell: Cell) -> str:
        """What a cell says this time. A variable begins as the one that it stands for: a cell that fails leaves it."""
        needs = needs_of(cell.code)
        names = [name for name in (*needs.binds, *(needs.names if self._reread else ())) if name in self._names]
        for name in names:
            if name not in self._begun:
                await self._world.execute(f"{self._names[name]} = {name}")
                self._begun.add(name)
        there = {name: self._names[name] for name in names}
        text = await self._world.execute(_renamed(cell.code, there))
        return _renamed(text, {other: name for name, other in there.items()})


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """Text with other names in it, of the same lengths."""
    if not names:
        return text
    return re.sub(rf"\b({'|'.join(names)})\b", lambda found: names[found[1]], text)
