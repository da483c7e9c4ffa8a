"""Whole items by rank, and a cut at the room's end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.memory.filling import cut_to_room, fill_by_rank
from flexmem.memory.protocol import Resolution
from flexmem.memory.selection import Fragment
from flexmem.memory.vectors import GrowingVectors


def test_filling_worked_by_hand() -> None:
    # Room 10. Item 3 takes 6 (4 left), item 0 needs 5 and is passed over, item 2 takes 4 (0 left), item 1 needs 1.
    # A filler that stops at the first miss would take item 3 alone; one in time order 0, 1 and 2.
    sizes = {0: 5, 1: 1, 2: 4, 3: 6}
    assert fill_by_rank([3, 0, 2, 1], sizes.__getitem__, 10) == [3, 2]


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(0, 200))
def test_filling_never_takes_more_than_the_room_and_leaves_out_only_what_did_not_fit(
    sizes: list[int], room: int
) -> None:
    taken = fill_by_rank(range(len(sizes)), sizes.__getitem__, room)
    assert sum(sizes[item] for item in taken) <= room
    for item in set(range(len(sizes))) - set(taken):
        before = sum(sizes[other] for other in taken if other < item)
        assert sizes[item] > room - before


@given(st.text(max_size=200), st.integers(0, 60))
def test_a_cut_fragment_fits_and_ends_its_line(text: str, room: int) -> None:
    text = "[u00] " + text + "\n"
    fragment = Fragment(text, tokens.count(text), (0,), Resolution.NOTE, ())
    cut = cut_to_room(fragment, room)
    if cut is None:
        assert room < fragment.tokens
        return
    assert cut.tokens == tokens.count(cut.text) <= room
    assert cut.text.endswith("\n")
    assert text.startswith(cut.text.removesuffix("\n"))
    assert (cut is fragment) == (fragment.tokens <= room)


def test_vectors_grow_without_changing_what_was_handed_out() -> None:
    vectors = GrowingVectors(2)
    for number in range(40):
        vectors.append(np.array([number, 0], dtype=np.float32))
    before = vectors.array
    assert before[:, 0].tolist() == list(range(40))
    vectors.replace(3, np.array([-1, 0], dtype=np.float32))
    assert (before[3, 0], vectors.array[3, 0], len(vectors)) == (3, -1, 40)
    with pytest.raises(IndexError, match="there are 40 vectors, none at 40"):
        vectors.replace(40, np.zeros(2, dtype=np.float32))
