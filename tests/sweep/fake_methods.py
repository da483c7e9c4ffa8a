"""Memory methods that misbehave, each in one way, registered for a test's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory import registry
from flexmem.memory.assemble import assemble
from flexmem.memory.base import IndexedBuild
from flexmem.memory.protocol import Budget, FidelityCard, MethodConfig, MethodInfo, Query, Rendering, Resolution
from flexmem.memory.registry import MethodSpec
from flexmem.memory.selection import Fragment
from flexmem.memory.unit_forms import raw_fragment
from flexmem.ports import IndexConfig, Services

Render = Callable[["FakeBuild", Query, Budget], Rendering]


class FakeBuild(IndexedBuild):
    """Keeps units and renders as it is told to."""

    def __init__(self, services: Services, render: Render, spoilt: Callable[[Unit], None] | None = None) -> None:
        super().__init__("fake", MethodConfig(), services, IndexConfig(dense=False))
        self.render_now = render
        self._spoilt = spoilt

    def view(self) -> FakeView:
        return FakeView(self)

    async def written(self, unit: Unit) -> None:
        if self._spoilt is not None:
            self._spoilt(unit)


class FakeView:
    """Calls its build's function."""

    def __init__(self, build: FakeBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        return self._build.render_now(self._build, query, budget)


def register(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    render: Render,
    spoilt: Callable[[Unit], None] | None = None,
    **declares: Any,
) -> None:
    """Make ``name`` a method until the test ends; ``declares`` are fields of its `MethodInfo`."""
    card = FidelityCard(source="a test", follows="-", ours="-", differs="-", tuning="-")
    info = MethodInfo(name=name, family="fake", summary="a test's", card=card, **declares)

    def make(config: object, services: Services) -> FakeBuild:
        return FakeBuild(services, render, spoilt)

    monkeypatch.setitem(registry.methods(), name, MethodSpec(info, MethodConfig(), make))


def everything(build: FakeBuild, query: Query, budget: Budget) -> Rendering:
    """All units raw, whatever the budget; the empty memory that a plan looks at keeps it."""
    return assemble([raw_fragment(build, unit.uid) for unit in build.units])


def understated(build: FakeBuild, query: Query, budget: Budget) -> Rendering:
    """As `everything`, and says that it has one token."""
    whole = everything(build, query, budget)
    return Rendering(whole.text, 1, whole.blocks)


def line(text: str, resolution: Resolution, *uids: int) -> Fragment:
    """A line that is made of no piece."""
    return Fragment(text, tokens.count(text), uids, resolution)


def rewritten(build: FakeBuild, query: Query, budget: Budget) -> Rendering:
    """What methods that rewrite text show: a summary, two notes and a placeholder between headings."""
    if not build.units:
        return assemble([])
    return assemble(
        [
            line("# Summary\n", Resolution.FRAME),
            line("They talked about many things.\n", Resolution.SUMMARY, *(unit.uid for unit in build.units)),
            line("# Notes\n", Resolution.FRAME),
            line(f"note on {query.text}\n", Resolution.NOTE, 0),
            line("another note\n", Resolution.NOTE, 0),
            line("[output omitted: 3 lines]\n", Resolution.PLACEHOLDER, 0),
        ]
    )


def raising(build: FakeBuild, query: Query, budget: Budget) -> Rendering:
    """Shows an empty memory, and fails on any other."""
    if build.units:
        raise ZeroDivisionError("no such luck")
    return assemble([])
