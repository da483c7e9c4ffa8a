"""The recent window: within a quarter of the budget, or the newest unit alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.memory.window import newest_unit_limit, window_units


@settings(deadline=None)
@given(st.lists(st.integers(0, 60), max_size=12), st.integers(1, 200))
def test_the_window_is_the_longest_newest_run_within_a_quarter_or_the_newest_unit_alone(
    sizes: list[int], total: int
) -> None:
    number = window_units(sizes, total)
    assert number == 0 if not sizes else 1 <= number <= len(sizes)
    used = sum(sizes[len(sizes) - number :])
    assert 4 * used <= total or number == 1
    if number < len(sizes):
        assert 4 * (used + sizes[-number - 1]) > total


def below_a_quarter(sizes: Sequence[int], total: int) -> int:
    """WRONG: a run of exactly B/4 is over it."""
    number = used = 0
    for size in reversed(sizes):
        used += size
        if 4 * used >= total:
            break
        number += 1
    return max(1, number)


def passing_over(sizes: Sequence[int], total: int) -> int:
    """WRONG: a unit that does not fit is left out, and older ones are still taken."""
    number = used = 0
    for size in reversed(sizes):
        if 4 * (used + size) <= total:
            used += size
            number += 1
    return max(1, number)


def empty_if_too_large(sizes: Sequence[int], total: int) -> int:
    """WRONG: a newest unit above B/4 leaves no window."""
    number = used = 0
    for size in reversed(sizes):
        used += size
        if 4 * used > total:
            break
        number += 1
    return number


# B = 100, so B/4 = 25. From the newest: 5, 5 + 8 = 13, 13 + 12 = 25, which is still within; 25 + 30 is not, and the 3
# before it is not looked at. In the second, 5 + 8 + 8 = 21, and the 4 would fit, but the window has no gaps. A newest
# unit of 40 is the window alone.
WINDOWS = {(3, 30, 12, 8, 5): 3, (4, 30, 8, 8, 5): 3, (1, 40): 1}


@pytest.mark.parametrize(("sizes", "number"), WINDOWS.items())
def test_windows_worked_by_hand(sizes: tuple[int, ...], number: int) -> None:
    assert window_units(sizes, 100) == number


@pytest.mark.parametrize("wrong", [below_a_quarter, passing_over, empty_if_too_large])
def test_the_window_examples_tell_wrong_variants(wrong: Callable[[Sequence[int], int], int]) -> None:
    assert any(wrong(sizes, 100) != number for sizes, number in WINDOWS.items())


def test_a_huge_newest_unit_leaves_the_memory_a_quarter() -> None:
    assert newest_unit_limit(4_000) == 3_000
    assert newest_unit_limit(10) == 7
