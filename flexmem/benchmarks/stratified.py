"""Seeded samples that keep the shares of strata, the same on every machine and in every version of Python."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence


def draw(strata: Mapping[str, Sequence[str]], size: int, seed: int) -> frozenset[str]:
    """``size`` of all ids, each stratum by its share (largest remainders; of equal ones the earlier name goes first).

    Which ids of a stratum are drawn depends on the seed and the ids alone: those whose digest with the seed is least.

    Raises:
        ValueError: there are fewer ids than ``size``.
    """
    total = sum(map(len, strata.values()))
    if size > total:
        raise ValueError(f"{size} can't be drawn from {total}")
    names = sorted(strata)
    quotas = {name: size * len(strata[name]) // total for name in names}
    by_remainder = sorted(names, key=lambda name: (-(size * len(strata[name]) % total), name))
    for name in by_remainder[: size - sum(quotas.values())]:
        quotas[name] += 1
    return frozenset(key for name in names for key in _least(strata[name], quotas[name], seed))


def _least(ids: Sequence[str], number: int, seed: int) -> list[str]:
    return sorted(ids, key=lambda key: hashlib.sha256(f"{seed}/{key}".encode()).digest())[:number]
