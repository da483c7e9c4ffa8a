"""Saved builds: what comes back is what was saved; everything else is refused."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
import zlib
from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings

from flexmem.contract.cases import conversations, trajectories
from flexmem.history import Step, Unit, pack_steps
from flexmem.memory.protocol import MethodConfig, StateError
from flexmem.memory.state import pack_state, unpack_state


class Config(MethodConfig):
    size: int = 3


class OtherConfig(MethodConfig):
    size: int = 3
    more: int = 1


@settings(max_examples=40, deadline=None)
@given(conversations() | trajectories())
def test_units_come_back_to_the_letter(units: list[Unit]) -> None:
    read, extra = unpack_state(pack_state("family", Config(), units, {"x": [1, "\ud800"]}), "family", Config())
    found = list(read)
    assert found == units
    assert [unit.digest for unit in found] == [unit.digest for unit in units]
    assert extra == {"x": [1, "\ud800"]}


def test_two_halves_of_a_character_stay_two() -> None:
    units = pack_steps([Step(1, "a", "x \ud83d\ude00 y")], history="h")
    assert len("\ud83d\ude00") == 2
    found, _ = unpack_state(pack_state("family", Config(), units, {}), "family", Config())
    assert list(found) == units


def test_a_state_of_the_format_before_can_be_read() -> None:
    units = pack_steps([Step(n, f"act {n}", "x \ud800 \ud83d\ude00\n" * n) for n in range(1, 9)], history="h", limit=60)
    content = {"format": 1, "family": "f", "config": {"size": 3}, "extra": {"x": 1}, "units": list(map(asdict, units))}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    found, extra = unpack_state(zlib.compress(text.encode("utf-8", "surrogatepass")), "f", Config())
    assert (list(found), extra) == (units, {"x": 1})


def many_units(number: int = 400) -> Iterator[Unit]:
    """Units of 10,000 characters that don't compress, each made when it is asked for."""
    for uid in range(number):
        drawn = hashlib.shake_128(str(uid).encode()).hexdigest(5_000)
        (unit,) = pack_steps([Step(1, drawn, "")], history="h")
        yield replace(unit, uid=uid)


def test_neither_writing_nor_reading_holds_all_units() -> None:
    characters = sum(len(unit.text) for unit in many_units())
    tracemalloc.start()
    try:
        state = pack_state("f", Config(), many_units(), {})
        written = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        found, _ = unpack_state(state, "f", Config())
        assert sum(len(unit.text) for unit in found) == characters
        read = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Hexadecimal digits compress to a little more than half: twice that while the parts of the state are joined.
    assert written < 1.4 * characters
    assert read - len(state) < 0.3 * characters


@pytest.mark.parametrize("damage", ["cut", "changed", "longer"])
def test_no_unit_of_a_damaged_state_is_given_out(damage: str) -> None:
    state = pack_state("f", Config(), many_units(40), {})
    middle = len(state) // 2
    damaged = {
        "cut": state[:middle],
        "changed": state[:middle] + bytes([state[middle] ^ 1]) + state[middle + 1 :],
        "longer": state + b"more",
    }
    with pytest.raises(StateError, match="damaged"):
        unpack_state(damaged[damage], "f", Config())


def test_equal_builds_have_equal_states() -> None:
    assert pack_state("f", Config(), [], {"a": 1, "b": 2}) == pack_state("f", Config(), [], {"b": 2, "a": 1})


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (b"", "damaged"),
        (b"not compressed", "damaged"),
        (zlib.compress(b"not JSON"), "damaged"),
        (zlib.compress(b"\xff\xfe"), "damaged"),
        (zlib.compress(b"[]"), "damaged"),
        (zlib.compress(json.dumps({"format": 1}).encode()), "damaged"),
        (zlib.compress(json.dumps({"format": 1, "family": "family", "config": {}}).encode()), "lacks extra, units"),
        (zlib.compress(json.dumps({"format": 0, "family": "family"}).encode()), "format 0"),
        (pack_state("other", Config(), [], {}), "'other'"),
        (pack_state("family", Config(size=4), [], {}), "another configuration: size"),
        (pack_state("family", OtherConfig(), [], {}), "another configuration: other fields"),
        (pack_state("family", MethodConfig(), [], {}), "another configuration: size"),
    ],
)
def test_other_states_are_refused_with_the_reason(state: bytes, said: str) -> None:
    with pytest.raises(StateError, match=said):
        unpack_state(state, "family", Config())
