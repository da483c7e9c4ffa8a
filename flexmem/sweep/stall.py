"""Noticing that a sweep makes no progress, and saying what it waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flexmem.sweep.activity import Waiting


@dataclass(frozen=True)
class Stall:
    """A sweep that stands still: what it waits for, for how many seconds by now, and what to do about it."""

    stage: str
    seconds: float
    advice: str

    def __str__(self) -> str:
        return f"no progress for {self.seconds:.0f} s: {self.advice}"


Advise = Callable[[str, Mapping[str, int]], str]
"""What to say of a stage at which that much work waits, by subject."""

# Work that computes holds up what only waits beside it in its process; of what waits, the last stage holds up the rest.
_BLAME = (
    "rendering",
    "writing",
    "results",
    "history",
    "grading",
    "environment",
    "memory_model",
    "reader",
    "agent",
    "sandbox",
    "embedding",
    "unknown",
    "workers",
)


class StallGuard:
    """Tells when nothing has moved for a while. It ends nothing: what waits may have been paid for.

    Args:
        stall_s: seconds without a step until it speaks.
        advise: makes the advice for a stage.
        clock: monotonic seconds.
    """

    def __init__(self, stall_s: float, advise: Advise, clock: Callable[[], float] = time.monotonic) -> None:
        self._stall_s = stall_s
        self._advise = advise
        self._clock = clock
        self._steps: int | None = None
        self._since = clock()

    def look(self, steps: int, waiting: Waiting) -> Stall | None:
        """Take note of the steps so far and of what is waited for; the stall, if this is one.

        Steps that are other than the last time are progress (a service that restarts counts from zero); so is nothing
        to wait for.
        """
        now = self._clock()
        if steps != self._steps or not waiting:
            self._steps, self._since = steps, now
            return None
        if now - self._since < self._stall_s:
            return None
        stage = min((stage for stage, _ in waiting), key=_BLAME.index)
        subjects = {subject: number for (at, subject), number in sorted(waiting.items()) if at == stage}
        return Stall(stage, now - self._since, self._advise(stage, subjects))
