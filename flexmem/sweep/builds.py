"""Finished builds on disk, so that another budget, question or process reads what was written once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flexmem.agents.controls import ControlBuild
from flexmem.history import Unit
from flexmem.memory.protocol import MemoryBuild, StateError
from flexmem.ports import ChatModel, Embedder, IndexFactory, Services
from flexmem.sweep.activity import Activity
from flexmem.sweep.arms import Arm
from flexmem.sweep.config import ConfigError
from flexmem.sweep.metered import Meter, MeteredModel

FOLDER = "builds-state"


class KeptBuildError(ConfigError):
    """A kept build can't be read; the message says which, and what to do."""


class BuildStore:
    """States of builds in a run folder, one file each, named by their key; a file is there whole or not at all."""

    def __init__(self, out: Path) -> None:
        self._folder = out / FOLDER

    def load(self, key: str) -> bytes | None:
        """A build's state, or None."""
        try:
            return self.path(key).read_bytes()
        except FileNotFoundError:
            return None

    def save(self, key: str, state: bytes) -> None:
        """Keep a state, durably."""
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = self._folder / f".tmp-{key}-{os.getpid()}"
        with temporary.open("wb") as file:
            file.write(state)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path(key))

    def path(self, key: str) -> Path:
        """Where a build's state is kept, if it is."""
        return self._folder / f"{key}.state"


@dataclass
class FinishedBuild:
    """A build that is written to its end, and what that cost here (nothing where it was restored)."""

    build: MemoryBuild
    restored: bool
    seconds: float
    meter: Meter = field(default_factory=Meter)
    saved: bytes = b""


@dataclass(frozen=True)
class BuildTools:
    """What builds are made with."""

    embedder: Embedder
    open_index: IndexFactory
    model: ChatModel | None
    clock: Callable[[], float] = time.perf_counter
    activity: Activity = field(default_factory=Activity)


async def finish_build(
    arm: Arm,
    units: Sequence[Unit],
    tools: BuildTools,
    repeat: int,
    store: BuildStore,
    key: str,
    room: int | None = None,
) -> FinishedBuild:
    """Restore a build, or write it from its units; `keep` then saves it. ``room``: for a build per budget.

    Raises:
        KeptBuildError: the kept build is damaged.
    """
    meter = Meter()
    model = MeteredModel(tools.model, meter, tools.activity) if tools.model is not None else None
    services = Services(tools.embedder, tools.open_index, model, repeat, room)
    start = tools.clock()
    build: MemoryBuild = _ControlMemory(services) if arm.method is None else arm.method.build(services)
    state = store.load(key) if arm.method is not None else None
    if state is not None:
        try:
            await build.restore(state)
        except StateError as error:
            raise KeptBuildError(
                f"{store.path(key)}: the kept build of arm {arm.name!r}: {error}; delete it to write it again"
            ) from error
        return FinishedBuild(build, True, tools.clock() - start, meter, state)
    for unit in units:
        await build.write(unit)
        tools.activity.step()
    return FinishedBuild(build, False, tools.clock() - start, meter)


def keep(finished: FinishedBuild, arm: Arm, store: BuildStore, key: str) -> None:
    """Save a method's build, again if reading has added to it (records merged for a budget)."""
    if arm.method is None:
        return
    state = finished.build.state()
    if state != finished.saved:
        store.save(key, state)
        finished.saved = state


class _ControlMemory(ControlBuild):
    """A control arm's history behind the build protocol; it is rendered by the harness, so it has no view."""

    def view(self) -> Any:
        raise TypeError("control arms are rendered by the harness")
