"""Exact cosine search: equal texts, equal rows and both back-ends agree to the bit."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.ports import VectorArray
from flexmem.retrieval.dense import GrowingArray, VectorStore, inner_products, top_k_exact


def unit_vectors(count: int, dimension: int = 24, seed: int = 0) -> VectorArray:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    normalised: VectorArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return normalised


def test_a_row_depends_on_nothing_but_itself() -> None:
    vectors = unit_vectors(701, 384)
    query = unit_vectors(1, 384, seed=1)[0]
    whole = inner_products(vectors, query)
    np.testing.assert_allclose(whole, vectors @ query, atol=1e-6)
    for start, end in ((0, 1), (1, 2), (3, 700), (5, 12), (700, 701)):
        assert np.array_equal(inner_products(vectors[start:end], query), whole[start:end])
    assert np.array_equal(inner_products(vectors[::-1], query), whole[::-1])


def test_a_query_of_another_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(3,\).*\(2, 4\)"):
        inner_products(np.zeros((2, 4), dtype=np.float32), np.zeros(3, dtype=np.float32))


# ---------------------------------------------------------------- the store


@given(st.lists(st.integers(0, 9), max_size=200))
def test_equal_texts_have_equal_cosines(texts: list[int]) -> None:
    vectors = unit_vectors(10)
    query = unit_vectors(1, seed=1)[0]
    store = VectorStore(24)
    for text in texts:
        store.append(f"text {text}", vectors[text])
    cosines = store.cosine(query)
    assert cosines.dtype == np.float32
    assert np.array_equal(cosines, inner_products(vectors, query)[texts])
    assert len(store.vectors) == len(set(texts))
    assert len(store) == len(texts)


def test_a_known_text_needs_no_vector_and_the_first_one_counts() -> None:
    store = VectorStore(2)
    store.append("a", np.array([1, 0], dtype=np.float32))
    store.append("a")
    store.append("a", np.array([0, 1], dtype=np.float32))
    assert "a" in store
    assert store.cosine(np.array([1, 0], dtype=np.float32)).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(KeyError, match="'b'"):
        store.append("b")
    with pytest.raises(ValueError, match="dimension 2"):
        store.append("b", np.zeros(3, dtype=np.float32))
    assert len(store) == 3


def test_a_view_stays_what_it_was_while_the_array_grows() -> None:
    array = GrowingArray(np.int64, (2,))
    array.extend([[1, 2]])
    view = array.view
    for number in range(1_000):
        array.extend([[number, number]])
    assert view.tolist() == [[1, 2]]
    assert array.view[-1].tolist() == [999, 999]
    assert not array.view.flags.writeable
    array.extend([])
    assert len(array) == 1_001


def test_growing_moves_each_row_a_bounded_number_of_times() -> None:
    array = GrowingArray(np.int64)
    moved, start = 0, array.view.ctypes.data
    for number in range(20_000):
        array.extend(number)
        if array.view.ctypes.data != start:
            moved, start = moved + number, array.view.ctypes.data
    assert moved <= 2 * 20_000


# ---------------------------------------------------------------- the k best


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=300), st.integers(0, 60), st.integers(0, 5))
def test_back_ends_agree_and_ties_go_to_the_lower_index(copies: list[int], k: int, seed: int) -> None:
    vectors = unit_vectors(31)[copies]
    query = unit_vectors(1, seed=seed)[0]
    cosines = inner_products(vectors, query)
    expected = np.lexsort((np.arange(len(vectors)), -cosines))[:k]
    backends: tuple[Literal["numpy", "faiss"], ...] = ("numpy", "faiss")
    for backend in backends:
        ids, best = top_k_exact(vectors, query, k, backend=backend)
        assert ids.tolist() == expected.tolist(), backend
        assert np.array_equal(best, cosines[expected])


def test_faiss_reads_a_large_read_only_matrix() -> None:
    vectors = unit_vectors(20_000, 64)
    vectors.flags.writeable = False
    query = unit_vectors(1, 64, seed=1)[0]
    by_faiss, by_numpy = (top_k_exact(vectors, query, 50, backend=backend) for backend in ("faiss", "numpy"))
    assert np.array_equal(by_faiss[0], by_numpy[0])
    assert np.array_equal(by_faiss[1], by_numpy[1])


def test_nothing_is_asked_or_held() -> None:
    query = unit_vectors(1)[0]
    assert top_k_exact(np.empty((0, 24), dtype=np.float32), query, 5)[0].tolist() == []
    assert top_k_exact(unit_vectors(3), query, 0, backend="faiss")[0].tolist() == []
    assert len(top_k_exact(unit_vectors(3), query, 99, backend="faiss")[0]) == 3
