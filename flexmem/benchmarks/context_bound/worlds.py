"""Worlds that a plan can be carried out in: fresh ones, one after the other."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class OpenWorld(Protocol):
    """A task's world as it was in the beginning, until something is done in it. All methods may raise `FlexmemError`
    where the world can't be had.
    """

    async def execute(self, code: str) -> str:
        """Run code whose variables persist; gives all that it prints, uncut."""
        ...

    async def verdict(self) -> bool:
        """End it and say whether the task was carried out, by the world's own evaluation."""
        ...


class Worlds(Protocol):
    """Where worlds come from."""

    def open(self, task: str) -> AbstractAsyncContextManager[OpenWorld]:
        """A fresh world of a task."""
        ...
