"""How fast requests may follow one another at an account whose limits nobody has stated.

Additive guesses would take hours where a limit is high and storm it where it is low, so everything is relative: until
the first 429 the pace doubles about every second of good replies; from then on a 429 takes a tenth off, and a hundred
good replies give it back. So one request in a hundred or so is rejected, whatever the limit, and some 95 % of it is
used.
"""

from __future__ import annotations

import math

__all__ = ["Pace"]

_CUT = 0.9
_GROWTH = 1.0011  # to the hundredth power: 1 / 0.9
_SLOW_START = 0.7  # requests a second gained by a reply: e^0.7 = 2 in a second
_OVERSHOOT = 0.5  # of a pace that doubled a second ago
_LEAST = 1 / 60  # requests a second
_FADE_S = 5.0
_BOUND_S = 10.0


class Pace:
    """Requests a second, learned from replies and rejections.

    Args:
        first: the pace to begin with; infinite: unbounded until the first rejection.
        ceiling: what is sent at most, whatever is learned.
        now: seconds, of any clock.
    """

    def __init__(self, first: float, ceiling: float, now: float) -> None:
        self.rate = first
        self._ceiling = ceiling
        self._searching = math.isinf(ceiling)
        self._cut_at = -math.inf
        self._bound_at = -math.inf
        self._replies = 0.0  # of the last seconds, older ones fading
        self._counted_at = now

    def bound(self, now: float) -> None:
        """Somebody waits for nothing but this pace. One that nobody waits for must not grow: it has proved nothing."""
        self._bound_at = now

    def reply(self, sent_at: float, now: float) -> None:
        """A request that was let go at ``sent_at`` was answered. Only those let go since the last cut speak for the
        pace that holds now.
        """
        self._fade(now)
        self._replies += 1.0
        if now - self._bound_at > _BOUND_S or sent_at <= self._cut_at:
            return
        if self._searching:
            self.rate += _SLOW_START
        else:
            self.rate = min(self._ceiling, self.rate * _GROWTH)

    def rejected(self, sent_at: float, now: float) -> None:
        """A request that was let go at ``sent_at`` was rejected. Those let go before the last cut teach nothing new."""
        if sent_at <= self._cut_at:
            return
        self._cut_at = now
        self._fade(now)
        self.rate = min(self.rate, self._ceiling)
        if math.isinf(self.rate):
            # All went at once, so nothing is known of the limit but what came through.
            self.rate = max(1.0, self._replies / _FADE_S)
            return
        self.rate = max(_LEAST, self.rate * (_OVERSHOOT if self._searching else _CUT))
        self._searching = False

    def _fade(self, now: float) -> None:
        self._replies *= math.exp(-(now - self._counted_at) / _FADE_S)
        self._counted_at = now
