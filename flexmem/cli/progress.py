"""How ``run`` and ``rejudge`` show that they go on: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from flexmem.sweep.progress import OnProgress, Progress
    from flexmem.sweep.stall import Stall

LOG_EVERY_S = 10.0


@contextmanager
def shown_progress(name: str, screen: Console | None = None) -> Iterator[OnProgress]:
    """Shows on ``screen``, standard error by default, what it is told of a sweep of that name; one that comes to a
    stand is said, and when it goes on.
    """
    screen = screen or Console(stderr=True)
    if not screen.is_terminal:
        yield telling_stalls(_logging(name, screen), screen)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=screen) as bar:
        tasks = {}

        def show(progress: Progress) -> None:
            if progress.of not in tasks:  # a stage has a bar of its own, which shows its time to go
                tasks[progress.of] = bar.add_task(f"{name}: {progress.of}", total=None, rate="")
            bar.update(tasks[progress.of], total=progress.planned, completed=progress.done, rate=_rate(progress))

        yield telling_stalls(show, screen)


def telling_stalls(show: OnProgress, screen: Console) -> OnProgress:
    """``show``, and a line when a sweep comes to a stand and one when it goes on."""
    standing: Stall | None = None
    say = partial(screen.print, markup=False, highlight=False, soft_wrap=True)

    def tell(progress: Progress) -> None:
        nonlocal standing
        show(progress)
        now = progress.stall
        if now is not None and standing is None:
            say(f"stalled: {now}")
        elif now is None and standing is not None:
            say(f"no longer stalled after {standing.seconds:.0f} s")
        standing = now

    return tell


def _logging(name: str, screen: Console) -> OnProgress:
    said_at = float("-inf")
    said: tuple[str, int] | None = None

    def log(progress: Progress) -> None:
        nonlocal said_at, said
        now, here = time.monotonic(), (progress.of, progress.done)
        soon = said is not None and said[0] == progress.of and now - said_at < LOG_EVERY_S
        if here == said or (soon and progress.done != progress.planned):
            return
        said_at, said = now, here
        eta = f", {progress.eta_s:.0f} s to go" if progress.eta_s else ""
        line = f"{name}: {progress.done:,} of {progress.planned:,} {progress.of}, {_rate(progress)}{eta}"
        screen.print(line, markup=False, highlight=False, soft_wrap=True)

    return log


def _rate(progress: Progress) -> str:
    """Judges may take seconds for a reply, which whole numbers would show as none."""
    return f"{progress.rate:.1f}/s" if 0 < progress.rate < 10 else f"{progress.rate:.0f}/s"
