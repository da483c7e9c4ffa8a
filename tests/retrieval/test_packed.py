"""Packed sequences: equal items, made anew from arrays that are shared and never copied."""

from __future__ import annotations

import gc
import pickle
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.contract.cases import conversations, trajectories
from flexmem.history import Session, Step, Turn, Unit, pack_steps, split_sessions
from flexmem.retrieval.packed import Packed, PackedUnits
from flexmem.retrieval.prefix import Prefix


def text(row: bytes) -> str:
    return row.decode()


def letters(count: int = 100) -> Packed[str]:
    return Packed([f"{number} letters".encode() for number in range(count)], text)


def test_items_are_found_by_position_from_either_end_and_in_slices() -> None:
    items = letters()
    expected = [f"{number} letters" for number in range(100)]
    assert list(items) == expected
    assert len(items) == 100
    for position in (0, 31, 32, 99, -1, -100):
        assert items[position] == expected[position]
    for part in (slice(3, 7), slice(None, None, -1), slice(90, 400), slice(5, 5), slice(-4, None, 2)):
        assert items[part] == expected[part]
    for position in (100, -101):
        with pytest.raises(IndexError):
            items[position]
    assert list(letters(0)) == []


def test_pickled_its_arrays_stay_outside_and_are_used_in_place() -> None:
    buffers: list[pickle.PickleBuffer] = []
    packed = pickle.dumps(letters(1_000), protocol=5, buffer_callback=buffers.append)
    assert len(packed) < 1_000
    shared = [memoryview(bytes(buffer)) for buffer in buffers]
    items: Packed[str] = pickle.loads(packed, buffers=shared)
    assert list(items) == list(letters(1_000))
    assert np.shares_memory(items._data, np.frombuffer(shared[0], dtype=np.uint8))


class Item:
    def __init__(self, row: bytes) -> None:
        self.row = row


def test_few_items_are_kept_and_the_array_is_let_go_at_once() -> None:
    items = Packed([bytes([number]) for number in range(100)], Item)
    assert items[7] is items[7]
    made = [weakref.ref(items[number]) for number in range(100)]
    assert sum(one() is not None for one in made) <= 40
    array = weakref.ref(items._data)
    gc.disable()
    try:
        del items
        assert array() is None
    finally:
        gc.enable()


# ---------------------------------------------------------------- units


@settings(max_examples=40, deadline=None)
@given(conversations() | trajectories())
def test_packed_units_are_the_units_to_the_letter(units: list[Unit]) -> None:
    packed = pickle.loads(pickle.dumps(PackedUnits(units)))
    assert list(packed) == units
    assert [unit.digest for unit in packed] == [unit.digest for unit in units]
    assert [unit.place for unit in packed] == [unit.place for unit in units]
    assert list(packed.texts) == [unit.text for unit in units]
    assert packed[1:] == units[1:]


@pytest.mark.parametrize("said", ["\ud800 alone", "\ud83d\ude00 two halves", "日本\u2028語", "", "\x00"])
def test_any_text_can_be_packed(said: str) -> None:
    units = pack_steps([Step(1, said, said, said)], history=f"h {said}")
    units += [
        replace(unit, uid=1) for unit in split_sessions([Session(said, (Turn(said, "user", said),), said)], history="h")
    ]
    assert list(PackedUnits(units)) == units


# ---------------------------------------------------------------- the beginning of a sequence


@settings(deadline=None)
@given(st.lists(st.integers(), max_size=20), st.integers(0, 20), st.slices(20), st.integers(-25, 25))
def test_a_prefix_is_what_a_slice_would_be(whole: list[int], length: int, part: slice, position: int) -> None:
    prefix: Prefix[int] = Prefix(lambda: whole)
    assert list(prefix) == []
    prefix.length = min(length, len(whole))
    expected = whole[: prefix.length]
    assert list(prefix) == expected
    assert len(prefix) == len(expected)
    assert prefix[part] == expected[part]
    assert list(reversed(prefix)) == expected[::-1]
    try:
        wanted = expected[position]
    except IndexError:
        with pytest.raises(IndexError):
            prefix[position]
    else:
        assert prefix[position] == wanted
