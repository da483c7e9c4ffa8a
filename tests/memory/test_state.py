"""Saved builds: what comes back is what was saved; everything else is refused."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given, settings

from flexmem.history import Step, Unit, pack_steps
from flexmem.memory.protocol import MethodConfig, StateError
from flexmem.memory.state import pack_state, unpack_state

from .contract import conversations, trajectories


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
