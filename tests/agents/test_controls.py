"""The control arms: nothing, everything, the gold evidence (docs/methods.md B.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.agents.choice_controls import CHOICE_CONTROLS
from flexmem.agents.controls import CONTROLS, WITHOUT_BUDGET, ControlBuild, full_history, nothing, oracle_evidence
from flexmem.agents.evidence import EvidenceMap
from flexmem.contract.cases import conversations, services
from flexmem.contract.checks import check_rendering
from flexmem.history import Unit
from flexmem.memory.protocol import Budget, Resolution
from tests.memory.examples import chat, words


def built(units: Sequence[Unit]) -> ControlBuild:
    build = ControlBuild(services())

    async def write() -> None:
        for unit in units:
            await build.write(unit)

    asyncio.run(write())
    return build


def test_each_control_is_described() -> None:
    assert set(CONTROLS) == {"no_memory", "full_history", "oracle_evidence", *CHOICE_CONTROLS}
    assert set(CONTROLS) - WITHOUT_BUDGET == {"oracle_evidence"}


def test_no_memory_shows_nothing() -> None:
    assert (nothing().text, nothing().tokens, nothing().blocks) == ("", 0, ())


@settings(max_examples=30, deadline=None)
@given(conversations())
def test_full_history_shows_every_unit_whole(units: list[Unit]) -> None:
    build = built(units)
    rendering = full_history(build)
    assert rendering.text == "".join(unit.text for unit in units)
    check_rendering(rendering, Budget(10**9), units, build.pieces)
    assert {block.resolution for block in rendering.blocks} <= {Resolution.RAW}
    assert rendering.shown_pieces() == set(range(len(build.pieces)))


# Turns of 3, 2, 5, 2 and 2 words are pieces of 6, 5, 8, 5 and 5 tokens; header 8, gap mark 3. Evidence: D1:3, D1:1 and
# D2:2. In time order: D1:1 6 + 8 = 14; D1:3 8 + 3 = 11, 25 in all; D2:2 5 + 8 = 13, 38 in all.
UNITS = chat([words(3), words(2), words(5)], [words(2), words(2)])
FIRST = f"### u00 — session 1\nAnn: {words(3)}\n"
SECOND = FIRST + f"[...]\nAnn: {words(5)}\n"
THIRD = SECOND + f"### u01 — session 2\nAnn: {words(2)}\n"


LAST = f"### u01 — session 2\nAnn: {words(2)}\n"


@pytest.mark.parametrize(
    ("room", "text"),
    [
        (38, THIRD),
        (37, SECOND),
        (25, SECOND),
        (24, FIRST),  # 10 are left: neither 11 nor 13
        (27, SECOND),
        (14, FIRST),
        (13, LAST),  # what does not fit is passed over
        (12, ""),
        (0, ""),
    ],
)
def test_the_oracle_shows_evidence_turns_earlier_ones_first_while_they_fit(room: int, text: str) -> None:
    build = built(UNITS)
    places = EvidenceMap(UNITS, build.pieces)
    rendering = oracle_evidence(build, places, ["D1:3", "D1:1", "D2:2"], room)
    assert rendering.text == text
    assert places.by_provenance(["D1:1", "D1:3", "D2:2"], rendering.shown_pieces()).visible == text.count("Ann")


def test_an_oracle_with_room_shows_all_evidence_and_nothing_else() -> None:
    build = built(UNITS)
    places = EvidenceMap(UNITS, build.pieces)
    rendering = oracle_evidence(build, places, ["D1:2", "D1:2"], 10**6)
    assert rendering.text == f"### u00 — session 1\nAnn: {words(2)}\n"
    assert places.by_provenance(["D1:2"], rendering.shown_pieces()).all
    assert oracle_evidence(build, places, [], 100).text == ""


def test_where_the_joins_cost_more_than_the_sum_the_oracle_stays_within_its_room() -> None:
    """ "!" and a line break, then "/x": 1 + 1 tokens apart, 3 together; two lines of one turn, a piece each."""
    long = words(126)
    units = chat([f"{long}!\n/x {long}"], speaker=None)
    build = built(units)
    pieces = build.pieces
    assert [piece.content[:2] for piece in pieces] == ["re", "/x"]
    room = tokens.count(units[0].header) + sum(piece.tokens for piece in pieces)
    assert tokens.count(units[0].text) == room + 1
    rendering = oracle_evidence(build, EvidenceMap(units, pieces), ["D1:1"], room)
    assert rendering.tokens <= room
    assert rendering.shown_pieces() == {0}


@settings(max_examples=40, deadline=None)
@given(conversations(), st.sets(st.integers(0, 20)), st.integers(0, 400))
def test_the_oracle_keeps_its_room_on_any_history(units: list[Unit], positions: set[int], room: int) -> None:
    build = built(units)
    turns = [block.source for unit in units for block in unit.blocks]
    evidence = [turns[position] for position in positions if position < len(turns)]
    places = EvidenceMap(units, build.pieces)
    rendering = oracle_evidence(build, places, evidence, room)
    check_rendering(rendering, Budget(room), units, build.pieces)
    assert rendering.shown_pieces() <= {piece for turn_id in evidence for piece in places.pieces_of(turn_id)}
