"""``truncation``: the newest units without gaps, the oldest shown cut from its start (docs/methods.md B.1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.contract.cases import conversations
from flexmem.history import Unit
from flexmem.memory.protocol import Resolution
from tests.memory.examples import chat, compass_query, shown, words, written

# Turns of n words have n + 3 tokens, headers 8:
#   u0   2 words               8 + 5                    = 13
#   u1   9, 9, 4 and 2 words   8 + 12 + 12 + 7 + 5      = 44
#   u2   9 and 9 words         8 + 12 + 12              = 32
#   u3   5 words               8 + 8                    = 16
#
# Room 70. From the newest: u3, 54 left; u2, 22 left; u1 has 44 and is cut from its start: header 8, its last turn 5,
# the one before it 7, 20 in all, for the next one's 12 don't fit the 2 left. Nothing older is looked at.
UNITS = chat([words(2)], [words(9), words(9), words(4), words(2)], [words(9), words(9)], [words(5)])
ROOM = 70
TAIL = f"### u01 — session 2\nAnn: {words(4)}\nAnn: {words(2)}\n"
TEXT = TAIL + UNITS[2].text + UNITS[3].text
QUERY = compass_query("Where?", "north")


def test_truncation_worked_by_hand() -> None:
    assert [unit.tokens for unit in UNITS] == [13, 44, 32, 16]
    rendering = shown(written("truncation", UNITS), QUERY, ROOM)
    assert rendering.text == TEXT
    assert [(block.resolution, block.uids, block.tokens) for block in rendering.blocks] == [
        (Resolution.EXCERPT, (1,), 20),
        (Resolution.RAW, (2,), 32),
        (Resolution.RAW, (3,), 16),
    ]
    assert rendering.ranking == (3, 2, 1)


def whole_units_only() -> str:
    """WRONG: a unit that does not fit is left out."""
    return UNITS[2].text + UNITS[3].text


def passing_over() -> str:
    """WRONG: a unit that does not fit is left out, and older ones are still taken: u0's 13 fit the 22 left."""
    return UNITS[0].text + UNITS[2].text + UNITS[3].text


def keeping_the_start() -> str:
    """WRONG: the oldest unit keeps its beginning: header and first turn have 20 as well."""
    return f"### u01 — session 2\nAnn: {words(9)}\n" + UNITS[2].text + UNITS[3].text


def without_the_header() -> str:
    """WRONG: the header is cut away with the start."""
    return f"Ann: {words(4)}\nAnn: {words(2)}\n" + UNITS[2].text + UNITS[3].text


def oldest_first() -> str:
    """WRONG: keeps the beginning of the history: u0, u1, and of u2's 32 nothing fits the 13 left."""
    return UNITS[0].text + UNITS[1].text


@pytest.mark.parametrize("wrong", [whole_units_only, passing_over, keeping_the_start, without_the_header, oldest_first])
def test_the_truncation_example_tells_wrong_variants(wrong: Callable[[], str]) -> None:
    assert tokens.count(wrong()) <= ROOM
    assert wrong() != TEXT


def test_the_query_does_not_matter() -> None:
    build = written("truncation", UNITS)
    assert shown(build, compass_query("one", "east"), ROOM) == shown(build, QUERY, ROOM)


@settings(max_examples=60, deadline=None)
@given(conversations(), st.integers(0, 400))
def test_what_is_shown_is_the_end_of_the_history_but_for_a_header(units: list[Unit], room: int) -> None:
    rendering = shown(written("truncation", units), QUERY, room)
    history = "".join(unit.text for unit in units)
    if not rendering.blocks:
        return
    first = rendering.blocks[0]
    if first.resolution is Resolution.RAW:
        assert history.endswith(rendering.text)
        return
    unit = units[first.uids[0]]
    assert rendering.text.startswith(unit.header)
    assert history.endswith(rendering.text[len(unit.header) :])


@settings(max_examples=40, deadline=None)
@given(conversations().filter(bool), st.integers(0, 400))
def test_a_unit_is_cut_only_where_it_does_not_fit_whole(units: list[Unit], room: int) -> None:
    rendering = shown(written("truncation", units), QUERY, room)
    left = room
    fitting = 0
    for unit in reversed(units):
        if unit.tokens > left:
            break
        left -= unit.tokens
        fitting += 1
    raw = [block.uids[0] for block in rendering.blocks if block.resolution is Resolution.RAW]
    assert raw == list(range(len(units) - fitting, len(units)))
