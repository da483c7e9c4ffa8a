"""What differs from seed to seed: every method meets the same draw of a task and seed, so pairs can be compared.

A plan is cut once for a task and seed, and is the same for every profile; thoughts and slips are drawn step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from flexmem.agents.context_bound.thoughts import thought

PAGE_SIZES = (5, 8, 10)
EYE_SHARES = (0.0, 0.5, 1.0)
SLIP = 0.1
"""The probability that a missing thing other than the first is fetched (eta)."""
_THOUGHT_SPREAD = (0.5, 1.5)

Order = Literal["read all, then act", "act as you read"]
NamingStyle = Literal["tag last", "tag first", "camel"]
ORDERS: tuple[Order, ...] = ("read all, then act", "act as you read")
STYLES: tuple[NamingStyle, ...] = ("tag last", "tag first", "camel")


@dataclass(frozen=True)
class Variation:
    """One draw.

    Attributes:
        page_size: rows a page.
        eye: the share of values that are read by eye, and not looked up by code.
        order: whether all is read before anything is done.
        pages_backward: pages are read from the last to the first.
        items_shuffled: items of a list are gone through in a random order, not in the list's.
        style: how variables are named.
    """

    task: str
    seed: int
    page_size: int
    eye: float
    order: Order
    pages_backward: bool
    items_shuffled: bool
    style: NamingStyle

    @classmethod
    def draw(cls, task: str, seed: int) -> Variation:
        """The draw of a task and seed."""
        rng = Random(f"{task}/{seed}")
        return cls(
            task=task,
            seed=seed,
            page_size=rng.choice(PAGE_SIZES),
            eye=rng.choice(EYE_SHARES),
            order=rng.choice(ORDERS),
            pages_backward=rng.random() < 0.5,
            items_shuffled=rng.random() < 0.5,
            style=rng.choice(STYLES),
        )

    def in_solution_order(self) -> Variation:
        """The same, but everything in the order of the solution."""
        return replace(self, order="act as you read", pages_backward=False, items_shuffled=False)

    def stream(self, purpose: str) -> Random:
        """Numbers for one purpose, the same in every run of this task and seed."""
        return Random(f"{self.task}/{self.seed}/{purpose}")


def pick(missing: Sequence[object], rng: Random, slip: float = SLIP) -> int:
    """Which of the missing things is fetched: the first, or now and then any."""
    if len(missing) > 1 and rng.random() < slip:
        return rng.randrange(len(missing))
    return 0


def think(words: int, rng: Random) -> str:
    """A thought of about ``words`` words, half of them to half as many again, that says nothing of the task."""
    return thought(round(words * rng.uniform(*_THOUGHT_SPREAD)), rng)
