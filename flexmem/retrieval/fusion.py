"""Reciprocal rank fusion (docs/methods.md A.12): one order out of several rankings of the same pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexmem.ports import FloatArray, IntArray

RRF_K = 60


def ranks(order: IntArray) -> IntArray:
    """The rank of each item, from 0, given all items in order; shape (n,)."""
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = np.arange(len(order))
    return positions


def reciprocal_rank_fusion(rankings: Sequence[IntArray], *, k: int = RRF_K) -> FloatArray:
    """The sum of 1 / (k + 1 + rank) over ``rankings``, each the items' ranks from 0; shape (n,), higher is better.

    A ranking need not be a permutation: pieces may carry their unit's rank. Rank with
    `flexmem.retrieval.ordering.order_by_score`, which breaks ties by index.

    Raises:
        ValueError: no ranking is given, or their lengths differ.
    """
    if not rankings or len({len(ranking) for ranking in rankings}) > 1:
        raise ValueError(f"fusion needs rankings of equal length, not {[len(ranking) for ranking in rankings]}")
    fused = np.zeros(len(rankings[0]))
    for ranking in rankings:
        fused += 1.0 / (k + 1 + ranking)
    return fused
