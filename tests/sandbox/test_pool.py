"""What a pool leases, what it uses again, and that nothing is left of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from flexmem.sandbox.errors import (
    ImageMissingError,
    PoolClosedError,
    SandboxBrokenError,
    SandboxDeadlineError,
    SandboxError,
)
from flexmem.sandbox.pool import SandboxPool
from flexmem.sandbox.starting import StartPolicy

from .servers import FakeServer, Yard

LONG_S = 60.0


def pooled(
    body: Callable[[SandboxPool[FakeServer]], Awaitable[None]], yard: Yard, size: int = 1, **options: Any
) -> SandboxPool[FakeServer]:
    """Run ``body`` with a pool, close it, and see that no server is left."""

    async def run() -> SandboxPool[FakeServer]:
        async with SandboxPool(yard.start, size=size, **options) as pool:
            await body(pool)
        return pool

    pool = asyncio.run(run())
    assert yard.open == []
    return pool


async def episode(pool: SandboxPool[FakeServer], deadline_s: float = LONG_S) -> int:
    async with pool.lease("e", deadline_s) as server:
        await asyncio.sleep(0)
        return server.number


def test_a_server_that_served_well_serves_again_until_it_has_served_enough() -> None:
    yard = Yard()

    async def body(pool: SandboxPool[FakeServer]) -> None:
        assert [await episode(pool) for _ in range(5)] == [1, 1, 2, 2, 3]

    pool = pooled(body, yard, max_episodes=2)
    assert (pool.counts.leased, pool.counts.failed, pool.counts.ended, pool.counts.left) == (5, 0, 3, 0)


def test_a_server_is_not_used_again_after_an_exception() -> None:
    yard = Yard()

    async def body(pool: SandboxPool[FakeServer]) -> None:
        with pytest.raises(SandboxBrokenError):
            async with pool.lease("bad", LONG_S):
                raise SandboxBrokenError("the code ended its server")
        assert yard.open == []
        assert await episode(pool) == 2

    assert pooled(body, yard).counts.failed == 1


def test_a_deadline_cancels_the_episode_and_ends_its_server() -> None:
    yard = Yard()

    async def body(pool: SandboxPool[FakeServer]) -> None:
        with pytest.raises(SandboxDeadlineError, match=r"episode slow: took longer than the 0.01 s"):
            async with pool.lease("slow", 0.01):
                await asyncio.sleep(LONG_S)
        assert await episode(pool) == 2

    pooled(body, yard)


def test_an_own_time_out_of_the_episode_is_not_taken_for_its_deadline() -> None:
    async def body(pool: SandboxPool[FakeServer]) -> None:
        with pytest.raises(TimeoutError, match="mine"):
            async with pool.lease("e", LONG_S):
                raise TimeoutError("mine")

    pooled(body, Yard())


def test_a_cancelled_lease_ends_its_server() -> None:
    yard = Yard()

    async def body(pool: SandboxPool[FakeServer]) -> None:
        inside = asyncio.Event()

        async def work() -> None:
            async with pool.lease("e", LONG_S):
                inside.set()
                await asyncio.sleep(LONG_S)

        task = asyncio.create_task(work())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert 1 not in yard.open

    pooled(body, yard)


def test_a_server_that_is_doubtful_after_a_good_episode_is_not_used_again() -> None:
    yard = Yard()

    async def body(pool: SandboxPool[FakeServer]) -> None:
        async with pool.lease("e", LONG_S) as server:
            server.doubtful = "its code left processes"
        assert 1 not in yard.open
        assert await episode(pool) == 2

    assert pooled(body, yard).counts.failed == 0


def test_a_server_that_fails_its_check_is_replaced_before_it_is_leased() -> None:
    yard = Yard()

    async def body(pool: SandboxPool[FakeServer]) -> None:
        assert await episode(pool) == 1
        yard.servers[0].sick = True
        assert await episode(pool, 7.0) == 2
        assert yard.servers[0].checked == [7.0]

    pooled(body, yard)


def test_no_more_servers_than_its_size_and_no_more_start_ups_at_once_than_it_may() -> None:
    yard = Yard()

    async def body(pool: SandboxPool[FakeServer]) -> None:
        served = await asyncio.gather(*(episode(pool) for _ in range(20)))
        assert len(served) == 20
        assert len(yard.servers) <= 4
        assert yard.most_at_once == 2

    pooled(body, yard, size=4, policy=StartPolicy(at_once=2))


def test_a_server_that_is_ended_slowly_still_takes_its_place() -> None:
    yard = Yard()

    async def body(pool: SandboxPool[FakeServer]) -> None:
        async def failing() -> None:
            async with pool.lease("bad", LONG_S) as server:
                server.closing_takes_s = 0.005
                await asyncio.sleep(0)
                raise SandboxBrokenError("broken")

        outcomes = await asyncio.gather(*(failing() for _ in range(12)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [SandboxBrokenError] * 12
        assert yard.most_open == 3

    pool = pooled(body, yard, size=3)
    assert pool.counts.left == 0


def test_warm_servers_go_first_and_wait_for_nobody() -> None:
    yard = Yard()

    async def body(pool: SandboxPool[FakeServer]) -> None:
        pool.warm(1)
        await asyncio.sleep(0.01)
        assert yard.open == [1]
        assert await episode(pool) == 1
        assert yard.tried == 1

    pooled(body, yard, size=3)


def test_a_start_up_is_tried_again_with_longer_waits_until_it_works() -> None:
    yard = Yard(lambda number: SandboxError("not yet") if number < 4 else None)
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def body(pool: SandboxPool[FakeServer]) -> None:
        assert await episode(pool) == 4
        assert waits == [1.0, 2.0, 4.0]

    pooled(body, yard, sleep=sleep)


def test_the_last_start_ups_failure_is_the_leases_and_the_next_lease_tries_again() -> None:
    yard = Yard(lambda number: SandboxError(f"failure {number}") if number <= 2 else None)

    async def sleep(seconds: float) -> None:
        pass

    async def body(pool: SandboxPool[FakeServer]) -> None:
        with pytest.raises(SandboxError, match="failure 2") as raised:
            await episode(pool)
        assert raised.value.failure == "infrastructure"
        assert await episode(pool) == 3

    pooled(body, yard, policy=StartPolicy(attempts=2), sleep=sleep)


def test_what_no_further_attempt_mends_is_raised_at_once() -> None:
    yard = Yard(lambda number: ImageMissingError("no such image"))

    async def body(pool: SandboxPool[FakeServer]) -> None:
        with pytest.raises(ImageMissingError):
            await episode(pool)
        assert yard.tried == 1

    pooled(body, yard)


def test_a_server_that_can_not_be_removed_is_told_when_the_pool_closes_and_tried_again() -> None:
    yard = Yard()

    async def run() -> None:
        pool = SandboxPool(yard.start, size=1, max_episodes=1)
        async with pool.lease("e", LONG_S) as server:
            server.stuck = True
        assert await episode(pool) == 2  # the pool goes on
        assert pool.counts.left == 1
        with pytest.raises(SandboxError, match="server 1 is stuck"):
            await pool.close()
        assert (pool.counts.left, yard.open) == (1, [1])
        server.stuck = False
        await pool.close()
        assert (pool.counts.left, yard.open) == (0, [])

    asyncio.run(run())


def test_closing_ends_leased_and_starting_servers_and_leases_nothing_more() -> None:
    yard = Yard()

    async def run() -> None:
        pool = SandboxPool(yard.start, size=3)
        inside, go = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with pool.lease("held", LONG_S):
                inside.set()
                await go.wait()

        holding = asyncio.create_task(hold())
        await inside.wait()
        yard.gate = asyncio.Event()  # from now on a start-up never ends
        waiting = asyncio.create_task(episode(pool))
        await asyncio.sleep(0.01)
        await pool.close()
        assert yard.open == []
        with pytest.raises(PoolClosedError):
            await waiting
        go.set()
        await holding
        with pytest.raises(PoolClosedError):
            await episode(pool)
        await pool.close()

    asyncio.run(run())
    assert yard.tried == 2
    assert yard.at_once == 0


def test_a_lease_that_is_cancelled_while_a_server_starts_leaves_it_to_the_next() -> None:
    yard = Yard()

    async def body(pool: SandboxPool[FakeServer]) -> None:
        yard.gate = asyncio.Event()
        waiting = asyncio.create_task(episode(pool))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        yard.gate.set()
        assert await episode(pool) == 1

    pooled(body, yard)


@pytest.mark.parametrize("options", [{"size": 0}, {"size": 1, "max_episodes": 0}])
def test_a_pool_that_could_serve_nobody_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="serves nobody"):
        SandboxPool(Yard().start, **options)
