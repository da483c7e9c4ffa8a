"""What ``flexmem run`` and ``rejudge`` show of a sweep that goes on, and of one that stands still."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from flexmem.cli import progress as shown
from flexmem.cli.progress import shown_progress, telling_stalls
from flexmem.sweep.progress import Progress, tell_judging
from flexmem.sweep.stall import Stall


def test_a_stall_is_told_once_when_it_begins_and_once_when_it_ends() -> None:
    said, shown = io.StringIO(), []
    tell = telling_stalls(shown.append, Console(file=said, width=40))
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


def lines_of(name: str, *, terminal: bool, judged: range) -> str:
    """What is shown of ten episodes and then of the judging of ten replies, told one by one."""
    said = io.StringIO()
    with shown_progress(name, Console(file=said, width=100, force_terminal=terminal)) as on_progress:
        episodes = Progress(10, 0)
        for episodes.done in range(11):
            on_progress(episodes)
        tell = tell_judging(on_progress)
        for done in judged:
            tell(done, 10)
    return said.getvalue()


def test_a_stage_s_beginning_and_end_are_logged_and_judging_counts_judgements() -> None:
    lines = [line.rpartition(", ")[0] for line in lines_of("a [b]", terminal=False, judged=range(4, 11)).splitlines()]
    assert lines == [
        "a [b]: 0 of 10 episodes",
        "a [b]: 10 of 10 episodes",
        "a [b]: 4 of 10 judgements",
        "a [b]: 10 of 10 judgements",
    ]


def test_what_comes_between_is_logged_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "LOG_EVERY_S", 0.0)
    assert len(lines_of("x", terminal=False, judged=range(4, 11)).splitlines()) == 11 + 7
    assert len(lines_of("x", terminal=False, judged=range(10, 11)).splitlines()) == 11 + 1


def test_each_stage_has_a_bar_of_its_own() -> None:
    shown = lines_of("x", terminal=True, judged=range(4, 11))
    assert "x: episodes" in shown
    assert "x: judgements" in shown
    assert "10/10" in shown


def test_a_rate_below_ten_a_second_is_told_with_a_decimal() -> None:
    said = io.StringIO()
    with shown_progress("x", Console(file=said, width=100)) as on_progress:
        progress = Progress(1_000, 5)
        progress.started -= 10
        on_progress(progress)
        progress.done = 1_000
        on_progress(progress)
    assert [line.rpartition(", ")[2] for line in said.getvalue().splitlines()] == ["0.5/s", "100/s"]
