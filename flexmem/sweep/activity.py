"""What the work of one process waits for, counted by stage as it goes. No Ray here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, get_args

from flexmem.sweep.footprint import own_memory

Stage = Literal[
    "history",
    "writing",
    "memory_model",
    "rendering",
    "reader",
    "agent",
    "sandbox",
    "environment",
    "grading",
    "results",
]
"""``history``: fetched, indexed, embedded. ``writing``: a build, by rule. ``reader``, ``agent``: a call of its model,
or its policy. ``sandbox``: an environment is waited for. ``environment``: an action. ``results``: rows being made
durable.
"""
STAGES: tuple[Stage, ...] = get_args(Stage)

Waiting = Mapping[tuple[str, str], int]
"""Pieces of work in progress, by stage and subject: an arm, a history, or nothing."""


@dataclass(frozen=True, slots=True)
class ActivityReport:
    """A process at one moment. ``steps`` only grows; ``memory`` in bytes, None where that can't be told."""

    steps: int
    waiting: Waiting
    pid: int
    memory: int | None


class Activity:
    """Counts pieces of work in progress, and steps: units written, calls answered, memories rendered, parts durable.

    One thread counts, any other may ask for a `report` meanwhile.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], int] = {}
        self._steps = 0

    def step(self) -> None:
        """Count a step of work that goes on."""
        self._steps += 1

    def during(self, stage: Stage, subject: str = "") -> Work:
        """A block in which one piece of work is at a stage; its end is a step. A block within it, in a task that it
        starts as well, counts in its place: work is where its innermost block is.
        """
        return Work(self, (stage, subject))

    def report(self) -> ActivityReport:
        """Where things stand."""
        return ActivityReport(self._steps, dict(self._waiting), os.getpid(), own_memory())

    def count(self, place: tuple[str, str], change: int) -> None:
        """Add to the work at a place."""
        number = self._waiting.get(place, 0) + change
        if number:
            self._waiting[place] = number
        else:
            self._waiting.pop(place, None)


class Work:
    """A piece of work at one stage (`Activity.during`)."""

    __slots__ = ("_activity", "_ended", "_inner", "_outer", "_place", "_token")

    def __init__(self, activity: Activity, place: tuple[str, str]) -> None:
        self._activity = activity
        self._place = place
        self._inner = 0
        self._ended = False

    def __enter__(self) -> None:
        self._outer = _CURRENT.get()
        if self._outer is not None:
            self._outer._inner_begins()
        self._token: Token[Work | None] = _CURRENT.set(self)
        self._activity.count(self._place, 1)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _CURRENT.reset(self._token)
        self._ended = True
        if not self._inner:
            self._activity.count(self._place, -1)
        if self._outer is not None:
            self._outer._inner_ends()
        self._activity.step()

    def _inner_begins(self) -> None:
        self._inner += 1
        if self._inner == 1 and not self._ended:
            self._activity.count(self._place, -1)

    def _inner_ends(self) -> None:
        self._inner -= 1
        if not self._inner and not self._ended:
            self._activity.count(self._place, 1)


_CURRENT: ContextVar[Work | None] = ContextVar("flexmem_work", default=None)
