"""A package of someone else's with memory methods that show what ``truncation`` does, and misbehave as the folder in
$UNRULY says.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from flexmem.memory.baselines import truncation
from flexmem.memory.baselines.truncation import TruncationBuild, TruncationConfig, TruncationView
from flexmem.memory.protocol import Budget, MethodConfig, Query, Rendering
from flexmem.memory.registry import MethodSpec
from flexmem.ports import Services

FOLDER = Path(os.environ["UNRULY"])
KEPT: list[bytes] = []


class UnrulyConfig(TruncationConfig):
    """As truncation."""


class UnrulyBuild(TruncationBuild):
    """As truncation, with something done before each rendering that shows anything."""

    def __init__(self, config: MethodConfig, services: Services, misbehave: Callable[[], None]) -> None:
        super().__init__(TruncationConfig(), services)
        self.misbehave = misbehave

    def view(self) -> TruncationView:
        return UnrulyView(self)


class UnrulyView(TruncationView):
    """Reading changes the process."""

    def __init__(self, build: UnrulyBuild) -> None:
        super().__init__(build)
        self._unruly = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        if self._unruly.units:
            (FOLDER / f"pid-{os.getpid()}").touch()
            self._unruly.misbehave()
        return await super().render(query, budget)


def leak() -> None:
    """Keep so many megabytes as the file ``leak`` says, and take a moment."""
    leaking = FOLDER / "leak"
    if leaking.exists():
        KEPT.append(b"x" * (int(leaking.read_text()) << 20))
        time.sleep(0.3)


def swell() -> None:
    """While the file ``swell`` is there, take more and more, and never return."""
    while (FOLDER / "swell").exists():
        KEPT.append(b"x" * (20 << 20))
        time.sleep(0.1)


def stick() -> None:
    """Return when the file ``go`` is there; until then, nothing else runs in the process."""
    while not (FOLDER / "go").exists():
        time.sleep(0.05)


def _spec(name: str, misbehave: Callable[[], None]) -> MethodSpec:
    info = replace(truncation.METHODS[0].info, name=name)
    return MethodSpec(info, UnrulyConfig(), lambda config, services: UnrulyBuild(config, services, misbehave))


METHODS = (_spec("leaking", leak), _spec("swelling", swell), _spec("sticking", stick))
