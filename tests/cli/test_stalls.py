"""What ``flexmem run`` says of a sweep that stands still."""

from __future__ import annotations

import io

from rich.console import Console

from flexmem.cli.run import _telling_stalls
from flexmem.sweep.progress import Progress
from flexmem.sweep.stall import Stall


def test_a_stall_is_told_once_when_it_begins_and_once_when_it_ends() -> None:
    said, shown = io.StringIO(), []
    tell = _telling_stalls(shown.append, Console(file=said, width=40))
    progress = Progress(10, 0)
    advice = "3 calls wait for the reader [model] m at http://host/v1; see timeout_s"
    for seconds in (None, 120.0, 122.0, 150.0, None, None, 121.0, None):
        progress.stall = None if seconds is None else Stall("reader", seconds, advice)
        tell(progress)
    assert said.getvalue().splitlines() == [
        f"stalled: no progress for 120 s: {advice}",
        "no longer stalled after 150 s",
        f"stalled: no progress for 121 s: {advice}",
        "no longer stalled after 121 s",
    ]
    assert shown == [progress] * 8
