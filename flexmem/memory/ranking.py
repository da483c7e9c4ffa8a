"""The order in which piece recovery tries pieces (docs/methods.md A.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from flexmem.memory.protocol import Query
from flexmem.ports import HistoryIndex, IntArray
from flexmem.retrieval.ordering import piece_chunks


def bm25_order(index: HistoryIndex, query: Query) -> Iterator[int]:
    """By BM25, ties by cosine, then by the earlier piece; made as far as it is asked for."""
    return each(piece_chunks(index.bm25(query.text), partial(index.cosine_at, query.vector)))


def each(chunks: Iterable[IntArray]) -> Iterator[int]:
    """The pieces of a lazily made order, one by one."""
    return chain.from_iterable(chunk.tolist() for chunk in chunks)
