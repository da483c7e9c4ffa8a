"""Rate budgets as services: one process a provider's account hands out the turns of all workers, so that together they
stay within its limits and none is left waiting while others go.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import ray

from flexmem.llm.accounts import account_limits
from flexmem.llm.config import ModelConfig
from flexmem.llm.errors import RateLimited
from flexmem.llm.local_budget import LocalRateBudget
from flexmem.llm.rate_budget import RateLimits
from flexmem.ports import Lease
from flexmem.sweep.services.actor import SERVICE, start_actor

__all__ = ["RateActor", "RateClient", "start_rates"]

_NAMESPACE = "flexmem"
_MOST_WAITING = 10_000  # calls that may stand in an account's line at a time
_AGAIN_S = 1.0
_ONCE: dict[str, Any] = {"max_task_retries": 0}  # a restarted actor knows no leases of before


class RateActor:
    """A `LocalRateBudget`. After a restart it starts with what half a second allows, and learns unknown limits anew."""

    def __init__(self, account: str, limits: RateLimits) -> None:
        self._budget = LocalRateBudget(limits, account)

    async def acquire(self, tokens: int, owner: str) -> Lease | RateLimited:
        """See `flexmem.ports.RateBudget.acquire`; a refusal is returned, since raising it would wrap it."""
        try:
            return await self._budget.acquire(tokens, owner)
        except RateLimited as refused:
            return refused

    async def settle(self, lease: Lease, tokens: int | None) -> None:
        """See `flexmem.ports.RateBudget.settle`."""
        await self._budget.settle(lease, tokens)

    async def rejected(self, lease: Lease, retry_after: float | None) -> None:
        """See `flexmem.ports.RateBudget.rejected`."""
        await self._budget.rejected(lease, retry_after)

    async def restate(self, limits: RateLimits) -> None:
        """Go by the limits that another run states for the same account."""
        self._budget.restate(limits)

    async def release(self, owner: str) -> None:
        """Forget a worker that died: its places in line and its leases."""
        self._budget.release(owner)

    async def pid(self) -> int:
        """Process id, for tests that kill it."""
        return os.getpid()


class RateClient:
    """A `flexmem.ports.RateBudget` over the actor of an account, for one worker.

    The actor is found by its name at first use, whoever started it: all runs on a cluster share it. Where it has ended
    with the run that started it, it is started again.
    """

    def __init__(self, account: str, limits: RateLimits, owner: str) -> None:
        self._account, self._limits, self._owner = account, limits, owner
        self._actor: Any = None

    async def acquire(self, tokens: int) -> Lease:
        """See `flexmem.ports.RateBudget.acquire`.

        Raises:
            RateLimited: the endpoint asked for a pause that is longer than anyone should wait.
        """
        while True:
            try:
                granted: Lease | RateLimited = await self._found().acquire.remote(tokens, self._owner)
                break
            except ray.exceptions.RayActorError:
                self._actor = None
                await asyncio.sleep(_AGAIN_S)
        if isinstance(granted, RateLimited):
            raise granted
        return granted

    async def settle(self, lease: Lease, tokens: int | None) -> None:
        """See `flexmem.ports.RateBudget.settle`. Nobody waits for it: a reply that is paid must not be held up, and
        far less lost, by bookkeeping.
        """
        with suppress(ray.exceptions.RayError):
            self._found().settle.options(**_ONCE).remote(lease, tokens)

    async def rejected(self, lease: Lease, retry_after: float | None) -> None:
        """See `flexmem.ports.RateBudget.rejected`."""
        with suppress(ray.exceptions.RayError):
            self._found().rejected.options(**_ONCE).remote(lease, retry_after)

    def _found(self) -> Any:
        if self._actor is None:
            self._actor = _actor(self._account, self._limits)
        return self._actor


def start_rates(models: Iterable[ModelConfig]) -> dict[str, tuple[RateLimits, Any]]:
    """The accounts that the models use, each with its limits and a handle on its actor. Whoever starts them keeps the
    handles: with the last one an actor ends.

    Raises:
        ModelConfigurationError: two models state different limits for one account.
    """
    started = {}
    for account, limits in account_limits(models).items():
        actor = _actor(account, limits)
        actor.restate.remote(limits)  # another run may have started it with other ones
        started[account] = limits, actor
    return started


def _actor(account: str, limits: RateLimits) -> Any:
    name = hashlib.blake2b(account.encode(), digest_size=8).hexdigest()
    options = {**SERVICE, "max_concurrency": _MOST_WAITING, "namespace": _NAMESPACE, "get_if_exists": True}
    return start_actor(RateActor, account, limits, **options, name=f"rates-{name}")
