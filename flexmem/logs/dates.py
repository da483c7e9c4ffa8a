"""Days of messages, and sessions by day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from flexmem.history import Session, Turn
from flexmem.logs.problems import LogError, expected

_MILLISECONDS_FROM = 1e11  # in seconds that is the year 5138


def read_day(value: Any, place: str) -> str:
    """The day of a time stamp: Unix seconds or milliseconds (in UTC), ISO 8601 (as it is written there), or any other
    text as it stands.

    Raises:
        LogError: it is neither a number nor a text, or a number that is no time.
    """
    if isinstance(value, str) and value.strip():
        try:
            return datetime.fromisoformat(value.strip()).date().isoformat()
        except ValueError:
            return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise expected(place, "a time: Unix seconds or milliseconds, or text", value)
    seconds = value / 1_000 if abs(value) >= _MILLISECONDS_FROM else value
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError) as error:
        raise LogError(f"{place}: the number {value} is no time ({error})") from error


def sessions_by_day(days: Sequence[str | None], turns: Sequence[Turn]) -> list[Session]:
    """Turns in sessions: a new one begins where the day changes; a turn without a day belongs to the one before."""
    runs: list[tuple[str | None, list[Turn]]] = []
    for day, turn in zip(days, turns, strict=True):
        if not runs or (day is not None and day != runs[-1][0]):
            runs.append((day, []))
        runs[-1][1].append(turn)
    return [Session(str(number), tuple(said), day) for number, (day, said) in enumerate(runs, 1)]
