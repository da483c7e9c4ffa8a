"""Which process owns a sandbox, told so that another one can say whether it still lives."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Self

from flexmem.sandbox.errors import SandboxError

__all__ = ["Process", "fate", "identify", "this_process"]

Fate = Literal["alive", "dead", "unknown"]

_PROC = Path("/proc")
_STATE, _STARTED = 0, 19  # fields of /proc/PID/stat, counted after the name


@dataclass(frozen=True, slots=True)
class Process:
    """A process: a pid is given out again, so its start (clock ticks after boot), its pid namespace and the boot belong
    to it.
    """

    uid: int
    pid: int
    started: int
    namespace: str
    boot: str

    def __str__(self) -> str:
        return f"{self.uid}.{self.pid}.{self.started}.{self.namespace}.{self.boot}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The process that was written with `str`.

        Raises:
            ValueError: it is no such text.
        """
        parts = text.split(".")
        if len(parts) != 5:
            raise ValueError(f"{text!r} names no process")
        return cls(int(parts[0]), int(parts[1]), int(parts[2]), parts[3], parts[4])


def this_process() -> Process:
    """The process that asks.

    Raises:
        SandboxError: the system has no ``/proc`` as Linux has it.
    """
    return identify(os.getpid())


def identify(pid: int) -> Process:
    """A running process of this machine and user.

    Raises:
        SandboxError: there is none, or the system has no ``/proc`` as Linux has it.
    """
    fields = _stat(pid)
    if fields is None:
        raise SandboxError(
            f"/proc/{pid}/stat can't be read: the process has ended, or this is no Linux, which it needs."
        )
    return Process(os.getuid(), pid, int(fields[_STARTED]), _namespace(), _boot())


def fate(process: Process, *, same_node: bool) -> Fate:
    """Whether a process still lives; ``unknown`` where that can't be told from here (another machine, another pid
    namespace). ``same_node``: it ran on a machine of this one's name.
    """
    if process.boot != _boot():
        return "dead" if same_node else "unknown"
    if process.namespace != _namespace():
        return "unknown"
    fields = _stat(process.pid)
    if fields is None or int(fields[_STARTED]) != process.started or fields[_STATE] in ("Z", "X"):
        return "dead"
    return "alive"


def _stat(pid: int) -> list[str] | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text("utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()  # a name may hold blanks and brackets


@cache
def _boot() -> str:
    return _read(_PROC / "sys/kernel/random/boot_id").replace("-", "")


def _namespace() -> str:
    return os.readlink(_PROC / "self/ns/pid").removeprefix("pid:[").removesuffix("]")


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except OSError as error:
        raise SandboxError(
            f"{path}: can't be read ({error.strerror}). Sandboxes need Linux with /proc mounted."
        ) from error
