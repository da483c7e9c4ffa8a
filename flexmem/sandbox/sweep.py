"""Removing what sandboxes left: containers, child processes and folders whose owner is dead, or whose time is over.

Only what carries our mark and belongs to this user is touched (the superuser sweeps all users'). A living owner's
sandboxes go only by their deadline, or where they are asked for by run, or all.
"""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from flexmem.sandbox.child import end_group
from flexmem.sandbox.errors import SandboxError
from flexmem.sandbox.labels import Mark
from flexmem.sandbox.owner import fate
from flexmem.sandbox.runtime import DockerRuntime
from flexmem.sandbox.scratch import Left, left_folders, remove_folder

__all__ = ["Scope", "Swept", "sweep", "sweep_containers", "sweep_folders"]

_UNMARKED_S = 600.0  # a folder without a mark is being made, or was torn by a kill long ago


@dataclass(frozen=True, slots=True)
class Scope:
    """What to remove beside what nobody owns any more: all of ``run``, or ``everything``. With a run named, other runs'
    sandboxes stay whatever their state.
    """

    run: str | None = None
    everything: bool = False

    def reason(self, mark: Mark, now: float) -> str | None:
        """Why a sandbox of this mark goes; None: it stays."""
        if mark.owner.uid != os.getuid() and os.getuid() != 0:
            return None
        if self.everything:
            return "all were asked for"
        if self.run is not None:
            return "its run was asked for" if mark.run == self.run else None
        if fate(mark.owner, same_node=mark.node == platform.node()) == "dead":
            return f"its owner, process {mark.owner.pid}, is dead"
        return "its deadline has passed" if mark.deadline < now else None


_UNOWNED = Scope()


@dataclass(frozen=True, slots=True)
class Swept:
    """Something that was to go; ``error`` says why it is still there."""

    kind: Literal["container", "folder", "process"]
    name: str
    run: str
    why: str
    error: str | None = None


async def sweep(
    runtime: DockerRuntime | None, scope: Scope = _UNOWNED, *, clock: Callable[[], float] = time.time
) -> list[Swept]:
    """Remove containers (without a runtime: none), then child processes and folders.

    Raises:
        DockerUnavailableError: there is a runtime, and no daemon answers.
    """
    gone = [] if runtime is None else await sweep_containers(runtime, scope, clock())
    return [*gone, *await asyncio.to_thread(sweep_folders, scope, clock())]


async def sweep_containers(runtime: DockerRuntime, scope: Scope, now: float) -> list[Swept]:
    """Remove containers; what can't be removed is told in its row."""
    swept = []
    for found in await runtime.labelled():
        mark = _mark(found.labels)
        why = None if mark is None else scope.reason(mark, now)
        if mark is None or why is None:
            continue
        error: str | None = None
        try:
            await runtime.remove(found.identity, found.name)
        except SandboxError as failure:
            error = str(failure)
        swept.append(Swept("container", found.name, mark.run, why, error))
    return swept


def sweep_folders(scope: Scope, now: float) -> list[Swept]:
    """End child processes and remove folders; what can't be removed is told in its row."""
    swept = []
    for left in left_folders():
        mark = left.mark
        why = _torn(left, now) if mark is None else scope.reason(mark, now)
        if why is not None:
            run = "" if mark is None else mark.run
            swept += [Swept(kind, name, run, why, _tried(work)) for kind, name, work in _work(left)]
    return swept


def _work(left: Left) -> list[tuple[Literal["folder", "process"], str, Callable[[], None]]]:
    folder: tuple[Literal["folder", "process"], str, Callable[[], None]]
    folder = ("folder", str(left.path), lambda: remove_folder(left.path))
    child = left.child
    if child is None or fate(child, same_node=True) != "alive":
        return [folder]
    return [("process", str(child.pid), lambda: end_group(child)), folder]


def _tried(work: Callable[[], None]) -> str | None:
    try:
        work()
    except SandboxError as failure:
        return str(failure)
    return None


def _mark(labels: Mapping[str, str]) -> Mark | None:
    try:
        return Mark.parse(labels)
    except ValueError:
        return None  # another tool's, or another version's: not ours to judge


def _torn(left: Left, now: float) -> str | None:
    try:
        age = now - left.path.stat().st_mtime
    except FileNotFoundError:
        return None
    return "nobody is known to own it" if age > _UNMARKED_S else None
