"""Exact cosine search over unit vectors: a store that grows, and the k best of a large shared matrix.

Cosines are computed so that a row's value depends on nothing but the row and the query. A BLAS product does not give
that: the last bit of a row changes with the row's position and with the number of threads, which would let two runs of
one experiment rank near-ties differently.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from flexmem.ports import IntArray, VectorArray
from flexmem.retrieval.ordering import cosine_chunks

_FIRST_CAPACITY = 64
_FAISS_SPARE = 32


def inner_products(vectors: VectorArray, query: VectorArray) -> VectorArray:
    """``vectors @ query`` for (n, d) and (d,), shape (n,), float32; equal rows have equal products, bit for bit.

    Raises:
        ValueError: the shapes don't fit.
    """
    if vectors.ndim != 2 or query.shape != vectors.shape[1:]:
        raise ValueError(f"a query of shape {query.shape} can't be compared with vectors of shape {vectors.shape}")
    products: VectorArray = np.vecdot(vectors, query.astype(np.float32, copy=False))
    return products


class GrowingArray:
    """A numpy array that grows along its first axis at amortised cost. A `view` stays valid, and unchanged, while the
    array grows on.
    """

    def __init__(self, dtype: DTypeLike, row_shape: tuple[int, ...] = ()) -> None:
        self._buffer: NDArray[Any] = np.empty((_FIRST_CAPACITY, *row_shape), dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, rows: ArrayLike) -> None:
        """Add rows of shape (m, *row_shape)."""
        rows = np.asarray(rows, dtype=self._buffer.dtype).reshape(-1, *self._buffer.shape[1:])
        needed = self._length + len(rows)
        if needed > len(self._buffer):
            grown = np.empty((max(needed, 2 * len(self._buffer)), *self._buffer.shape[1:]), dtype=self._buffer.dtype)
            grown[: self._length] = self.view
            self._buffer = grown
        self._buffer[self._length : needed] = rows
        self._length = needed

    @property
    def view(self) -> NDArray[Any]:
        """All rows, read-only, not copied."""
        rows = self._buffer[: self._length]
        rows.flags.writeable = False
        return rows


class VectorStore:
    """Unit vectors of texts in order of appending. Equal texts share one vector, so their cosines are equal."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._vectors = GrowingArray(np.float32, (dimension,))
        self._rows = GrowingArray(np.int64)
        self._row_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, text: str) -> bool:
        return text in self._row_of

    def append(self, text: str, vector: VectorArray | None = None) -> None:
        """Add the next text; its vector is needed, and looked at, only where an equal text is not in the store.

        Raises:
            KeyError: the text is new and has no vector.
            ValueError: the vector is not of the store's dimension.
        """
        row = self._row_of.get(text)
        if row is None:
            if vector is None:
                raise KeyError(f"no vector for a new text: {text[:80]!r}")
            if vector.shape != (self._dimension,):
                raise ValueError(f"a vector of shape {vector.shape} can't join ones of dimension {self._dimension}")
            row = self._row_of[text] = len(self._vectors)
            self._vectors.extend(vector)
        self._rows.extend(row)

    @property
    def vectors(self) -> VectorArray:
        """One row for each different text, in order of first appearance; read-only."""
        return self._vectors.view

    @property
    def rows(self) -> IntArray:
        """For each text appended, its row in `vectors`; read-only."""
        return self._rows.view

    def cosine_at(self, query: VectorArray, texts: IntArray) -> VectorArray:
        """`cosine` of the texts of given indices only, shape (len(texts),), equal to the bit."""
        return cosines_at(self.vectors, self.rows, query, texts)

    def cosine(self, query: VectorArray) -> VectorArray:
        """Cosines of all texts appended, shape (n,), float32."""
        return spread_cosines(self.vectors, self.rows, query)


def spread_cosines(vectors: VectorArray, rows: IntArray, query: VectorArray) -> VectorArray:
    """Cosines of the texts whose vectors are ``vectors[rows]``, shape (len(rows),); each vector is used once."""
    cosines = inner_products(vectors, query)
    # Rows are numbered by first appearance: as many rows as texts means that row i is text i.
    return cosines if len(rows) == len(vectors) else cosines[rows]


def cosines_at(vectors: VectorArray, rows: IntArray, query: VectorArray, texts: IntArray) -> VectorArray:
    """`spread_cosines` of the texts of given indices only, shape (len(texts),), equal to the bit."""
    if 2 * len(texts) > len(rows):  # gathering most rows costs more than using all in place
        return spread_cosines(vectors, rows, query)[texts]
    return inner_products(vectors[rows[texts]], query)


def top_k_exact(
    vectors: VectorArray, query: VectorArray, k: int, *, backend: Literal["numpy", "faiss"] = "numpy"
) -> tuple[IntArray, VectorArray]:
    """The k rows of (n, d) unit ``vectors`` with the largest cosines to a (d,) unit ``query``, best first, ties by
    index: ids and cosines, each of shape (min(k, n),). Exact, and equal for both back-ends.

    ``faiss`` reads the matrix in place, read-only ones too, and pays for large ones. It comes with the extra ``sweep``;
    where it is not installed numpy takes its place, since the results are the same.
    """
    k = min(k, len(vectors))
    if k <= 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    if backend == "faiss" and (best := _faiss_top_k(vectors, query, k)) is not None:
        return best
    return _best(np.arange(len(vectors)), inner_products(vectors, query), k)


def _faiss_top_k(vectors: VectorArray, query: VectorArray, k: int) -> tuple[IntArray, VectorArray] | None:
    """As `top_k_exact`; None where rounding leaves open which rows are the best, and without FAISS."""
    faiss = _faiss()
    if faiss is None:
        return None
    wanted = min(len(vectors), 2 * k + _FAISS_SPARE)
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # one query is bound by memory: more threads make it no faster, and others need them
    try:
        scores, ids = faiss.knn(query[None].astype(np.float32, copy=False), vectors, wanted, faiss.METRIC_INNER_PRODUCT)
    finally:
        faiss.omp_set_num_threads(threads)
    candidates = np.sort(ids[0])
    best = _best(candidates, inner_products(vectors[candidates], query), k)
    # faiss rounds in its own way: a row that it left out may be better by the error of two float32 sums of d products.
    slack = 2 * vectors.shape[1] * float(np.finfo(np.float32).eps)
    if wanted < len(vectors) and best[1][-1] <= scores[0, -1] + slack:
        return None
    return best


@cache
def _faiss() -> Any:
    """FAISS, loaded when it is first needed: it takes memory and time. None where it is not installed."""
    try:
        import faiss
    except ImportError:
        return None
    return faiss


def _best(ids: IntArray, cosines: VectorArray, k: int) -> tuple[IntArray, VectorArray]:
    positions = next(cosine_chunks(cosines, first=k))[:k]
    return ids[positions], cosines[positions]
