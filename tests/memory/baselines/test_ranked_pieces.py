"""Methods that rank pieces: BM25, cosine, both fused (docs/methods.md A.3, B.1)."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from flexmem.memory.protocol import Resolution
from flexmem.retrieval.text import content_words
from tests.memory.examples import chat, compass_query, shown, words, written

# Five turns of one unit, each a piece. Question: "What is the colour of the kettle?"; its vector points north.
#
#   p0  the kettle is red                    kettle                    7 tokens
#   p1  what is the time of the day          no content word           10
#   p2  the colour of the kettle is red      colour, kettle            10
#   p3  we sang north                        no word; cosine 1         6
#   p4  we sang                              no word; cosine 0         5
#
# Content words of the question: colour, kettle. Of five pieces two have kettle: idf ln 3.5 - ln 2.5 = 0.34; one has
# colour: ln 4.5 - ln 1.5 = 1.10. So p2 scores most, then p0. The others score 0: p3 by its cosine, then p1 and p4,
# which tie in that too, by their places.
TURNS = [
    "the kettle is red",
    "what is the time of the day",
    "the colour of the kettle is red",
    "we sang north",
    "we sang",
]
UNITS = chat(TURNS)
QUERY = compass_query("What is the colour of the kettle?", "north")
ORDER = [2, 0, 3, 1, 4]
COSINES = [0, 0, 0, 1, 0]


def okapi(split: Callable[[str], list[str]]) -> list[float]:
    """docs/methods.md A.3's formula, over words as ``split`` has them."""
    documents = [split(f"Ann: {turn}") for turn in TURNS]
    mean = sum(map(len, documents)) / len(documents)
    vocabulary = {word for document in documents for word in document}
    holding = {word: sum(word in document for document in documents) for word in vocabulary}
    idf = {word: math.log(5 - n + 0.5) - math.log(n + 0.5) for word, n in holding.items()}
    floor = max(0.01, 0.25 * sum(idf.values()) / len(idf))
    scores = []
    for document in documents:
        score = 0.0
        for word in split(QUERY.text):
            if word in vocabulary:
                f = document.count(word)
                weight = idf[word] if idf[word] >= 0 else floor
                score += weight * f * 2.5 / (f + 1.5 * (0.25 + 0.75 * len(document) / mean))
        scores.append(score)
    return scores


def ranked(scores: list[float], ties: list[int]) -> list[int]:
    return sorted(range(5), key=lambda p: (-scores[p], -ties[p], p))


def with_stop_words(text: str) -> list[str]:
    return text.lower().replace(":", "").replace("?", "").split()


def test_the_order_of_pieces_worked_by_hand() -> None:
    rendering = shown(written("piece_retrieval", UNITS, least_room=0), QUERY, 100)
    assert list(rendering.ranking) == ORDER
    assert ranked(okapi(content_words), COSINES) == ORDER


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(lambda: ranked(okapi(with_stop_words), COSINES), id="stop words kept"),
        pytest.param(lambda: ranked(okapi(content_words), [0] * 5), id="ties by index instead of cosine"),
        pytest.param(lambda: ranked([0.0] * 5, COSINES), id="by cosine alone"),
        pytest.param(lambda: ranked(okapi(content_words), [-c for c in COSINES]), id="ties by the lowest cosine"),
    ],
)
def test_the_order_example_tells_wrong_variants(order: Callable[[], list[int]]) -> None:
    assert order() != ORDER


def test_the_room_is_filled_in_that_order_and_shown_in_time_order() -> None:
    """Room 36: p2 10 + 8 = 18, 18 left; p0 7 + 3 = 10, 8 left; p3 6, next to p2, 2 left. Nothing else fits."""
    rendering = shown(written("piece_retrieval", UNITS, least_room=0), QUERY, 36)
    assert rendering.text == (
        "### u00 — session 1\nAnn: the kettle is red\n[...]\nAnn: the colour of the kettle is red\nAnn: we sang north\n"
    )
    assert rendering.tokens == 34
    assert {block.resolution for block in rendering.blocks} == {Resolution.PIECE}
    # By default the search ends with less than 20 tokens left, here after the first piece.
    assert shown(written("piece_retrieval", UNITS), QUERY, 36).ranking == (2,)


# ---------------------------------------------------------------- by cosine

COMPASS = chat(["east", "north east", "calm", "north", "north"])


def test_dense_pieces_go_by_cosine_and_then_by_place_whatever_the_words() -> None:
    """Cosines with north: 0, 0.71, 0, 1, 1."""
    query = compass_query("east east calm", "north")
    assert shown(written("dense_pieces", COMPASS, least_room=0), query, 100).ranking == (3, 4, 1, 0, 2)


# ---------------------------------------------------------------- fused

# Question "red", vector north. Ranks from 0 by BM25, ties by cosine, then place; and by cosine, then place:
#
#   piece                     BM25    cosine   fused
#   p0  red east               0        2      1/61 + 1/63 = 0.032266
#   p1  blue north east        2        1      1/63 + 1/62 = 0.032002
#   p2  north                  1        0      1/62 + 1/61 = 0.032522
#   p3  green                  3        3      1/64 + 1/64 = 0.031250
FUSED = chat(["red east", "blue north east", "north", "green"])


@pytest.mark.parametrize("name", ["hybrid_pieces", "hybrid_pieces_stem"])
def test_reciprocal_rank_fusion_worked_by_hand(name: str) -> None:
    query = compass_query("red", "north")
    assert 1 / 62 + 1 / 61 > 1 / 61 + 1 / 63 > 1 / 63 + 1 / 62
    assert shown(written(name, FUSED, least_room=0), query, 100).ranking == (2, 0, 1, 3)
    assert shown(written("piece_retrieval", FUSED, least_room=0), query, 100).ranking == (0, 2, 1, 3)
    assert shown(written("dense_pieces", FUSED, least_room=0), query, 100).ranking == (2, 1, 0, 3)


def test_the_fusion_example_tells_ties_by_index() -> None:
    """WRONG: words' ties by place. p1 has rank 1, 1/62 + 1/62; p2 rank 2, 1/63 + 1/61, as p0, which goes before it."""
    fused = [1 / 61 + 1 / 63, 1 / 62 + 1 / 62, 1 / 63 + 1 / 61, 1 / 64 + 1 / 64]
    assert sorted(range(4), key=lambda p: (-fused[p], p)) == [0, 2, 1, 3]


def test_equal_fused_ranks_go_to_the_earlier_piece() -> None:
    """p0 is first by words and second by cosine, p1 the other way round."""
    units = chat(["red north east", "north", "calm", "calm"])
    rendering = shown(written("hybrid_pieces", units, least_room=0), compass_query("red", "north"), 100)
    assert rendering.ranking == (0, 1, 2, 3)


def test_only_the_stemmed_variant_matches_other_forms_of_a_word() -> None:
    """All have cosine 0, so by cosine they rank as they stand. Without stems no word matches and that is the order.
    With stems p4 is first by words: 1/61 + 1/65 = 0.0318, behind p0's 1/62 + 1/61 and p1's 1/63 + 1/62 = 0.0320, before
    p2's 1/64 + 1/63 = 0.0315.
    """
    units = chat(["calm", "calm", "calm", "calm", "she painted kettles"])
    query = compass_query("painting a kettle", "north")
    assert shown(written("hybrid_pieces", units, least_room=0), query, 100).ranking == (0, 1, 2, 3, 4)
    assert shown(written("hybrid_pieces_stem", units, least_room=0), query, 100).ranking == (0, 1, 4, 2, 3)


# ---------------------------------------------------------------- whole units

# Cosines with north: u0 0.71, u1 1, u2 0, u3 0.71. Tokens: turns of n words n + 3, headers 8.
#   u0  22 words  33     u1  29 words  40     u2  9 words  20     u3  12 words  23
# Room 85: u1 40, 45 left; u0 33, 12 left; u3 23 does not fit; u2 20 does not fit. Room 84: the same. Room 66: u1 40,
# 26 left; u0 33 does not fit; u3 23, 3 left. Shown in time order.
DENSE = chat(["north east " + words(20)], ["north " + words(28)], ["calm " + words(8)], ["north east " + words(10)])


@pytest.mark.parametrize(("room", "uids"), [(85, [0, 1]), (66, [1, 3]), (25, [3]), (19, []), (116, [0, 1, 2, 3])])
def test_dense_units_fill_by_rank_passing_over_what_does_not_fit(room: int, uids: list[int]) -> None:
    rendering = shown(written("dense_units", DENSE), compass_query("Where?", "north"), room)
    assert [unit.tokens for unit in DENSE] == [33, 40, 20, 23]
    assert [block.uids[0] for block in rendering.blocks] == uids
    assert rendering.text == "".join(DENSE[uid].text for uid in uids)
    assert rendering.ranking == (1, 0, 3, 2)
    assert {block.resolution for block in rendering.blocks} <= {Resolution.RAW}
