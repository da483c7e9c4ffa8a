"""An account's rate budget for the callers of one event loop."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable

from flexmem.llm.errors import RateLimited
from flexmem.llm.rate_budget import PATIENCE_S, RateLedger, RateLimits
from flexmem.ports import Lease

__all__ = ["LocalRateBudget"]


class LocalRateBudget:
    """A `flexmem.ports.RateBudget` for the callers of one event loop.

    Args:
        limits: the account's.
        name: what messages call the account.
        clock: seconds, monotonic.
        patience_s: the longest pause that is waited out.
    """

    def __init__(
        self,
        limits: RateLimits,
        name: str = "the account",
        *,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._ledger = RateLedger(limits, clock(), patience_s=patience_s)
        self._name = name
        self._clock = clock
        self._turns: dict[str, asyncio.Future[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, tokens: int, owner: str = "") -> Lease:
        """See `flexmem.ports.RateBudget.acquire`; ``owner`` is whom `release` knows.

        Raises:
            RateLimited: the endpoint asked for a pause that is longer than anyone should wait.
        """
        key = uuid.uuid4().hex
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns[key] = turn
        self._ledger.ask(key, tokens, owner)
        self._look()
        try:
            await turn
        except asyncio.CancelledError:
            self._ledger.leave(key)
            self._look()
            raise
        finally:
            self._turns.pop(key, None)
        return Lease(key, tokens)

    async def settle(self, lease: Lease, tokens: int | None) -> None:
        """See `flexmem.ports.RateBudget.settle`."""
        self._ledger.settle(lease.key, tokens, self._clock())
        self._look()

    async def rejected(self, lease: Lease, retry_after: float | None) -> None:
        """See `flexmem.ports.RateBudget.rejected`."""
        self._ledger.reject(lease.key, retry_after, self._clock())
        self._look()

    def restate(self, limits: RateLimits) -> None:
        """Go by other limits from now on; what they leave open stays as it is."""
        self._ledger.restate(limits, self._clock())
        self._look()

    def release(self, owner: str) -> None:
        """Forget an owner that is gone: its place in line, and leases that nobody will settle."""
        for key in self._ledger.release(owner):
            self._turns.pop(key).cancel()
        self._look()

    def _look(self) -> None:
        """Let go who may go, turn away who need not wait, and look again when the next one's turn comes."""
        now = self._clock()
        for key in self._ledger.refuse(now):
            left = self._ledger.pause_left(now)
            self._tell(
                key,
                RateLimited(
                    f"{self._name}: rate limited for another {left:,.0f} s, says the endpoint; run the same command "
                    "again after that.",
                    status=429,
                    retry_after=left,
                    attempts=0,
                ),
            )
        for key in self._ledger.grant(now):
            self._tell(key, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wait = self._ledger.next_grant(now)
        if wait is not None:
            # A bucket that lacks a rounding error asks for no time at all; a spin would not fill it.
            self._timer = asyncio.get_running_loop().call_later(max(wait, 1e-3), self._look)

    def _tell(self, key: str, refusal: RateLimited | None) -> None:
        turn = self._turns.get(key)
        if turn is None or turn.done():
            self._ledger.leave(key)
        elif refusal is None:
            turn.set_result(None)
        else:
            turn.set_exception(refusal)
