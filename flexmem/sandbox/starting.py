"""Starting servers: not too many at once, and again where another try may help."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from flexmem.sandbox.errors import SandboxError

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class StartPolicy:
    """``at_once`` start-ups run together. A failed one is tried again after ``first_wait_s``, then twice that, and so
    on, ``attempts`` times in all.
    """

    at_once: int = 2
    attempts: int = 4
    first_wait_s: float = 1.0


class Starter(Generic[S]):
    """Starts servers by a policy. ``sleep`` is there for tests."""

    def __init__(
        self, start: Callable[[], Awaitable[S]], policy: StartPolicy, sleep: Callable[[float], Awaitable[object]]
    ) -> None:
        self._start, self._policy, self._sleep = start, policy, sleep
        self._turns = asyncio.Semaphore(policy.at_once)

    async def start(self) -> S:
        """A fresh server.

        Raises:
            SandboxError: the last attempt's, or one where no further attempt helps.
        """
        attempt = 1
        while True:
            try:
                async with self._turns:
                    return await self._start()
            except SandboxError as error:
                if not error.passing or attempt >= self._policy.attempts:
                    error.add_note(f"attempt {attempt} of {self._policy.attempts} to start it")
                    raise
            await self._sleep(self._policy.first_wait_s * 2 ** (attempt - 1))
            attempt += 1
