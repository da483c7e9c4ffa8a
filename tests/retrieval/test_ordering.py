"""Orders, whole and lazy, equal ``np.lexsort`` on the full arrays, however many ties there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmem.ports import FloatArray, IntArray, VectorArray
from flexmem.retrieval.fusion import ranks, reciprocal_rank_fusion
from flexmem.retrieval.ordering import cosine_chunks, order_by_cosine, order_by_score, order_pieces, piece_chunks


def reference(bm25: FloatArray, cosine: VectorArray) -> list[int]:
    order: IntArray = np.lexsort((np.arange(len(bm25)), -cosine, -bm25))
    return [int(index) for index in order]


# Few different values, so that ties of every kind are common; both zeros; scores below 0 as rank-bm25 has them.
SCORE = st.sampled_from([0.0, 0.0, 0.0, -0.0, 0.5, 1.25, 3.0, -0.75]) | st.floats(0, 20)
COSINE = st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.0, -1.0]) | st.floats(-1, 1, width=32)
PIECES = st.lists(st.tuples(SCORE, COSINE), max_size=120)
FIRST = st.integers(1, 40)


def columns(pieces: list[tuple[float, float]]) -> tuple[FloatArray, VectorArray]:
    return (
        np.array([score for score, _ in pieces], dtype=np.float64),
        np.array([cosine for _, cosine in pieces], dtype=np.float32),
    )


@given(PIECES)
def test_order_pieces_is_the_lexsort(pieces: list[tuple[float, float]]) -> None:
    bm25, cosine = columns(pieces)
    assert order_pieces(bm25, cosine).tolist() == reference(bm25, cosine)


@given(PIECES, FIRST)
def test_piece_chunks_are_the_lexsort_cut_up(pieces: list[tuple[float, float]], first: int) -> None:
    bm25, cosine = columns(pieces)
    chunks = [chunk.tolist() for chunk in piece_chunks(bm25, cosine.__getitem__, first=first)]
    assert all(chunks)
    assert [index for chunk in chunks for index in chunk] == reference(bm25, cosine)


@given(PIECES, FIRST)
def test_cosine_orders_are_the_lexsort(pieces: list[tuple[float, float]], first: int) -> None:
    _, cosine = columns(pieces)
    expected = reference(np.zeros(len(cosine)), cosine)
    assert order_by_cosine(cosine).tolist() == expected
    assert [index for chunk in cosine_chunks(cosine, first=first) for index in chunk.tolist()] == expected


@given(PIECES)
def test_order_by_score_breaks_ties_by_index(pieces: list[tuple[float, float]]) -> None:
    scores, _ = columns(pieces)
    assert order_by_score(scores).tolist() == reference(scores, np.zeros(len(scores), dtype=np.float32))


@pytest.mark.parametrize("matching", [0.0, 0.05, 1.0])
def test_thousands_of_pieces_with_ties(matching: float) -> None:
    draw = np.random.default_rng(3)
    size = 5_884
    bm25 = np.where(draw.random(size) < matching, draw.integers(1, 40, size) / 4, 0.0)
    cosine = (draw.integers(-500, 500, size) / 500).astype(np.float32)
    expected = reference(bm25, cosine)
    assert order_pieces(bm25, cosine).tolist() == expected
    chunks = list(piece_chunks(bm25, cosine.__getitem__))
    assert np.concatenate(chunks).tolist() == expected
    assert sum(map(len, chunks[:2])) < size / 2  # lazily: the first chunks are a part only


def test_ties_by_index_would_choose_another_piece() -> None:
    # The wrong variant breaks ties by index alone. No word matches, so the cosine decides: piece 2, not piece 0.
    bm25 = np.zeros(3)
    cosine = np.array([0.1, 0.2, 0.9], dtype=np.float32)
    assert order_pieces(bm25, cosine).tolist() == [2, 1, 0]
    assert next(piece_chunks(bm25, cosine.__getitem__)).tolist() == [2, 1, 0]
    assert np.argsort(-bm25, kind="stable").tolist() == [0, 1, 2]


def test_cosines_of_another_precision_are_refused() -> None:
    with pytest.raises(TypeError, match="float32"):
        order_by_cosine(np.zeros(3))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="float32"):
        list(piece_chunks(np.zeros(3), np.zeros(3).__getitem__))  # type: ignore[arg-type]


# ---------------------------------------------------------------- fusion


@given(st.permutations(range(15)))
def test_ranks_invert_an_order(order: list[int]) -> None:
    positions = ranks(np.array(order))
    assert [order[position] for position in positions] == list(range(15))


def test_fusion_by_hand() -> None:
    # Item 0 is first and last, item 1 second twice, item 2 last and first: 0 and 2 tie above 1, and 0 is earlier.
    fused = reciprocal_rank_fusion([np.array([0, 1, 2]), np.array([2, 1, 0])])
    assert fused.tolist() == [1 / 61 + 1 / 63, 1 / 62 + 1 / 62, 1 / 63 + 1 / 61]
    assert order_by_score(fused).tolist() == [0, 2, 1]


def test_pieces_may_carry_the_rank_of_their_unit() -> None:
    assert reciprocal_rank_fusion([np.array([1, 1, 0])], k=9).tolist() == [1 / 11, 1 / 11, 1 / 10]


@pytest.mark.parametrize("rankings", [[], [np.arange(3), np.arange(4)]])
def test_rankings_that_do_not_fit_are_refused(rankings: list[IntArray]) -> None:
    with pytest.raises(ValueError, match="equal length"):
        reciprocal_rank_fusion(rankings)
