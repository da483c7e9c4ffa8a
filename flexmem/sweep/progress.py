"""Where a sweep stands, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from flexmem.sweep.judging import JudgingOutcome, OnJudged
from flexmem.sweep.stall import Stall

_RATE_AFTER_S = 15.0  # start-up is no measure of what follows


@dataclass
class Progress:
    """Where a stage of a sweep stands. ``planned`` counts all episodes of the plan, ``done`` those with a row, earlier
    runs' included; in the stage after them, the judgements of the replies that are there. ``stall`` is there while
    nothing moves.
    """

    planned: int
    done: int
    counts: dict[str, int] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    before: int = 0
    stall: Stall | None = None
    of: Literal["episodes", "judgements"] = "episodes"

    @property
    def rate(self) -> float:
        """Episodes, or judgements, a second in this run."""
        return (self.done - self.before) / max(1e-9, time.monotonic() - self.started)

    @property
    def eta_s(self) -> float | None:
        """Seconds to go at that rate; None until the rate says something."""
        if self.done - self.before < 0.01 * self.planned or time.monotonic() - self.started < _RATE_AFTER_S:
            return None
        return (self.planned - self.done) / self.rate


OnProgress = Callable[[Progress], None]


def tell_judging(on_progress: OnProgress) -> OnJudged:
    """Tell of judging as of any other stage; what is judged at the first call was so before."""
    progress: Progress | None = None

    def tell(done: int, wanted: int) -> None:
        nonlocal progress
        if progress is None:
            progress = Progress(wanted, done, before=done, of="judgements")
        progress.done = done
        on_progress(progress)

    return tell


@dataclass(frozen=True)
class SweepOutcome:
    """How a sweep ended. ``stopped`` says why it gave up, empty if it did not; ``lost`` names groups whose workers
    kept dying; ``recycled`` counts workers that were replaced for their memory; ``notes`` say what else a user should
    know; ``judging`` tells of the stage after reading, where the sweep has judges.
    """

    planned: int
    done: int
    counts: dict[str, int]
    stopped: str = ""
    lost: tuple[str, ...] = ()
    torn: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    recycled: int = 0
    judging: JudgingOutcome | None = None

    @property
    def complete(self) -> bool:
        return self.done >= self.planned and (self.judging is None or self.judging.complete)
