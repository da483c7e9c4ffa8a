"""Pieces by cosine out of a corpus that may be large: FAISS finds the best of a large one, numpy does the rest.

The order is that of `flexmem.retrieval.ordering.cosine_chunks` on all cosines, whatever found it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flexmem.ports import IntArray, VectorArray
from flexmem.retrieval.dense import spread_cosines, top_k_exact
from flexmem.retrieval.ordering import FIRST_CHUNK, cosine_chunks, order_by_cosine

LARGE_CORPUS = 50_000
"""Vectors from which on FAISS is asked. Measured, with 384 dimensions: below 30,000 numpy is as fast or faster, from
50,000 on FAISS takes a tenth less (both wait for memory), and a process that needs no FAISS does not load it.
"""


def nearest_chunks(
    vectors: VectorArray, rows: IntArray, query: VectorArray, *, large: int = LARGE_CORPUS, first: int = FIRST_CHUNK
) -> Iterator[IntArray]:
    """The indices of ``rows`` by (-cosine, index), where text i has the vector ``vectors[rows[i]]``: consecutive
    stretches, none empty, each made when it is asked for.

    Args:
        vectors: different texts' unit vectors, shape (n, d); read in place.
        rows: shape (texts,), as `flexmem.retrieval.dense.VectorStore` has them.
        query: shape (d,), of unit length.
        large: from so many vectors on the first stretch comes from FAISS.
        first: vectors in the first stretch, about; their texts may be more.
    """
    if len(vectors) < large:
        return cosine_chunks(spread_cosines(vectors, rows, query), first=first)
    return _chunks_of_large(vectors, rows, query, first)


def _chunks_of_large(vectors: VectorArray, rows: IntArray, query: VectorArray, first: int) -> Iterator[IntArray]:
    best, cosines = top_k_exact(vectors, query, first, backend="faiss")
    if len(best) < len(vectors):
        # More vectors may be as near as the last one, and texts of theirs come before some of its own.
        certain = cosines > cosines[-1]
        best, cosines = best[certain], cosines[certain]
    if len(best):
        yield _texts_of(best, cosines, rows, len(vectors))
    everything = spread_cosines(vectors, rows, query)
    left = np.flatnonzero(everything < cosines[-1]) if len(best) else np.arange(len(rows))
    for chunk in cosine_chunks(everything[left], first=2 * first):
        yield left[chunk]


def _texts_of(best: IntArray, cosines: VectorArray, rows: IntArray, vectors: int) -> IntArray:
    """The texts of the vectors ``best``, which are in order, by (-cosine, index)."""
    if len(rows) == vectors:  # vector i is text i
        return best
    cosine_of = np.full(vectors, -np.inf, dtype=np.float32)
    cosine_of[best] = cosines
    of_texts = cosine_of[rows]
    texts = np.flatnonzero(of_texts > -np.inf)
    return texts[order_by_cosine(of_texts[texts])]
