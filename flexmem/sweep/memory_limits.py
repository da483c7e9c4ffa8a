"""How much memory a worker may take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from flexmem.sweep.config import EngineEntry
from flexmem.sweep.footprint import machine_memory

_SHARE = 0.6  # of a machine, for all its workers: the services and the object store live there as well
_MOST = 0.75  # of a machine, for one worker at the moment that it is killed
_LEAST_MB = 1_024


@dataclass(frozen=True)
class MemoryLimits:
    """In bytes: over ``replace`` a worker is replaced once it holds no group, over ``kill`` at once."""

    replace: int
    kill: int


def memory_limits(engine: EngineEntry, workers: int, machines: int) -> MemoryLimits | None:
    """The limits as configured, else shared out among the workers of a machine; all are taken to be like this one.
    None where neither is known.
    """
    machine = machine_memory()
    if engine.worker_memory_mb is not None:
        replace = engine.worker_memory_mb * 2**20
    elif machine is not None:
        replace = max(_LEAST_MB * 2**20, int(_SHARE * machine / math.ceil(workers / max(1, machines))))
    else:
        return None
    kill = 2 * replace
    return MemoryLimits(replace, kill if machine is None else max(replace, min(kill, int(_MOST * machine))))
