"""The order in which pieces are tried: (-bm25, -cosine, index) (docs/methods.md A.3), whole or lazily.

A rendering looks at the first few hundred pieces of thousands, so the lazy forms sort only what is asked for. They
yield chunks of doubling size: all chunks together cost little more than one sort. Every form equals ``np.lexsort`` on
the full arrays. Scores must not be NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from flexmem.ports import FloatArray, IntArray, VectorArray

FIRST_CHUNK = 256
_WHOLE = 4  # so many first chunks of pieces are sorted at once faster than in chunks
CosineAt = Callable[[IntArray], VectorArray]
"""Cosines of the pieces of given indices, float32; an array's ``__getitem__`` is one."""

_Keys = NDArray[np.uint64]
_INDEX_BITS = np.uint64(32)
_INDEX_MASK = np.uint64(0xFFFF_FFFF)


def order_by_cosine(cosine: VectorArray) -> IntArray:
    """All indices by descending cosine, ties by index; shape (n,)."""
    return _indices(np.sort(_keys(cosine, np.arange(len(cosine)))))


def cosine_chunks(cosine: VectorArray, *, first: int = FIRST_CHUNK) -> Iterator[IntArray]:
    """`order_by_cosine`, lazily: consecutive stretches of it, the first of ``first`` indices."""
    return _cosine_chunks(cosine.__getitem__, np.arange(len(cosine)), first)


def order_by_score(scores: FloatArray) -> IntArray:
    """All indices by descending score, ties by index; shape (n,)."""
    order = np.argsort(-scores)  # not stable: several times as fast as a stable sort, and ties are few
    ordered = scores[order]
    tied = ordered[1:] == ordered[:-1]
    if tied.any():
        group = np.concatenate(([0], np.cumsum(~tied)))
        members = np.flatnonzero(np.append(tied, False) | np.insert(tied, 0, False))
        order[members] = order[members][np.lexsort((order[members], group[members]))]
    return order


def score_chunks(scores: FloatArray, *, first: int = FIRST_CHUNK) -> Iterator[IntArray]:
    """`order_by_score` of scores above 0, lazily: consecutive stretches of it, the first of about ``first`` indices.

    Raises:
        ValueError: a score is not above 0.
    """
    if len(scores) and not scores.min() > 0:
        raise ValueError("scores must be above 0 to be ordered lazily")
    return piece_chunks(scores, np.zeros(len(scores), dtype=np.float32).__getitem__, first=first)


def order_pieces(bm25: FloatArray, cosine: VectorArray, by_cosine: IntArray | None = None) -> IntArray:
    """All pieces by (-bm25, -cosine, index); shape (n,). ``by_cosine``: `order_by_cosine`, where it is known."""
    order = order_by_cosine(cosine) if by_cosine is None else by_cosine
    scores = bm25[order]
    above, level, below = order[scores > 0], order[scores == 0], order[scores < 0]
    # Most pieces score 0: they are in order already. The others' ties are left in cosine order.
    return np.concatenate((above[order_by_score(bm25[above])], level, below[order_by_score(bm25[below])]))


def piece_chunks(bm25: FloatArray, cosine: CosineAt, *, first: int = FIRST_CHUNK) -> Iterator[IntArray]:
    """`order_pieces`, lazily: consecutive stretches of it, none empty, the first of about ``first`` pieces.

    Cosines are asked for piece by piece too: where words match, a rendering needs those of the best few hundred only.
    """
    if len(bm25) <= _WHOLE * first:
        yield from _sorted_pieces(bm25, cosine, np.arange(len(bm25)))
        return
    yield from _score_chunks(bm25, cosine, np.flatnonzero(bm25 > 0), first)
    yield from _cosine_chunks(cosine, np.flatnonzero(bm25 == 0), first)
    # Only rank-bm25 scores below 0, on a few pieces (docs/methods.md A.3).
    yield from _score_chunks(bm25, cosine, np.flatnonzero(bm25 < 0), first)


def _score_chunks(bm25: FloatArray, cosine: CosineAt, indices: IntArray, size: int) -> Iterator[IntArray]:
    while len(indices) > 2 * size:
        scores = bm25[indices]
        threshold = np.partition(scores, len(scores) - size)[len(scores) - size]
        yield from _sorted_pieces(bm25, cosine, indices[scores > threshold])
        yield from _cosine_chunks(cosine, indices[scores == threshold], size)
        indices = indices[scores < threshold]
        size *= 2
    yield from _sorted_pieces(bm25, cosine, indices)


def _sorted_pieces(bm25: FloatArray, cosine: CosineAt, indices: IntArray) -> Iterator[IntArray]:
    if len(indices):
        cosines = cosine(indices)
        _check(cosines)
        yield indices[np.lexsort((-cosines, -bm25[indices]))]  # stable, so ties stay in index order


def _cosine_chunks(cosine: CosineAt, indices: IntArray, size: int) -> Iterator[IntArray]:
    if not len(indices):
        return
    keys = _keys(cosine(indices), indices)
    while len(keys) > 2 * size:
        keys = np.partition(keys, size - 1)
        yield _indices(np.sort(keys[:size]))
        keys = keys[size:]
        size *= 2
    if len(keys):
        yield _indices(np.sort(keys))


def _keys(cosine: VectorArray, indices: IntArray) -> _Keys:
    """One integer a piece, ascending as (-cosine, index): sorting integers is far faster than sorting by two keys."""
    _check(cosine)
    bits = (cosine + np.float32(0)).view(np.int32)  # + 0 makes one zero of the two
    negative = bits >> 31
    ascending = (bits ^ (negative | np.int32(-(1 << 31)))).view(np.uint32)
    return (~ascending).astype(np.uint64) << _INDEX_BITS | indices.astype(np.uint64)


def _indices(keys: _Keys) -> IntArray:
    return (keys & _INDEX_MASK).astype(np.int64)


def _check(cosine: VectorArray) -> None:
    if cosine.dtype != np.float32:
        raise TypeError(f"cosines must be float32, not {cosine.dtype}: their bits are part of the sort key")
