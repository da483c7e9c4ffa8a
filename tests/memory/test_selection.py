"""Filling a room with pieces: costs of headers and gap marks, stops, and fragments whose counts are exact."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.contract.cases import conversations, trajectories
from flexmem.history import Unit
from flexmem.memory.protocol import Resolution
from flexmem.memory.selection import GAP, PieceTable, Selection, Stop, group_fragment, selection_fragments

from .examples import chat, table_of, words

TO_THE_END = Stop(least_room=0, most_misses=10**9)


# ---------------------------------------------------------------- worked by hand

# Each turn is a piece; "Ann: ", the words and the line break are 2 + words + 1 tokens.
#
#   unit A  a0: 3 words, 6    a1: 2 words, 5    a2: 5 words, 8
#   unit B  b0: 2 words, 5    b1: 2 words, 5                        header 8, gap mark 3
#
# Order a0 b1 a2 b0 a1, room 42:
#   a0   6 + 8 (header)               = 14     28 left
#   b1   5 + 8 (header)               = 13     15 left
#   a2   8 + 3 (not next to a0)       = 11      4 left
#   b0   5 (next to b1)               =  5      does not fit: passed over
#   a1   5 - 3 (closes the gap)       =  2      2 left
# So a0 a1 a2 and b1 are shown, in 40 tokens.
UNITS = chat([words(3), words(2), words(5)], [words(2), words(2)])
A0, A1, A2, B0, B1 = range(5)
ORDER, ROOM = [A0, B1, A2, B0, A1], 42
TEXT = (
    "### u00 — session 1\nAnn: red blue green\nAnn: red blue\nAnn: red blue green one two\n"
    "### u01 — session 2\nAnn: red blue\n"
)


@dataclass(frozen=True)
class Wrong:
    """A filling that gets one thing wrong."""

    gap: int = 3
    header: int = 8
    gap_given_back: bool = True
    passes_over: bool = True

    def fill(self) -> set[int]:
        sizes, units = [6, 5, 8, 5, 5], [0, 0, 0, 1, 1]
        groups: dict[int, list[int]] = {}
        left = ROOM
        for piece in ORDER:
            group = groups.get(units[piece], [])
            grown = sorted([*group, piece])
            marks = sum(two != one + 1 for one, two in pairwise(grown))
            change = marks - sum(two != one + 1 for one, two in pairwise(group))
            if not self.gap_given_back:
                change = max(0, change)
            cost = sizes[piece] + change * self.gap + (0 if group else self.header)
            if cost <= left:
                groups[units[piece]] = grown
                left -= cost
            elif not self.passes_over:
                break
        return {piece for group in groups.values() for piece in group}


def test_the_pieces_that_fit_worked_by_hand() -> None:
    table = table_of(UNITS)
    assert [table.costs, table.header_tokens, tokens.count(GAP)] == [[6, 5, 8, 5, 5], [8, 8], 3]
    selection = Selection(table)
    selection.fill(ORDER, ROOM, TO_THE_END)
    assert selection.order == [A0, B1, A2, A1]
    assert selection.cost == 40
    assert "".join(fragment.text for fragment in selection_fragments(table, selection)) == TEXT
    assert tokens.count(TEXT) == 40


def test_with_one_token_less_than_the_gap_that_closes_needs_it_stays_open() -> None:
    table = table_of(UNITS)
    selection = Selection(table)
    selection.fill(ORDER, 39, TO_THE_END)
    (first, _) = selection_fragments(table, selection)
    assert first.text == "### u00 — session 1\nAnn: red blue green\n[...]\nAnn: red blue green one two\n"


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(Wrong(gap=0), id="gap marks not charged"),
        pytest.param(Wrong(header=0), id="headers not charged"),
        pytest.param(Wrong(gap_given_back=False), id="a closed gap not given back"),
        pytest.param(Wrong(passes_over=False), id="ends at the first piece that does not fit"),
    ],
)
def test_the_filling_example_tells_wrong_variants(wrong: Wrong) -> None:
    assert Wrong().fill() == {A0, B1, A2, A1}
    assert wrong.fill() != {A0, B1, A2, A1}


# ---------------------------------------------------------------- stops


def test_filling_ends_when_little_room_is_left() -> None:
    table = table_of(UNITS)
    selection = Selection(table)
    selection.fill([A0, A1, A2], 30, Stop(least_room=16, most_misses=10**9))
    assert selection.order == [A0, A1]  # 14, then 16 left: at the least; then 11 left: below it
    selection = Selection(table)
    selection.fill([A0, A1], 30, Stop(least_room=17, most_misses=10**9))
    assert selection.order == [A0]


def test_filling_ends_after_as_many_misses_in_a_row() -> None:
    table = table_of(chat([words(4)], [words(30)], [words(30)], [words(2)]), piece_tokens=64)
    for most, chosen in ((2, [0]), (3, [0, 3])):
        selection = Selection(table)
        selection.fill([0, 1, 2, 3], 35, Stop(least_room=0, most_misses=most))
        assert selection.order == chosen


def test_a_hit_starts_the_count_of_misses_anew() -> None:
    table = table_of(chat([words(4)], [words(40)], [words(2)], [words(40)], [words(1)]), piece_tokens=64)
    selection = Selection(table)
    selection.fill([0, 1, 2, 3, 4], 45, Stop(least_room=0, most_misses=2))
    assert selection.order == [0, 2, 4]


def test_a_piece_that_ends_inside_a_line_is_charged_the_line_break_that_it_gets() -> None:
    """A line of two sentences of 7 and 3 tokens is cut between them: header 8 + 7 + a line break are 16, not 15."""
    units = chat(["red blue green red blue. red blue."], speaker=None)
    table = table_of(units, piece_tokens=8)
    assert [table.text(piece) for piece in range(len(table))] == ["user: red blue green red blue. ", "red blue.\n"]
    first = tokens.count(table.text(0)) + 8
    for room, chosen in ((first, [1]), (first + 1, [0])):
        selection = Selection(table)
        selection.fill([0, 1], room, TO_THE_END)
        assert selection.order == chosen
        (fragment,) = selection_fragments(table, selection)
        assert fragment.tokens <= room


# ---------------------------------------------------------------- properties


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=4), st.randoms())
def test_what_a_selection_costs_is_what_its_text_counts(sizes: list[list[int]], shuffled: random.Random) -> None:
    table = table_of(chat(*([words(n) for n in session] for session in sizes)))
    order = list(range(len(table)))
    shuffled.shuffle(order)
    selection = Selection(table)
    for piece in order:
        selection.fill([piece], 10**9, TO_THE_END)
        text = "".join(fragment.text for fragment in selection_fragments(table, selection))
        assert selection.cost == tokens.count(text)
        assert selection.groups() == groups_of(table, selection.order)


def groups_of(table: PieceTable, chosen: Sequence[int]) -> dict[int, list[int]]:
    return {uid: [p for p in sorted(chosen) if table.uids[p] == uid] for uid in sorted({table.uids[p] for p in chosen})}


@settings(max_examples=60, deadline=None)
@given(conversations() | trajectories(), st.randoms(), st.integers(0, 400))
def test_fragments_of_any_text_count_exactly_and_keep_every_piece_in_order(
    units: list[Unit], shuffled: random.Random, room: int
) -> None:
    table = table_of(units)
    order = list(range(len(table)))
    shuffled.shuffle(order)
    selection = Selection(table)
    selection.fill(order, room, TO_THE_END)
    fragments = selection_fragments(table, selection)
    assert [fragment.uids[0] for fragment in fragments] == sorted(selection.groups())
    for fragment in fragments:
        assert fragment.tokens == tokens.count(fragment.text)
        assert list(fragment.pieces) == sorted(fragment.pieces)
        assert fragment.text == layout(table, fragment.uids[0], fragment.pieces)


def layout(table: PieceTable, uid: int, group: Sequence[int]) -> str:
    """docs/methods.md A.7: the unit's header line, its pieces, `[...]` on a line of its own between non-neighbours."""
    text = table.headers[uid]
    for position, piece in enumerate(group):
        if position and piece != group[position - 1] + 1:
            text += ("" if text.endswith("\n") else "\n") + "[...]\n"
        text += table.text(piece)
    return text if text.endswith("\n") else text + "\n"


@settings(max_examples=60, deadline=None)
@given(conversations().filter(bool), st.randoms())
def test_giving_up_the_last_piece_leaves_the_others(units: list[Unit], shuffled: random.Random) -> None:
    table = table_of(units)
    order = list(range(len(table)))
    shuffled.shuffle(order)
    selection = Selection(table)
    selection.fill(order, 10**9, TO_THE_END)
    for kept in range(len(order) - 1, -1, -1):
        selection.drop_last()
        fresh = Selection(table)
        fresh.fill(order[:kept], 10**9, TO_THE_END)
        assert (selection.order, selection.cost, selection.groups()) == (fresh.order, fresh.cost, fresh.groups())


def test_giving_up_a_piece_that_closed_a_gap_and_so_saved_tokens_keeps_all_others() -> None:
    table = table_of(chat(["red " * 3, "", "red " * 3], speaker=""))  # ": " and the line break: 2 tokens, a gap has 3
    assert table.costs[1] < tokens.count(GAP)
    selection = Selection(table)
    selection.fill([0, 2, 1], 10**9, TO_THE_END)
    selection.drop_last()
    assert selection.order == [0, 2]


def test_texts_that_are_not_kept_are_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexmem.memory.selection._TEXTS_KEPT", 2)
    table = table_of(UNITS)
    expected = ["Ann: red blue green\n", "Ann: red blue\n", "Ann: red blue green one two\n"] + ["Ann: red blue\n"] * 2
    for order in (range(5), reversed(range(5)), (0, 0, 3)):
        for piece in order:
            assert table.text(piece) == expected[piece]
            assert len(table.shown_texts) <= 2


def test_a_group_names_its_pieces_and_resolution() -> None:
    table = table_of(UNITS)
    fragment = group_fragment(table, 0, [A0, A2], Resolution.EXCERPT)
    assert (fragment.uids, fragment.resolution, fragment.pieces) == ((0,), Resolution.EXCERPT, (A0, A2))
    assert fragment.tokens == 8 + 6 + 3 + 8
