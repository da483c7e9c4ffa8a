"""Excerpts: verbatim pieces of one unit within a limit (docs/methods.md A.6)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.contract.cases import conversations, trajectories
from flexmem.history import Unit
from flexmem.memory.excerpt import excerpt
from flexmem.memory.protocol import Resolution
from tests.memory.examples import chat, table_of, words

# Pieces p0 to p4 of 6, 5, 8, 6 and 9 tokens, header 8, gap mark 3. Order p3 p0 p4 p1 p2, limit 30:
#   p3   6 + 8 (header)            14   16 left
#   p0   6 + 3 (gap before p3)      9    7 left
#   p4   9 (next to p3)             9    does not fit
#   p1   5 (next to p0; the gap
#        before p3 remains)         5    2 left
#   p2   8 - 3 (closes the gap)     5    does not fit
# Shown are p0 p1 [...] p3: 28 tokens.
UNITS = chat([words(3), words(2), words(5), words(3), words(6)])
ORDER = [3, 0, 4, 1, 2]
TEXT = "### u00 — session 1\nAnn: red blue green\nAnn: red blue\n[...]\nAnn: red blue green\n"


def test_an_excerpt_worked_by_hand() -> None:
    table = table_of(UNITS)
    assert table.costs == [6, 5, 8, 6, 9]
    made = excerpt(table, 0, ORDER, 30, 28)
    assert made is not None
    assert (made.text, made.tokens, made.pieces) == (TEXT, 28, (0, 1, 3))
    assert (made.uids, made.resolution) == ((0,), Resolution.EXCERPT)


def test_an_excerpt_below_the_least_is_not_made() -> None:
    assert excerpt(table_of(UNITS), 0, ORDER, 30, 29) is None
    assert excerpt(table_of(UNITS), 0, ORDER, 12, 0) is None  # header 8, the smallest piece 5


@pytest.mark.parametrize("limit", [0, -5])
def test_without_room_there_is_no_excerpt(limit: int) -> None:
    assert excerpt(table_of(UNITS), 0, ORDER, limit, 0) is None


def test_where_the_joins_cost_more_than_the_sum_the_lowest_piece_is_given_up() -> None:
    """ "!" and a line break, then "/x": 1 + 1 tokens apart, 3 together."""
    units = chat(["red!\n/x blue green one two three red"], speaker=None)
    table = table_of(units, piece_tokens=8)
    assert [table.text(piece) for piece in range(len(table))] == ["user: red!\n", "/x blue green one two three red\n"]
    header = tokens.count(units[0].header)
    limit = header + sum(table.costs)
    both = units[0].text
    assert tokens.count(both) == limit + 1
    made = excerpt(table, 0, [0, 1], limit, 0)
    assert made is not None
    assert made.pieces == (0,)
    whole = excerpt(table, 0, [0, 1], limit + 1, 0)
    assert whole is not None
    assert whole.text == both


@settings(max_examples=60, deadline=None)
@given(conversations() | trajectories(), st.randoms(), st.integers(0, 300), st.integers(0, 60))
def test_an_excerpt_keeps_its_limits_and_shows_pieces_of_its_unit_in_order(
    units: list[Unit], shuffled: random.Random, limit: int, least: int
) -> None:
    table = table_of(units)
    for unit in units:
        order = [piece for piece, uid in enumerate(table.uids) if uid == unit.uid]
        own = set(order)
        shuffled.shuffle(order)
        made = excerpt(table, unit.uid, order, limit, least)
        if made is None:
            continue
        assert least <= made.tokens <= limit
        assert made.tokens == tokens.count(made.text)
        assert set(made.pieces) <= own
        assert list(made.pieces) == sorted(made.pieces)
        position = 0
        for piece in made.pieces:
            position = made.text.index(table.text(piece), position) + len(table.text(piece))
        assert made.text.startswith(unit.header)
