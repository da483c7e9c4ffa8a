"""How a sandbox ended: told from what the daemon saw, since a container that removes itself can't be asked any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Ending", "Reason", "ending_of"]

Reason = Literal["memory", "killed", "lifetime", "exit", "running", "unknown"]

_SIGKILLED = 128 + 9
_TIMED_OUT = 124  # of `timeout`, whose child ended when it was asked to
_SAID: dict[Reason, str] = {
    "memory": "ran out of memory",
    "killed": "was ended from outside",
    "lifetime": "came to the end of its lifetime",
    "exit": "ended by itself",
    "running": "still runs",
    "unknown": "is gone, and nobody saw how",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """``code`` is the exit status as a shell has it (128 + signal), None where nobody saw it; ``log`` holds the last
    lines of what it wrote.
    """

    reason: Reason
    code: int | None = None
    log: str = ""

    def __str__(self) -> str:
        """One sentence for a message, and the log."""
        status = "" if self.code is None else f" with status {self.code}"
        said = f"It {_SAID[self.reason]}{status}."
        return f"{said} Its last lines:\n{self.log}" if self.log else f"{said} It wrote nothing."


def ending_of(events: Sequence[Mapping[str, Any]], log: str, *, outlived: bool) -> Ending:
    """How a container ended, from the daemon's events of it, oldest first. ``outlived``: its lifetime is over.

    The kernel ends the process that it finds the largest, so a container may run out of memory and go on. A kill from
    outside is one that the daemon was asked for; status 137 without it is one from inside, or by the machine's owner.
    """
    code: int | None = None
    ended = killed = memory = False
    for event in events:
        action = event.get("Action", "")
        if action == "oom":
            memory = True
        elif action == "kill" and not ended:
            killed = True
        elif action == "die":
            ended = True
            status = event.get("Actor", {}).get("Attributes", {}).get("exitCode", "")
            code = int(status) if status.isdecimal() else None
    return Ending(_reason(code, ended=ended, killed=killed, memory=memory, outlived=outlived), code, log)


def _reason(code: int | None, *, ended: bool, killed: bool, memory: bool, outlived: bool) -> Reason:
    if memory:
        return "memory"
    if killed:
        return "killed"
    if outlived and code in (_TIMED_OUT, _SIGKILLED):
        return "lifetime"
    return "exit" if ended else "unknown"
