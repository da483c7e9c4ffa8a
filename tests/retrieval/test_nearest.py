"""Pieces by cosine: one order, whether numpy or FAISS found its beginning, whatever contents and cosines are equal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.ports import IntArray, VectorArray
from flexmem.retrieval import dense, nearest
from flexmem.retrieval.dense import VectorStore
from flexmem.retrieval.nearest import nearest_chunks

DIMENSION = 8


def drawn(seed: int, count: int, dimension: int = DIMENSION) -> VectorArray:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    unit: VectorArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def store(vectors: VectorArray, texts: list[int]) -> VectorStore:
    """Texts whose vectors are the rows of these numbers; a number is a content."""
    filled = VectorStore(vectors.shape[1])
    for text in texts:
        filled.append(f"{text}", vectors[text])
    return filled


def by_definition(filled: VectorStore, query: VectorArray) -> list[int]:
    cosine = filled.cosine(query)
    order: IntArray = np.lexsort((np.arange(len(cosine)), -cosine))
    return order.tolist()


def flat(chunks: Iterator[IntArray]) -> list[int]:
    found = [chunk.tolist() for chunk in chunks]
    assert all(found), "a stretch is empty"
    return [index for chunk in found for index in chunk]


@st.composite
def corpora(draw: st.DrawFn) -> tuple[VectorStore, VectorArray]:
    """Texts of few contents, and contents of which many have one vector: ties of both kinds at every boundary."""
    contents = draw(st.integers(1, 60))
    different = draw(st.integers(1, contents))
    vectors = drawn(draw(st.integers(0, 9)), different)[np.arange(contents) % different]
    if draw(st.booleans()):  # few different cosines, zero among them
        vectors = np.eye(DIMENSION, dtype=np.float32)[np.arange(contents) % min(different, DIMENSION)]
    texts = draw(st.lists(st.integers(0, contents - 1), max_size=150))
    return store(vectors, texts), drawn(draw(st.integers(10, 19)), 1)[0]


@settings(max_examples=300, deadline=None)
@given(corpora(), st.integers(0, 65), st.integers(1, 70))
def test_the_order_is_that_of_all_cosines_on_either_side_of_the_threshold(
    corpus: tuple[VectorStore, VectorArray], large: int, first: int
) -> None:
    filled, query = corpus
    chunks = nearest_chunks(filled.vectors, filled.rows, query, large=large, first=first)
    assert flat(chunks) == by_definition(filled, query)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 99), st.integers(-2, 2), st.booleans())
def test_so_it_is_around_the_threshold(seed: int, beyond: int, repeated: bool) -> None:
    drawn_texts = np.random.default_rng(seed)
    count = 40 + beyond
    texts = list(range(count)) + (drawn_texts.integers(0, count, 30).tolist() if repeated else [])
    filled, query = store(drawn(seed, count), texts), drawn(seed + 1_000, 1)[0]
    assert flat(nearest_chunks(filled.vectors, filled.rows, query, large=40, first=10)) == by_definition(filled, query)


def test_texts_of_two_contents_that_are_equally_near_come_by_index_over_the_end_of_the_best() -> None:
    """Contents 0 and 1 have one vector. The best two vectors are 2's and one of theirs: texts 1 and 2 may not be parted
    from text 3, whichever of the two FAISS puts first.
    """
    vectors = np.array([[0.6, 0.8], [0.6, 0.8], [1, 0], [-1, 0]], dtype=np.float32)
    filled, query = store(vectors, [3, 0, 1, 0, 2, 1]), np.array([1, 0], dtype=np.float32)
    chunks = nearest_chunks(filled.vectors, filled.rows, query, large=0, first=2)
    assert next(chunks).tolist() == [4]
    assert flat(chunks) == [1, 2, 3, 5, 0]


def test_where_all_are_equally_near_they_come_by_index() -> None:
    vectors = np.tile(drawn(0, 1), (500, 1))
    filled = store(vectors, list(range(500)))
    assert flat(nearest_chunks(filled.vectors, filled.rows, drawn(1, 1)[0], large=0, first=16)) == list(range(500))


class Counted:
    """Stands in for a module's function and counts its calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> None:
        self.calls = 0
        self._inner = getattr(module, name)
        monkeypatch.setattr(module, name, self)

    def __call__(self, *arguments: object, **named: object) -> object:
        self.calls += 1
        return self._inner(*arguments, **named)


def test_the_best_of_a_large_corpus_come_from_faiss_and_the_others_only_if_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filled, query = store(drawn(0, 5_000, 64), list(range(5_000))), drawn(1, 1, 64)[0]
    filled.vectors.flags.writeable = False
    search, everything = Counted(monkeypatch, faiss, "knn"), Counted(monkeypatch, nearest, "spread_cosines")
    chunks = nearest_chunks(filled.vectors, filled.rows, query, large=5_000)
    best = next(chunks).tolist()
    assert (search.calls, everything.calls) == (1, 0)
    assert 200 < len(best) <= 256
    assert best + flat(chunks) == by_definition(filled, query)
    assert (search.calls, everything.calls) == (1, 1)
    flat(nearest_chunks(filled.vectors, filled.rows, query, large=5_001))
    assert (search.calls, everything.calls) == (1, 2)


def test_no_number_of_threads_changes_the_order_or_is_changed_by_it() -> None:
    filled, query = store(drawn(0, 20_000, 64), list(range(20_000))), drawn(1, 1, 64)[0]
    before = faiss.omp_get_max_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            faiss.omp_set_num_threads(threads)
            found.append(flat(nearest_chunks(filled.vectors, filled.rows, query, large=0)))
            assert faiss.omp_get_max_threads() == threads
    finally:
        faiss.omp_set_num_threads(before)
    assert found == [by_definition(filled, query)] * 3


def test_without_faiss_numpy_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    filled, query = store(drawn(0, 400), [*range(400), *range(0, 400, 3)]), drawn(1, 1)[0]
    monkeypatch.setitem(sys.modules, "faiss", None)  # as where it is not installed: importing it fails
    dense._faiss.cache_clear()
    try:
        assert flat(nearest_chunks(filled.vectors, filled.rows, query, large=0)) == by_definition(filled, query)
        assert dense._faiss() is None
    finally:
        dense._faiss.cache_clear()


PROGRAM = """
import sys
import numpy as np
from flexmem.retrieval import index, nearest
vectors = np.eye(64, dtype=np.float32)
for large in (65, 64):
    list(nearest.nearest_chunks(vectors, np.arange(64), vectors[0], large=large))
    print("faiss" in sys.modules)
"""


def test_faiss_is_loaded_for_a_large_corpus_only() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["False", "True"], done.stderr
