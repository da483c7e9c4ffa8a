"""Groups are made when they are asked for, and few are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.sweep.group_queue import GroupQueue
from flexmem.sweep.plan import Group


class Fresh:
    """Numbered groups; ``made`` counts those that were asked for."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.made = 0

    def __iter__(self) -> Iterator[Group]:
        for number in range(self.number):
            self.made += 1
            yield Group("b", "i", "a", number, f"{number}", ())


def queue_of(number: int) -> tuple[GroupQueue, Fresh]:
    fresh = Fresh(number)
    return GroupQueue(iter(fresh), number), fresh


def test_groups_are_made_one_ahead_and_counted_all() -> None:
    queue, fresh = queue_of(1_000)
    assert (len(queue), fresh.made) == (1_000, 1)
    for taken in range(1, 11):
        queue.pop()
        assert (len(queue), fresh.made) == (1_000 - taken, taken + 1)


def test_what_must_run_again_comes_last_and_an_empty_queue_says_so() -> None:
    queue, _ = queue_of(2)
    first = queue.pop()
    queue.push_again(first)
    assert not queue.again_is_next
    assert queue.pop().build == "1"
    assert queue.again_is_next
    assert (bool(queue), len(queue)) == (True, 1)
    assert queue.pop() is first
    assert (bool(queue), len(queue)) == (False, 0)
    with pytest.raises(IndexError):
        queue.pop()


def test_a_plan_of_which_every_group_fails_is_not_gathered_in_memory() -> None:
    queue, fresh = queue_of(100_000)
    for _ in range(1_000):
        queue.push_again(queue.pop())
    assert fresh.made < 50


@settings(deadline=None)
@given(st.integers(0, 40), st.lists(st.booleans(), max_size=200))
def test_every_group_is_handed_out_once_and_once_more_for_each_time_it_comes_back(
    number: int, comes_back: list[bool]
) -> None:
    queue, _ = queue_of(number)
    handed_out: Counter[str] = Counter()
    returned: Counter[str] = Counter()
    fates = iter(comes_back)
    while queue:
        group = queue.pop()
        handed_out[group.build] += 1
        if next(fates, False):
            returned[group.build] += 1
            queue.push_again(group)
    assert handed_out == Counter(map(str, range(number))) + returned
