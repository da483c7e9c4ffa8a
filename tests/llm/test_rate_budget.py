"""What an account may send: the arithmetic over hours of simulated time, and the budget that callers wait for."""

from __future__ import annotations

import asyncio
import heapq
import math
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from flexmem.llm.errors import RateLimited
from flexmem.llm.local_budget import LocalRateBudget
from flexmem.llm.rate_budget import RateLedger, RateLimits
from flexmem.ports import Lease

T = TypeVar("T")

UNBOUNDED = RateLimits(1e9, 1e12)


# ---------------------------------------------------------------- the arithmetic


def ledger(requests: float | None = 1e9, tokens: float | None = 1e12, **options: float) -> RateLedger:
    return RateLedger(RateLimits(requests, tokens), 0.0, **options)


def ask(book: RateLedger, keys: str, tokens: int = 1, owner: str = "") -> None:
    for key in keys:
        book.ask(key, tokens, owner)


def drain(book: RateLedger, until: float) -> list[tuple[str, float]]:
    """Everything that is granted up to a time, with the time."""
    granted, now = [], 0.0
    while now <= until:
        granted += [(key, now) for key in book.grant(now)]
        wait = book.next_grant(now)
        if wait is None:
            break
        now += max(wait, 1e-3)
    return granted


def test_requests_follow_each_other_at_98_percent_of_the_limit() -> None:
    book = ledger(requests=60)
    ask(book, "abcdefghij")
    granted = drain(book, 100)
    assert [key for key, _ in granted] == list("abcdefghij")
    assert granted[0][1] == 0.0
    assert granted[-1][1] == pytest.approx(9 / 0.98, abs=0.02)


def test_a_burst_is_half_a_second_s_worth() -> None:
    book = ledger(requests=1_200)  # 20 a second: 9.8 at once
    ask(book, "abcdefghijklmno")
    assert len(book.grant(0.0)) == 9
    assert len(book.grant(3_600.0)) == 6


def test_the_line_is_served_in_order_even_if_a_later_one_would_fit() -> None:
    book = ledger(tokens=60_000)  # 1,000 a second, 490 at once
    ask(book, "a", 400)
    ask(book, "b", 400)
    ask(book, "c", 1)
    assert book.grant(0.0) == ["a"]
    assert book.grant(0.1) == []
    assert book.grant(0.4) == ["b", "c"]


def test_a_request_larger_than_the_bucket_goes_when_it_is_full_and_is_paid_back() -> None:
    book = ledger(tokens=60_000)  # 980 a second
    ask(book, "a", 9_800)
    ask(book, "b", 1)
    assert book.grant(0.0) == ["a"]
    wait = book.next_grant(0.0)
    assert wait == pytest.approx((9_800 - 490 + 1) / 980)


@pytest.mark.parametrize(("used", "left"), [(100, 900), (1_000, 0), (1_900, -900)])
def test_the_true_use_is_refunded_or_charged(used: int, left: int) -> None:
    book = ledger(tokens=120_000)  # 1,960 a second, 980 at once
    ask(book, "a", 1_000)
    book.grant(0.0)  # a debt of 20
    book.settle("a", used, 0.0)
    ask(book, "b", 980)
    assert book.next_grant(0.0) == pytest.approx((1_000 - left) / 1_960, abs=1e-6)


def test_use_that_nobody_knows_stays_charged_as_estimated() -> None:
    book = ledger(tokens=120_000)
    ask(book, "a", 980)
    book.grant(0.0)
    book.settle("a", None, 0.0)
    ask(book, "b", 980)
    assert book.next_grant(0.0) == pytest.approx(0.5)


def test_a_refund_comes_once_and_only_for_what_was_granted() -> None:
    book = ledger(tokens=120_000)
    ask(book, "a", 980)
    book.grant(0.0)
    book.settle("a", 980, 0.0)
    book.settle("a", 0, 0.0)
    book.settle("nobody's", 0, 0.0)
    ask(book, "b", 980)
    assert book.next_grant(0.0) == pytest.approx(0.5)


def test_a_rejection_stops_everyone_for_as_long_as_it_says() -> None:
    book = ledger()
    ask(book, "ab")
    book.grant(0.0)
    ask(book, "cd")
    book.reject("a", 7.0, 1.0)
    book.reject("b", 3.0, 1.0)  # a shorter pause does not end a longer one
    assert book.next_grant(1.0) == 7.0
    assert book.grant(7.9) == []
    assert book.grant(8.0) == ["c", "d"]


def test_pauses_that_nobody_names_double_until_something_is_answered() -> None:
    book = ledger()
    pauses, now = [], 0.0
    for key in "abcdefghi":
        ask(book, key)
        book.grant(now)
        now += 0.1
        book.reject(key, None, now)
        pauses.append(book.pause_left(now))
        now += pauses[-1]
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60, 60])
    ask(book, "x")
    book.grant(now)
    book.settle("x", 1, now)
    ask(book, "y")
    book.grant(now + 0.1)
    book.reject("y", None, now + 0.2)
    assert book.pause_left(now + 0.2) == pytest.approx(1)


def test_those_who_were_sent_together_pause_once() -> None:
    book = ledger()
    ask(book, "abc")
    book.grant(0.0)
    for key in "abc":
        book.reject(key, None, 0.5)
    assert book.pause_left(0.5) == pytest.approx(1)


def test_a_pause_that_is_too_long_turns_everyone_away() -> None:
    book = ledger(patience_s=100)
    ask(book, "a")
    book.grant(0.0)
    ask(book, "bc")
    book.reject("a", 99.0, 0.0)
    assert book.refuse(0.0) == []
    ask(book, "d")
    book.grant(99.0)
    book.reject("d", 3_600.0, 99.0)
    ask(book, "e")
    assert book.refuse(99.0) == ["e"]
    assert book.refuse(99.0) == []
    ask(book, "f")
    assert book.refuse(3_650.0) == []  # soon over
    assert book.grant(3_699.0) == ["f"]


def test_an_owner_that_is_gone_holds_no_place_and_no_lease() -> None:
    book = ledger(requests=60)
    ask(book, "a", owner="gone")
    ask(book, "b", owner="gone")
    ask(book, "c", owner="here")
    assert book.grant(0.0) == ["a"]
    assert book.release("gone") == ["b"]
    assert [key for key, _ in drain(book, 2.0)] == ["c"]
    assert not book._granted.keys() & {"a"}


def test_leases_that_nobody_settles_are_forgotten() -> None:
    book = ledger()
    ask(book, "a")
    book.grant(0.0)
    assert book._granted.keys() == {"a"}
    book.grant(4_000.0)
    assert not book._granted


def test_leaving_gives_back_what_was_not_used() -> None:
    book = ledger(requests=60)
    ask(book, "ab")
    assert book.grant(0.0) == ["a"]
    book.leave("a")
    assert book.grant(0.0) == ["b"]


def test_other_limits_hold_from_now_on() -> None:
    book = ledger(requests=60)
    ask(book, "abc")
    assert book.grant(0.0) == ["a"]
    book.restate(RateLimits(60_000, 1e12), 0.5)
    assert book.grant(0.5) == ["b", "c"]


def test_a_limit_that_another_run_leaves_open_stays() -> None:
    book = ledger(requests=60)
    book.restate(RateLimits(None, 5_000), 0.0)
    assert book.limits == RateLimits(60, 5_000)
    ask(book, "ab")
    assert book.grant(0.5) == ["a"]
    book.restate(RateLimits(), 0.6)  # nothing new: the bucket is not filled again
    assert book.grant(0.7) == []


# ---------------------------------------------------------------- limits that nobody has stated


class Simulation:
    """Workers that ask as fast as they can, and an endpoint that keeps to a limit a minute (a bucket of a second's
    worth), in simulated time.
    """

    def __init__(self, limits: RateLimits, limit: float, *, latency_s: float = 1.0, tells: bool = True) -> None:
        self.book = RateLedger(limits, 0.0)
        self.limit, self.latency_s, self.tells = limit, latency_s, tells
        self.random = random.Random(5)
        self.level, self.filled_at = max(1.0, limit / 60), 0.0
        self.answered, self.rejected = [0.0], [0.0]
        self.events: list[tuple[float, int, str, str]] = []
        self.now = self.looked_at = 0.0
        self.number = 0

    def run(self, *, minutes: float, at_once: int = 256) -> None:
        for _ in range(at_once):
            self.ask()
        self.look()
        while self.events and self.now < minutes * 60:
            self.now, _, what, key = heapq.heappop(self.events)
            if what == "arrives":
                self.arrive(key)
            elif what == "answered":
                self.book.settle(key, 500, self.now)
                self.ask()
            elif what == "rejected":
                self.book.reject(key, max(0.0, 1 - self.level) * 60 / self.limit if self.tells else None, self.now)
                self.ask()
            self.look()

    def share(self, first_minute: float = 0.0) -> float:
        """Of the limit that was used after the first minutes."""
        late = [at for at in self.answered[1:] if at >= first_minute * 60]
        return len(late) / (self.limit * (self.now / 60 - first_minute))

    def rejections(self, first_minute: float = 0.0) -> float:
        """Share of all requests that were rejected after the first minutes."""
        late, bad = (sum(at >= first_minute * 60 for at in times[1:]) for times in (self.answered, self.rejected))
        return bad / (late + bad)

    def ask(self) -> None:
        self.number += 1
        self.book.ask(str(self.number), 1_000)

    def arrive(self, key: str) -> None:
        self.level = min(max(1.0, self.limit / 60), self.level + (self.now - self.filled_at) * self.limit / 60)
        self.filled_at = self.now
        if self.level >= 1:
            self.level -= 1
            self.answered.append(self.now)
            self.push(self.random.lognormvariate(0, 0.5) * self.latency_s, "answered", key)
        else:
            self.rejected.append(self.now)
            self.push(0.02, "rejected", key)

    def look(self) -> None:
        for key in self.book.grant(self.now):
            self.push(self.random.uniform(0, 0.02), "arrives", key)
        wait = self.book.next_grant(self.now)
        if wait is not None and not self.now < self.looked_at <= self.now + wait:
            self.looked_at = self.now + max(wait, 1e-3)
            self.push(self.looked_at - self.now, "look", "")

    def push(self, delay: float, what: str, key: str) -> None:
        heapq.heappush(self.events, (self.now + delay, len(self.events), what, key))


@pytest.mark.parametrize("limit", [60, 600, 6_000])
@pytest.mark.parametrize("tells", [True, False])
def test_an_unknown_limit_is_found_and_kept(limit: float, tells: bool) -> None:
    simulation = Simulation(RateLimits(), limit, tells=tells)
    simulation.run(minutes=10 if limit < 6_000 else 4)
    assert simulation.share(2) > 0.9
    assert simulation.rejections(2) < 0.02
    assert simulation.rejections() < 0.05


def test_an_unknown_limit_of_a_slow_model() -> None:
    simulation = Simulation(RateLimits(), 600, latency_s=20.0)
    simulation.run(minutes=10)
    assert simulation.share(2) > 0.9
    assert simulation.rejections() < 0.02


def test_a_server_of_one_s_own_is_not_held_back_and_a_proxy_before_a_limit_is_learned() -> None:
    free = Simulation(RateLimits(first_pace=math.inf), 1e9)
    free.run(minutes=0.5)
    assert not free.rejected[1:]
    assert len(free.answered) > 0.9 * 256 * 30 / 1.13  # all that 256 at a time can be: mean latency is 1.13 s
    proxy = Simulation(RateLimits(first_pace=math.inf), 600)
    proxy.run(minutes=10)
    assert proxy.share(2) > 0.9
    assert proxy.rejections(2) < 0.02


def test_a_stated_limit_is_used_and_never_passed() -> None:
    for limits in (RateLimits(600, None), RateLimits(600, 1e9)):
        simulation = Simulation(limits, 600)
        simulation.run(minutes=10)
        assert simulation.rejections() == 0
        assert simulation.share() > 0.97


def test_a_limit_that_is_stated_too_high_is_learned() -> None:
    simulation = Simulation(RateLimits(1_200, None), 600)
    simulation.run(minutes=10)
    assert simulation.share(2) > 0.9
    assert simulation.rejections(2) < 0.02


def test_tokens_are_kept_by_what_requests_really_use() -> None:
    simulation = Simulation(RateLimits(600, 200_000), 600)  # every request is estimated at 1,000 and uses 500
    simulation.run(minutes=10)
    assert simulation.share() == pytest.approx(0.98 * 200_000 / 500 / 600, rel=0.02)


# ---------------------------------------------------------------- waiting


class Clock:
    """A clock that the event loop's own time drives."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead


def budget_run(
    limits: RateLimits, use: Callable[[LocalRateBudget, Clock], Coroutine[Any, Any, T]], **options: Any
) -> T:
    async def main() -> T:
        clock = Clock()
        return await use(LocalRateBudget(limits, "mine", clock=clock, **options), clock)

    return asyncio.run(main())


def test_turns_come_in_the_order_of_asking() -> None:
    async def use(budget: LocalRateBudget, _: Clock) -> list[int]:
        order: list[int] = []

        async def one(number: int) -> None:
            await budget.acquire(10)
            order.append(number)

        await asyncio.gather(*(one(number) for number in range(30)))
        return order

    assert budget_run(RateLimits(30_000, None), use) == list(range(30))


def test_leases_are_told_apart() -> None:
    async def use(budget: LocalRateBudget, _: Clock) -> list[Lease]:
        return [await budget.acquire(5), await budget.acquire(6)]

    first, second = budget_run(UNBOUNDED, use)
    assert (first.tokens, second.tokens) == (5, 6)
    assert first.key != second.key


def test_who_waits_goes_on_when_a_pause_ends() -> None:
    async def use(budget: LocalRateBudget, _: Clock) -> bool:
        await budget.rejected(await budget.acquire(1), 0.05)
        waiting = asyncio.create_task(budget.acquire(1))
        await asyncio.sleep(0)
        paused = not waiting.done()
        await waiting
        return paused

    assert budget_run(UNBOUNDED, use)


def test_a_caller_that_gives_up_leaves_its_turn_to_the_next() -> None:
    async def use(budget: LocalRateBudget, clock: Clock) -> None:
        await budget.acquire(1)
        first, second = (asyncio.create_task(budget.acquire(1)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        clock.ahead = 61.3  # one request a minute: the second's turn, if the first holds no place any more
        budget._look()
        await asyncio.wait_for(second, 30)

    budget_run(RateLimits(1.0, 1e12), use)


def test_a_turn_that_comes_as_the_caller_gives_up_is_not_lost() -> None:
    async def use(budget: LocalRateBudget, clock: Clock) -> None:
        await budget.acquire(1)
        task = asyncio.create_task(budget.acquire(1))
        await asyncio.sleep(0)
        clock.ahead = 61.3
        budget._look()  # it may go ...
        task.cancel()  # ... and never does
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(budget.acquire(1), 30)

    budget_run(RateLimits(1.0, 1e12), use)


def test_a_pause_that_is_too_long_fails_those_who_wait_and_those_who_come() -> None:
    async def use(budget: LocalRateBudget, _: Clock) -> list[BaseException | Lease]:
        lease = await budget.acquire(1)
        await budget.rejected(await budget.acquire(1), 5.0)
        waiting = asyncio.create_task(budget.acquire(1))
        await asyncio.sleep(0)
        await budget.rejected(lease, 86_400.0)
        return [*await asyncio.gather(waiting, budget.acquire(1), return_exceptions=True)]

    for failed in budget_run(UNBOUNDED, use, patience_s=60.0):
        assert isinstance(failed, RateLimited)
        assert failed.attempts == 0
        assert failed.retry_after == pytest.approx(86_400, abs=60)
        assert str(failed).startswith("mine: rate limited for another 86,")


def test_an_owner_that_is_gone_is_no_longer_in_line() -> None:
    async def use(budget: LocalRateBudget, _: Clock) -> None:
        await budget.acquire(1)
        gone = asyncio.create_task(budget.acquire(1, owner="w1"))
        await asyncio.sleep(0)
        budget.release("w1")
        with pytest.raises(asyncio.CancelledError):
            await gone

    budget_run(RateLimits(1.0, 1e12), use)
