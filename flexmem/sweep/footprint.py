"""How much memory a process takes, and how much a machine has; in bytes, on Linux."""

from __future__ import annotations

import os
from pathlib import Path

# A container's limit, where there is one: control groups of version 2 and 1.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def own_memory() -> int | None:
    """Resident memory of this process that it shares with no other (mapped files and Ray's shared memory are left
    out); None where the system does not say.
    """
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except OSError:
        return None
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def machine_memory() -> int | None:
    """Memory of this machine, or of the container that this process runs in; None where the system does not say."""
    try:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (OSError, ValueError):
        return None
    for path in _LIMITS:
        try:
            found.append(int(path.read_text("ascii")))
        except (OSError, ValueError):  # no such group, or no limit ("max")
            continue
    return min(found)
