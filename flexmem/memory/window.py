"""The recent window: which units a call shows as they are (FlexA-Mem §3, App. A; docs/methods.md 0.6)."""

from __future__ import annotations

from collections.abc import Sequence

NEWEST_UNIT_SHARE = 0.75  # ours: a newest unit larger than this share of B is cut, so that memory keeps at least B/4


def window_units(unit_tokens: Sequence[int], total: int) -> int:
    """How many of the newest units form the window: the longest run within B/4, and always the newest.

    Args:
        unit_tokens: tokens of all units, oldest first; the newest may still be open.
        total: B.
    """
    used = 0
    for number, tokens in enumerate(reversed(unit_tokens)):
        used += tokens
        if used > total / 4:
            return max(1, number)
    return len(unit_tokens)


def newest_unit_limit(total: int) -> int:
    """The most tokens that the newest unit may take of B; a larger one is shown head and tail."""
    return int(NEWEST_UNIT_SHARE * total)
