"""Warm servers, leased to one episode after the other, and ended at the first doubt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

from flexmem.sandbox.errors import PoolClosedError, SandboxDeadlineError, SandboxError
from flexmem.sandbox.protocol import Server
from flexmem.sandbox.starting import Starter, StartPolicy

__all__ = ["PoolCounts", "SandboxPool"]

S = TypeVar("S", bound=Server)

_POLICY = StartPolicy()


@dataclass(slots=True)
class PoolCounts:
    """What a pool has done so far. ``failed`` leases ended with an error or by their deadline; ``left`` servers could
    not be removed so far.
    """

    started: int = 0
    leased: int = 0
    failed: int = 0
    ended: int = 0
    left: int = 0


@dataclass(slots=True, eq=False)
class _Slot(Generic[S]):
    """Room for one server: it runs and waits (``server``), is being started (``starting``), or is yet to be."""

    server: S | None = None
    starting: asyncio.Task[S] | None = None
    episodes: int = 0

    @property
    def readiness(self) -> int:
        return 2 if self.server is not None else 1 if self.starting is not None else 0


class SandboxPool(Generic[S]):
    """Up to ``size`` servers of one asyncio loop.

    A lease is one episode's. Its server is used again only if the lease ended without an exception, and the server has
    served fewer than ``max_episodes``, has no doubts of itself and passes its own check; any other is ended, and
    another one started in its place before it is asked for. Leases wait for their turn in order; of free servers the
    warm ones go first.

    Start-ups are limited and tried again as ``policy`` says. A cancelled lease ends its server as well.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[S]],
        *,
        size: int,
        max_episodes: int = 20,
        policy: StartPolicy = _POLICY,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Nothing is started yet. ``start`` raises `SandboxError` where it can't, and then leaves nothing."""
        if size < 1 or max_episodes < 1:
            raise ValueError(f"a pool of {size} servers for {max_episodes} episodes each serves nobody")
        self.counts = PoolCounts()
        self._starter = Starter(start, policy, sleep)
        self._max_episodes = max_episodes
        self._free: list[_Slot[S]] = [_Slot() for _ in range(size)]
        self._turns = asyncio.Semaphore(size)
        self._leased: set[_Slot[S]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._left: list[S] = []
        self._failure: SandboxError | None = None
        self._closed = False

    def warm(self, count: int | None = None) -> None:
        """Begin to start ``count`` servers (None: all), without waiting. A failure shows when one is leased."""
        self._refuse_closed()
        for slot in self._free[:count]:
            if slot.readiness == 0:
                self._begin(slot)

    @asynccontextmanager
    async def lease(self, episode: str, deadline_s: float) -> AsyncIterator[S]:
        """A server for one episode, which may take ``deadline_s`` seconds once it has it.

        Raises:
            SandboxDeadlineError: the block took longer; it was cancelled, and its server ended.
            SandboxError: no server could be started, or the pool is closed.
        """
        async with self._turns:
            self._refuse_closed()
            slot = max(self._free, key=lambda each: each.readiness)
            self._free.remove(slot)
            self._leased.add(slot)
            sound, spent = False, True
            try:
                server = await self._ready(slot, deadline_s)
                self.counts.leased += 1
                try:
                    async with asyncio.timeout(deadline_s) as limit:
                        yield server
                except TimeoutError:
                    if not limit.expired():
                        raise
                    raise SandboxDeadlineError(
                        f"episode {episode}: took longer than the {deadline_s:g} s that it may; its server was ended."
                    ) from None
                slot.episodes += 1
                sound = True
                spent = server.doubtful is not None or slot.episodes >= self._max_episodes
            finally:
                if not sound:
                    self.counts.failed += 1
                try:
                    await self._hand_back(slot, spent or self._closed)
                finally:
                    self._leased.discard(slot)
                    self._free.append(slot)

    async def close(self) -> None:
        """End all servers, leased ones too, and wait until nothing is left. What could not be removed before is tried
        again; a second call does only that.

        Raises:
            SandboxError: something can't be removed.
        """
        self._closed = True
        slots = [*self._free, *self._leased]
        starting = [slot.starting for slot in slots if slot.starting is not None]
        for task in starting:
            task.cancel()
        for outcome in await asyncio.gather(*starting, return_exceptions=True):
            if not isinstance(outcome, BaseException):  # it was ready before it could be cancelled
                self._in_background(self._close_server(outcome))
        for slot in slots:
            slot.starting = None
            if slot.server is not None:
                self._let_go(slot)
        await asyncio.gather(*self._ending)
        left, self._left = self._left, []
        for server in left:  # the daemon that could not remove it may be back
            self.counts.left -= 1
            await self._close_server(server)
        if self._failure is not None and self._left:
            raise self._failure

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---------------------------------------------------------------- one slot

    async def _ready(self, slot: _Slot[S], deadline_s: float) -> S:
        """The slot's server, checked; one that fails the check is replaced by a fresh one, which isn't checked."""
        if slot.server is not None:
            try:
                await slot.server.check(deadline_s)
            except SandboxError:
                await self._end(slot)
            else:
                return slot.server
        if slot.starting is None:
            self._begin(slot)
        task = slot.starting
        assert task is not None
        try:
            # A lease that is cancelled while it waits leaves the start-up to the next one.
            slot.server = await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            raise PoolClosedError("the pool was closed while a server was being started for this lease.") from None
        except BaseException:
            slot.starting = None
            raise
        slot.starting = None
        self.counts.started += 1
        self._refuse_closed()
        return slot.server

    async def _hand_back(self, slot: _Slot[S], spent: bool) -> None:
        if slot.server is not None and spent:
            await self._end(slot)
            if not self._closed:
                self._begin(slot)

    def _begin(self, slot: _Slot[S]) -> None:
        slot.episodes = 0
        slot.starting = asyncio.create_task(self._starter.start(), name="starting a sandbox")
        slot.starting.add_done_callback(_seen)

    async def _end(self, slot: _Slot[S]) -> None:
        """End the slot's server; it goes on where the caller is cancelled, and `close` waits for it."""
        task = self._let_go(slot)
        await asyncio.wait([task])

    def _let_go(self, slot: _Slot[S]) -> asyncio.Task[None]:
        server, slot.server = slot.server, None
        assert server is not None
        return self._in_background(self._close_server(server))

    async def _close_server(self, server: S) -> None:
        try:
            await server.close()
        except SandboxError as error:
            self.counts.left += 1
            self._left.append(server)
            self._failure = error
        else:
            self.counts.ended += 1

    def _in_background(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    def _refuse_closed(self) -> None:
        if self._closed:
            raise PoolClosedError("the pool of sandboxes is closed; open another one.")


def _seen(task: asyncio.Task[S]) -> None:
    """A failure of a start-up is the next lease's to raise; if none comes, it must not be told as forgotten."""
    if not task.cancelled():
        task.exception()
