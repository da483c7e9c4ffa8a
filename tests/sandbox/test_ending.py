"""How an end is told from what the daemon saw, and whose it is."""

from __future__ import annotations

from typing import Any

import pytest

from flexmem.sandbox.ending import Ending, Reason, ending_of
from flexmem.sandbox.log_tail import LogTail


def event(action: str, code: int | None = None) -> dict[str, Any]:
    return {"Action": action, "Actor": {"Attributes": {} if code is None else {"exitCode": str(code)}}}


@pytest.mark.parametrize(
    ("events", "outlived", "reason", "code"),
    [
        ([event("die", 0)], False, "exit", 0),
        ([event("die", 70)], True, "exit", 70),
        ([event("die", 137)], False, "exit", 137),  # a SIGKILL from inside
        ([event("kill"), event("die", 137)], False, "killed", 137),
        ([event("die", 3), event("kill")], False, "exit", 3),  # removed after it ended
        ([event("oom"), event("die", 137)], False, "memory", 137),
        ([event("oom"), event("kill"), event("die", 137)], False, "memory", 137),
        ([event("oom")], False, "memory", None),  # it goes on without the process that took too much
        ([event("die", 124)], True, "lifetime", 124),
        ([event("die", 137)], True, "lifetime", 137),
        ([], False, "unknown", None),
    ],
)
def test_an_end_has_a_reason(events: list[dict[str, Any]], outlived: bool, reason: Reason, code: int | None) -> None:
    assert ending_of(events, "", outlived=outlived) == Ending(reason, code, "")


def test_a_message_tells_status_and_last_lines() -> None:
    assert str(Ending("exit", 70, "boom")) == "It ended by itself with status 70. Its last lines:\nboom"
    assert str(Ending("unknown")) == "It is gone, and nobody saw how. It wrote nothing."


def test_only_the_end_of_a_log_is_kept() -> None:
    tail = LogTail()
    for number in range(100_000):
        tail.write(f"line {number}\n".encode())
    tail.write(b"x" * 10_000_000 + b"\nlast\n")
    assert tail.text().splitlines()[-1] == "last"
    assert len(tail.text()) <= 8_192
    other = LogTail()
    other.write(b"\n".join(b"%d" % number for number in range(100)))
    assert other.text().splitlines() == [str(number) for number in range(70, 100)]
