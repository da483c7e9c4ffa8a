"""A cap in USD: calls that might pass it wait for those in flight, and are refused once none could make room."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

from flexmem.llm.errors import ModelError
from flexmem.ports import Attempt


class CostCapReached(ModelError):
    """The run's cap in USD leaves no room for another call; what is in flight is let finish."""

    stops_run = True


def trail_usd(trail: Sequence[Attempt], most_usd: float | None) -> float:
    """What the requests of one call count with, in USD. One that broke off, or whose reply could not be read, may have
    been charged: it counts with ``most_usd``, the most that one request of this call can cost. One that was refused
    with a status of 400 or more, and what has no price, counts nothing.
    """
    return sum(
        attempt.usd if attempt.usd is not None else most_usd or 0.0
        for attempt in trail
        if attempt.usd is not None or attempt.status is None or attempt.status < 400
    )


class Spending:
    """What a run has spent, and what calls in flight may still cost.

    Args:
        cap_usd: the cap; None: there is none.
        spent_usd: what was spent before.
    """

    def __init__(self, cap_usd: float | None, spent_usd: float) -> None:
        self._cap = math.inf if cap_usd is None else cap_usd
        self._reserved: dict[str, float] = {}
        self._changed: asyncio.Event | None = None
        self.spent_usd = spent_usd

    def expect(self, call: str, most_usd: float | None) -> None:
        """Count a call that is in flight already."""
        self._reserved[call] = most_usd or 0.0

    async def reserve(self, call: str, most_usd: float | None) -> None:
        """Wait until the call surely fits under the cap.

        Raises:
            CostCapReached: it does not, even if all that is in flight cost nothing.
        """
        most = most_usd or 0.0
        while self.spent_usd + sum(self._reserved.values()) + most > self._cap:
            if self.spent_usd + most > self._cap:
                raise CostCapReached(
                    f"the run's cap of {self._cap:.2f} USD is reached: {self.spent_usd:.2f} USD are spent and another "
                    f"call may cost {most:.4f}. What is finished is kept; raise engine.max_usd and give the same "
                    "command to go on.",
                    attempts=0,
                )
            self._changed = self._changed or asyncio.Event()
            await self._changed.wait()
        self._reserved[call] = most

    def settle(self, call: str, usd: float | None) -> None:
        """A call has ended: what it cost. None: nobody knows, so the most that it can have cost counts."""
        reserved = self._reserved.pop(call, 0.0)
        self.spent_usd += reserved if usd is None else usd
        if self._changed is not None:
            self._changed.set()
            self._changed = None
