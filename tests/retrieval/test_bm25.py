"""BM25: the live index against rank-bm25, hand-worked values, and the frozen form (docs/methods.md A.3)."""

from __future__ import annotations

import json
import lzma
import math
import pickle
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from flexmem.retrieval.bm25 import Bm25, Bm25Index, Bm25Parameters, FrozenBm25, FrozenIndexError, RankBm25
from flexmem.retrieval.text import content_words

WORDS = st.sampled_from([f"w{i}" for i in range(12)])
CORPORA = st.lists(st.lists(WORDS, max_size=12), min_size=1, max_size=25)
QUERIES = st.lists(WORDS | st.just("unknown"), max_size=30)


def filled(documents: list[list[str]], index: Bm25 | RankBm25 | None = None) -> Any:
    index = Bm25() if index is None else index
    for words in documents:
        index.append(words)
    return index


# ---------------------------------------------------------------- by hand


def test_a_rare_word_by_hand() -> None:
    # Three documents of 2, 4 and 3 words: avgdl = 3. "fox" is in one of them, so idf = ln(2.5) - ln(1.5) = ln(5/3).
    # In document 0 it occurs once: norm = 1.5 * (0.25 + 0.75 * 2/3) = 1.125, score = ln(5/3) * 1 * 2.5 / (1 + 1.125).
    index = filled([["red", "fox"], ["red", "dog", "dog", "ran"], ["sun", "sets", "late"]])
    expected = math.log(5 / 3) * 2.5 / 2.125
    assert index.scores(["fox"]) == pytest.approx([expected, 0, 0], rel=1e-14)
    # A repeated query word counts each time.
    assert index.scores(["fox", "fox", "nowhere"]) == pytest.approx([2 * expected, 0, 0], rel=1e-14)


def test_a_frequent_word_takes_the_floor_by_hand() -> None:
    # "red" is in two of three documents: idf = ln(1.5) - ln(2.5) = -ln(5/3), negative. Of the seven words six have
    # +ln(5/3) and "red" has -ln(5/3): mean = 5/7 ln(5/3), and the floor is a quarter of it.
    index = filled([["red", "fox"], ["red", "dog", "dog", "ran"], ["sun", "sets", "late"]])
    floor = 0.25 * 5 / 7 * math.log(5 / 3)
    # Document 1 has 4 words: norm = 1.5 * (0.25 + 0.75 * 4/3) = 1.875.
    assert index.scores(["red"]) == pytest.approx([floor * 2.5 / 2.125, floor * 2.5 / 2.875, 0], rel=1e-14)


def test_on_two_documents_a_match_still_ranks_above_a_non_match() -> None:
    documents = [["tea", "cup"], ["tea", "cup"], ["cup"]]
    # Every word is in at least two of three documents, so the mean idf is negative and rank-bm25 punishes a match.
    assert filled(documents, RankBm25()).scores(["tea"])[0] < 0
    scores = filled(documents).scores(["tea"])
    assert scores[0] == scores[1] == pytest.approx(0.01 * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 2 / (5 / 3))))
    assert scores[2] == 0


# ---------------------------------------------------------------- the reference


def comparable(documents: list[list[str]]) -> BM25Okapi:
    """rank-bm25, where ours must equal it: its own value for words of negative idf is not below our floor."""
    assume(any(documents))
    reference = BM25Okapi(documents)
    assume(reference.epsilon * reference.average_idf >= Bm25Parameters().floor)
    return reference


@given(CORPORA, QUERIES)
def test_scores_equal_rank_bm25(documents: list[list[str]], query: list[str]) -> None:
    reference = comparable(documents).get_scores(query)
    np.testing.assert_allclose(filled(documents).scores(query), reference, rtol=1e-12, atol=1e-12)


@given(CORPORA, st.lists(WORDS, unique=True, max_size=6))
def test_scores_of_words_with_positive_idf_equal_rank_bm25_to_the_bit(
    documents: list[list[str]], query: list[str]
) -> None:
    assume(any(documents))
    rare = [word for word in query if sum(word in words for words in documents) * 2 <= len(documents)]
    assert filled(documents).scores(rare).tolist() == BM25Okapi(documents).get_scores(rare).tolist()


@given(CORPORA, QUERIES)
def test_the_reference_back_end_is_rank_bm25(documents: list[list[str]], query: list[str]) -> None:
    index = filled(documents[:-1], RankBm25())
    index.scores(query)
    index.append(documents[-1])  # after a query: it must be rebuilt
    expected = BM25Okapi(documents).get_scores(query).tolist() if any(documents) else [0.0] * len(documents)
    assert index.scores(query).tolist() == expected


def locomo(data: Path) -> list[tuple[list[str], list[str]]]:
    """For each conversation its turns as lines, and its questions other than adversarial ones."""
    with lzma.open(data / "locomo" / "locomo10.json.xz") as file:
        samples = json.load(file)
    conversations = []
    for sample in samples:
        sessions = [
            sample["conversation"].get(f"session_{number}", []) for number in range(1, len(sample["conversation"]))
        ]
        lines = [f"{turn['speaker']}: {turn['text']}\n" for session in sessions for turn in session]
        conversations.append((lines, [qa["question"] for qa in sample["qa"] if qa["category"] != 5]))
    return conversations


def test_order_and_scores_equal_rank_bm25_on_locomo(flexmem_data: Path) -> None:
    questions = 0
    for lines, asked in locomo(flexmem_data):
        documents = [content_words(line) for line in lines]
        index, reference = filled(documents), BM25Okapi(documents)
        for question in asked:
            query = content_words(question)
            ours, theirs = index.scores(query), reference.get_scores(query)
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
            # Where two pieces tie mathematically rank-bm25's rounding may tell them apart, so its scores may rise by
            # rounding along our order (they do once), and by no more.
            assert np.all(np.diff(theirs[np.argsort(-ours, kind="stable")]) < 1e-12), question
            questions += 1
    assert questions == 1_540


def test_keeping_stop_words_would_change_the_order() -> None:
    # The wrong variant: lower-cased words with stop words kept. Its best match shares "what", "did" and "the" only.
    pieces = [
        "What did the others say about the what and the did?\n",
        "Caroline painted a sunrise at the lake and framed it for her mother in the spring\n",
        "Cooking is fun\n",
        "Nothing else happened\n",
        "Trains were late\n",
    ]
    question = "What did Caroline paint at the lake? What did the"
    proper = filled([content_words(piece) for piece in pieces]).scores(content_words(question))
    kept = filled([piece.lower().replace("?", "").split() for piece in pieces]).scores(
        question.lower().replace("?", "").split()
    )
    assert proper.argmax() == 1
    assert kept.argmax() == 0


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize("make", [Bm25, RankBm25])
def test_empty_corpora_and_documents(make: Callable[[], Bm25Index]) -> None:
    index = make()
    assert index.scores(["word"]).shape == (0,)
    index.append([])
    assert index.scores(["word"]).tolist() == [0.0]  # the average length is 0
    index.append(["word", "other"])
    index.append(["more"])
    index.append(["still", "more"])
    scores = index.scores(["word", "unknown"])
    assert len(index) == 4
    assert scores.dtype == np.float64
    assert scores[1] > 0
    assert scores[[0, 2, 3]].tolist() == [0.0] * 3
    assert index.scores([]).tolist() == [0.0] * 4


@given(CORPORA, QUERIES, st.integers(0, 25))
def test_appending_after_queries_equals_building_at_once(
    documents: list[list[str]], query: list[str], cut: int
) -> None:
    index = filled(documents[:cut])
    index.scores([*query, "w0"])
    for words in documents[cut:]:
        index.append(words)
    assert index.scores(query).tolist() == filled(documents).scores(query).tolist()


def test_an_append_costs_the_same_on_a_hundred_times_the_documents() -> None:
    draw = random.Random(7)
    vocabulary = [f"w{i}" for i in range(5_000)]
    weights = [1 / (1 + rank) for rank in range(len(vocabulary))]
    documents = [draw.choices(vocabulary, weights, k=20) for _ in range(2_000)]

    def seconds_to_append(size: int) -> float:
        index = Bm25()
        for number in range(size):
            index.append(documents[number % len(documents)])
        best = math.inf
        for _ in range(5):
            start = time.perf_counter()
            for words in documents[:300]:
                index.append(words)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds_to_append(60_000) < 5 * seconds_to_append(600)


# ---------------------------------------------------------------- frozen


@given(CORPORA, QUERIES)
def test_frozen_equals_live_to_the_bit(documents: list[list[str]], query: list[str]) -> None:
    live = filled(documents)
    frozen = FrozenBm25(live.arrays())
    assert len(frozen) == len(live)
    assert frozen.scores(query).tolist() == live.scores(query).tolist()


@given(st.lists(st.lists(st.text(min_size=1, max_size=4), max_size=6), max_size=8))
def test_frozen_finds_every_word_of_any_script(documents: list[list[str]]) -> None:
    live = filled(documents)
    frozen = FrozenBm25(live.arrays())
    for word in {word for words in documents for word in words} | {"", "absent"}:
        assert frozen.scores([word]).tolist() == live.scores([word]).tolist()


def test_words_of_equal_hash_are_told_apart() -> None:
    # "plumless" and "buckeroo" have the same CRC-32.
    live = filled([["plumless", "a"], ["buckeroo"], ["c"], ["d"]])
    frozen = FrozenBm25(live.arrays())
    for word in ("plumless", "buckeroo"):
        assert frozen.scores([word]).tolist() == live.scores([word]).tolist()
    only_one = FrozenBm25(filled([["plumless"], ["c"], ["d"]]).arrays())
    assert only_one.scores(["buckeroo"]).tolist() == [0.0] * 3


def test_arrays_do_not_depend_on_the_order_in_which_words_appear() -> None:
    first, second = filled([["a", "b"], ["c"]]).arrays(), filled([["b", "a"], ["c"]]).arrays()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_a_frozen_index_works_on_read_only_arrays_and_copies_none() -> None:
    live = filled([["a", "b", "b"], ["c"], ["b"], ["d"], ["e"]], Bm25(Bm25Parameters(k1=1.2, b=0.5)))
    buffers: list[pickle.PickleBuffer] = []
    packed = pickle.dumps(live.arrays(), protocol=5, buffer_callback=buffers.append)
    arrays = pickle.loads(packed, buffers=[memoryview(bytes(buffer)) for buffer in buffers])
    assert not any(array.flags.writeable for array in arrays.values())
    frozen = FrozenBm25(arrays)
    assert frozen.parameters == live.parameters
    assert frozen.scores(["b", "d"]).tolist() == live.scores(["b", "d"]).tolist()


def test_a_frozen_index_refuses_to_grow() -> None:
    with pytest.raises(FrozenIndexError, match="append to a live Bm25"):
        FrozenBm25(filled([["a"]]).arrays()).append(["b"])
