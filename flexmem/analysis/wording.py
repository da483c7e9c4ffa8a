"""How reports put numbers."""

from __future__ import annotations


def budget_label(budget: int) -> str:
    """``2000`` as ``2k``: 1k is 1,000 tokens."""
    return f"{budget / 1000:g}k" if budget >= 1000 and budget % 100 == 0 else str(budget)


def percent(share: float) -> str:
    """A share in %, to one decimal; 100 without any, which keeps columns narrow."""
    return f"{100 * share:.1f}".replace("100.0", "100")


def count(number: int | str, noun: str) -> str:
    """``1 question``, ``1,536 questions``."""
    figure = f"{number:,}" if isinstance(number, int) else number
    return f"{figure} {noun}" if figure == "1" else f"{figure} {noun}s"
