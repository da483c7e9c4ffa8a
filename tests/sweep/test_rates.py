"""Rate budgets as actors: shared by workers, outliving kills of any of them, and as good as promised under load."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from flexmem.llm.config import ModelConfig
from flexmem.llm.errors import ModelConfigurationError, RateLimited
from flexmem.llm.rate_budget import RateLimits
from flexmem.sweep.services.rates import RateClient, start_rates
from tests.perf.limiter_load import CALLS, run_load

from .ray_harness import own_ray

UNBOUNDED = {"requests_per_minute": 1e9, "tokens_per_minute": 1e12}


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    with own_ray() as started:
        yield started


def model(account: str, **limits: float) -> ModelConfig:
    return ModelConfig.model_validate({"model": "m", "account": account, **limits})


def clients(config: ModelConfig, *owners: str) -> tuple[dict[str, tuple[RateLimits, Any]], list[RateClient]]:
    """The started actors, which end with their handles, and a client for each owner."""
    rates = start_rates([config])
    ((account, (limits, _)),) = rates.items()
    return rates, [RateClient(account, limits, owner) for owner in owners]


def test_workers_share_an_account_and_accounts_share_nothing(ray: Any) -> None:
    rates, (one, other) = clients(model("shared", requests_per_minute=1, tokens_per_minute=1e12), "w1", "w2")
    free, (third,) = clients(model("free", **UNBOUNDED), "w1")

    async def use() -> None:
        await one.acquire(1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(other.acquire(1), 0.3)
        await asyncio.wait_for(third.acquire(1), 60)

    asyncio.run(use())
    assert rates.keys() == {"shared"}
    assert free.keys() == {"free"}


def test_an_actor_that_is_killed_comes_back_and_a_caller_that_waits_goes_on(ray: Any) -> None:
    rates, (client,) = clients(model("killed", **UNBOUNDED), "w1")
    _, actor = rates["killed"]

    async def use() -> None:
        lease = await client.acquire(1)
        await client.rejected(lease, 3_600.0 / 60)  # a minute's pause: whoever asks now stands in line
        waiting = asyncio.create_task(client.acquire(1))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        os.kill(await actor.pid.remote(), signal.SIGKILL)
        await asyncio.wait_for(waiting, 60)  # the pause died with it; its waiting calls did not
        await client.settle(lease, 1)  # of before the kill: nobody knows it any more
        await asyncio.wait_for(client.acquire(1), 60)

    asyncio.run(use())


def test_an_actor_that_ended_with_another_run_is_started_again(ray: Any) -> None:
    rates, (client,) = clients(model("ended", **UNBOUNDED), "w1")

    async def use() -> None:
        await client.acquire(1)
        ray.kill(rates["ended"][1])  # as when the job ends that started it: for good
        await client.settle(await asyncio.wait_for(client.acquire(1), 60), 1)

    asyncio.run(use())


def test_a_worker_that_is_gone_holds_no_place_in_line(ray: Any) -> None:
    rates, (gone, here) = clients(model("gone", requests_per_minute=30, tokens_per_minute=1e12), "gone", "here")
    _, actor = rates["gone"]

    async def use() -> None:
        await here.acquire(1)
        lost = [asyncio.create_task(gone.acquire(1)) for _ in range(30)]
        await asyncio.sleep(0.3)
        await actor.release.remote("gone")
        await asyncio.wait_for(here.acquire(1), 25)  # 2 s; 60 s behind the others
        await asyncio.gather(*lost, return_exceptions=True)

    asyncio.run(use())


def test_a_pause_that_is_too_long_is_said_by_whoever_asks(ray: Any) -> None:
    rates, (one, other) = clients(model("paused", **UNBOUNDED), "w1", "w2")

    async def use() -> None:
        await one.rejected(await one.acquire(1), 86_400.0)
        for _ in range(100):  # nobody waits until the actor has heard of it
            await asyncio.wait_for(other.acquire(1), 60)

    with pytest.raises(RateLimited, match=r"^paused: rate limited for another 86,") as refused:
        asyncio.run(use())
    assert type(refused.value) is RateLimited
    assert refused.value.retry_after == pytest.approx(86_400, abs=600)
    assert rates


def test_limits_that_contradict_each_other_start_nothing(ray: Any) -> None:
    with pytest.raises(ModelConfigurationError, match="state one"):
        start_rates([model("both", requests_per_minute=1), model("both", requests_per_minute=2)])


@pytest.mark.slow
def test_a_shared_budget_uses_the_limit_and_is_hardly_ever_rejected(ray: Any) -> None:
    load = run_load(ray, budget=True)
    assert load.answered == CALLS
    assert load.rejected <= 0.01
    assert load.share >= 0.95
    alone = run_load(ray, budget=False)
    assert alone.answered < CALLS
    assert alone.rejected > 0.5
