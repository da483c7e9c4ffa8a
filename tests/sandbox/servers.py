"""Servers that a pool can lease, with what can go wrong on request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from flexmem.sandbox.errors import SandboxError


class FakeServer:
    """Knows whether it is open; ``sick`` fails its check, ``stuck`` can't be removed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.open = True
        self.closing_takes_s = 0.0
        self.sick = False
        self.stuck = False
        self.doubtful: str | None = None
        self.checked: list[float] = []

    async def check(self, for_s: float) -> None:
        self.checked.append(for_s)
        if self.sick or not self.open:
            raise SandboxError(f"server {self.number} is sick")

    async def close(self) -> None:
        await asyncio.sleep(self.closing_takes_s)
        if self.stuck:
            raise SandboxError(f"server {self.number} is stuck")
        self.open = False


class Yard:
    """Starts servers and remembers them. ``fails`` gives the error of the n-th start-up (from 1), if it is to fail."""

    def __init__(self, fails: Callable[[int], Exception | None] = lambda number: None) -> None:
        self.servers: list[FakeServer] = []
        self.tried = 0
        self.at_once = 0
        self.most_at_once = 0
        self.most_open = 0
        self.gate: asyncio.Event | None = None
        self._fails = fails

    async def start(self) -> FakeServer:
        self.tried += 1
        number = self.tried
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0)
            if self.gate is not None:
                await self.gate.wait()
            error = self._fails(number)
            if error is not None:
                raise error
        finally:
            self.at_once -= 1
        server = FakeServer(number)
        self.servers.append(server)
        self.most_open = max(self.most_open, len(self.open))
        return server

    @property
    def open(self) -> list[int]:
        """Numbers of the servers that nobody has ended."""
        return [server.number for server in self.servers if server.open]
