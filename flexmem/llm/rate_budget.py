"""What one account may send in a minute, shared out in the order of asking: the arithmetic, without a clock of its own
and without waiting.

Requests and tokens each have a bucket that fills at the account's limit and never holds more than half a second of it:
a provider may enforce a limit of 600 a minute as 10 a second. A request of more tokens than the bucket holds goes when
the bucket is full and leaves a debt. When its true use is known, the difference comes back or is charged. Limits that
nobody has stated are learned (`flexmem.llm.pace`).

A 429 stops everyone: for as long as it says, else for a second that doubles with every further one. When an endpoint
asks for more than ``patience_s`` seconds, waiting callers are turned away at once rather than held for an hour.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

from flexmem.llm.pace import Pace

__all__ = ["PATIENCE_S", "RateLedger", "RateLimits"]

PATIENCE_S = 300.0
"""The longest pause that is waited out."""

_BURST_S = 0.5
_SHARE = 0.98  # of a stated limit: clocks and the network shift requests against the provider's minute
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0  # after 429s that don't say how long
_LEASE_S = 3_600.0  # after this nobody will settle it any more
_FIRST_PACE = 10.0  # requests a second, where no limit is stated: the smallest paid accounts have about as much


@dataclass(frozen=True, slots=True)
class RateLimits:
    """An account's limits a minute; None: not stated, to be learned. ``first_pace``: requests a second to begin with
    while limits are learned.
    """

    requests: float | None = None
    tokens: float | None = None
    first_pace: float = _FIRST_PACE


class _Bucket:
    """Fills by ``rate`` a second."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._at = now
        self.level = self.size

    @property
    def size(self) -> float:
        return max(1.0, self.rate * _BURST_S)

    def fill(self, now: float) -> None:
        if math.isinf(self.rate):
            self.level = math.inf
        else:
            # A bucket whose rate was infinite until now starts full, not infinite.
            self.level = min(self.size, self.level + max(0.0, now - self._at) * self.rate)
        self._at = now

    def wait(self, amount: float) -> float:
        """Seconds until ``amount`` may be taken."""
        lacking = min(amount, self.size) - self.level
        return lacking / self.rate if lacking > 1e-9 else 0.0


@dataclass(slots=True)
class _Granted:
    owner: str
    tokens: int
    at: float


class RateLedger:
    """Who waits, who may go, and what is left. Times are seconds of one clock; a key names one request."""

    def __init__(self, limits: RateLimits, now: float, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._waiting: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._granted: OrderedDict[str, _Granted] = OrderedDict()
        self._paused_until = -math.inf
        self._pause_s = _FIRST_PAUSE_S
        self._paused_at = -math.inf
        self.limits = limits
        self._set(limits, now)

    def _set(self, limits: RateLimits, now: float) -> None:
        self._requests = _Bucket(_a_second(limits.requests), now)
        self._tokens = _Bucket(_a_second(limits.tokens), now)
        learns = limits.requests is None or limits.tokens is None
        # Where the number of requests is stated, only rejections can tell that something else is short.
        first = limits.first_pace if limits.requests is None else math.inf
        self._pace = Pace(first, self._requests.rate, now) if learns else None
        self._paced = _Bucket(first if learns else math.inf, now)

    def restate(self, limits: RateLimits, now: float) -> None:
        """Go by other limits from now on; what they leave open stays as it is. Who waits, waits on."""
        known = self.limits
        limits = RateLimits(
            known.requests if limits.requests is None else limits.requests,
            known.tokens if limits.tokens is None else limits.tokens,
            known.first_pace,
        )
        if limits != known:
            self.limits = limits
            self._set(limits, now)

    def ask(self, key: str, tokens: int, owner: str = "") -> None:
        """Stand in line for one request of about ``tokens``."""
        self._waiting[key] = (owner, tokens)

    def leave(self, key: str) -> None:
        """Leave the line, or give an unused lease back."""
        self._waiting.pop(key, None)
        granted = self._granted.pop(key, None)
        if granted is not None:
            for bucket, amount in self._charges(granted.tokens):
                bucket.level += amount

    def release(self, owner: str) -> list[str]:
        """Forget all of an owner that is gone; the keys with which it stood in line. What it has sent stays charged."""
        gone = [key for key, (one, _) in self._waiting.items() if one == owner]
        for key in gone:
            del self._waiting[key]
        for key in [key for key, granted in self._granted.items() if granted.owner == owner]:
            del self._granted[key]
        return gone

    def grant(self, now: float) -> list[str]:
        """The keys that may go now, in the order of asking."""
        self._forget_old(now)
        if now < self._paused_until:
            return []
        for bucket in (self._requests, self._tokens, self._paced):
            bucket.fill(now)
        ready: list[str] = []
        while self._waiting:
            key, (owner, tokens) = next(iter(self._waiting.items()))
            short = [bucket for bucket, amount in self._charges(tokens) if bucket.wait(amount) > 0]
            if short:
                if self._pace is not None and short == [self._paced]:
                    self._pace.bound(now)
                break
            for bucket, amount in self._charges(tokens):
                bucket.level -= amount
            del self._waiting[key]
            self._granted[key] = _Granted(owner, tokens, now)
            ready.append(key)
        return ready

    def refuse(self, now: float) -> list[str]:
        """The keys that are turned away, because the pause is longer than anyone should wait."""
        if self.pause_left(now) <= self._patience_s:
            return []
        refused = list(self._waiting)
        self._waiting.clear()
        return refused

    def pause_left(self, now: float) -> float:
        """Seconds until anyone may go; 0 without a pause."""
        return max(0.0, self._paused_until - now)

    def next_grant(self, now: float) -> float | None:
        """Seconds until `grant` gives something again; None while nobody waits."""
        if not self._waiting:
            return None
        _, tokens = next(iter(self._waiting.values()))
        return max(self.pause_left(now), *(bucket.wait(amount) for bucket, amount in self._charges(tokens)))

    def settle(self, key: str, tokens: int | None, now: float) -> None:
        """A request ended; ``tokens``: what it used, None where nobody knows: then the estimate stays charged."""
        granted = self._granted.pop(key, None)
        if granted is None or tokens is None:
            return
        self._tokens.fill(now)
        self._tokens.level = min(self._tokens.size, self._tokens.level + granted.tokens - tokens)
        self._pause_s = _FIRST_PAUSE_S
        if self._pace is not None:
            self._pace.reply(granted.at, now)
            self._repace(self._pace.rate, now)

    def reject(self, key: str, retry_after: float | None, now: float) -> None:
        """A request met a 429."""
        granted = self._granted.pop(key, None)
        sent_at = now if granted is None else granted.at
        if retry_after is None and sent_at > self._paused_at:
            retry_after = self._pause_s
            self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)
            self._paused_at = now
        self._paused_until = max(self._paused_until, now + (retry_after or 0.0))
        if self._pace is not None:
            self._pace.rejected(sent_at, now)
            self._repace(self._pace.rate, now)

    def _charges(self, tokens: int) -> tuple[tuple[_Bucket, float], ...]:
        return (self._requests, 1.0), (self._tokens, float(tokens)), (self._paced, 1.0)

    def _repace(self, rate: float, now: float) -> None:
        self._paced.fill(now)
        self._paced.rate = rate

    def _forget_old(self, now: float) -> None:
        while self._granted:
            key, granted = next(iter(self._granted.items()))
            if now - granted.at < _LEASE_S:
                return
            del self._granted[key]


def _a_second(limit: float | None) -> float:
    return math.inf if limit is None else limit / 60 * _SHARE
