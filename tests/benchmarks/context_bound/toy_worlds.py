"""Toy worlds as a recorder opens them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache

from flexmem.benchmarks.context_bound.recorder import record
from flexmem.benchmarks.context_bound.recording import Recording
from tests.agents.context_bound.toy_tasks import TASKS, plan_of
from tests.agents.context_bound.toy_world import Toy


@dataclass
class OpenToy:
    """A toy world that is in use."""

    task: str
    world: Toy = field(default_factory=Toy)

    async def execute(self, code: str) -> str:
        return self.world.execute(code)

    async def verdict(self) -> bool:
        return TASKS[self.task].succeeded(self.world)


class ToyWorlds:
    """Counts what is opened."""

    def __init__(self) -> None:
        self.opened = 0

    @asynccontextmanager
    async def open(self, task: str) -> AsyncIterator[OpenToy]:
        self.opened += 1
        yield OpenToy(task)


@cache
def recording_of(task: str, seed: int) -> Recording:
    """A task's recording as a seed varies it."""
    return asyncio.run(record(plan_of(task, seed), seed, ToyWorlds()))
