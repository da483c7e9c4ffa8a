"""Random choices that come out alike on every machine: named streams, and nothing but `random.Random.random`.

`Random.choice` and its kin may change between Python versions; the floats of a stream seeded with a text may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A stream of choices named by ``seed``, whose parts are joined into one text. Streams of different names are
    independent, so any part of a history can be generated without what comes before it.
    """

    __slots__ = ("random",)

    def __init__(self, *seed: object) -> None:
        self.random = Random("/".join(map(str, seed))).random

    def below(self, limit: int) -> int:
        """A whole number from 0 to ``limit`` - 1."""
        return int(self.random() * limit)

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self.random() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """One of ``items``.

        Raises:
            IndexError: there are none.
        """
        return items[int(self.random() * len(items))]

    def sample(self, items: Sequence[T], size: int) -> list[T]:
        """``size`` of ``items`` at different places, in random order; all of them where there are fewer."""
        pool = list(items)
        taken = min(size, len(pool))
        for place in range(taken):
            other = place + self.below(len(pool) - place)
            pool[place], pool[other] = pool[other], pool[place]
        return pool[:taken]

    def geometric(self, mean: float, longest: int) -> int:
        """A whole number from 1 to ``longest``; before that cap it is geometric with this ``mean`` (at least 1)."""
        go_on = 1 - 1 / mean
        number = 1
        while number < longest and self.random() < go_on:
            number += 1
        return number
