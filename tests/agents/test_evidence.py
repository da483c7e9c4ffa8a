"""Evidence visibility: by provenance, by text, in part, by rank (docs/methods.md E.6, E.6b)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.agents.evidence import EvidenceMap, Visibility, squeeze
from flexmem.contract.cases import WordEmbedder, services
from flexmem.history import Session, Turn, Unit, cut_pieces, split_sessions
from flexmem.memory.assemble import assemble
from flexmem.memory.protocol import Budget, MemoryBuild, Query, Rendering, Resolution
from flexmem.memory.registry import find_method
from flexmem.memory.selection import Fragment

METHODS = ("flexa_unit", "flexa_piece", "flexa_unit.keep_record", "truncation", "piece_retrieval", "dense_units")


def talk(seed: int, number: int = 24) -> list[Unit]:
    """Turns of one to three hundred words, each beginning and ending with a word of its own."""
    drawn = random.Random(seed)
    turns = []
    for n in range(number):
        said = " ".join(drawn.choice(("red", "kettle", "Ann", "the", "sang")) for _ in range(drawn.choice((1, 9, 300))))
        ends = drawn.choice((" ", "\n", "\n\n"))
        turns.append(Turn(f"D1:{n}", "user", f"begin{n}x {said}.{ends}end{n}x.", drawn.choice((None, "Bo"))))
    sessions = [Session(str(i), tuple(turns[i::3]), f"{i + 1} May 2023") for i in range(3)]
    return split_sessions(sessions, history="h", limit=300)


def written(name: str, units: Sequence[Unit], **options: object) -> MemoryBuild:
    build = find_method(name).configured(options).build(services())

    async def write() -> None:
        for unit in units:
            await build.write(unit)

    asyncio.run(write())
    return build


def shown(build: MemoryBuild, text: str, budget: int) -> Rendering:
    async def render() -> Rendering:
        vector = (await WordEmbedder().embed([text]))[0]
        return await build.view().render(Query.question(text, vector), Budget(budget))

    return asyncio.run(render())


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), budget=st.integers(64, 3_000), asked=st.integers(0, 23))
def test_provenance_and_a_search_through_the_verbatim_blocks_agree(
    name: str, seed: int, budget: int, asked: int
) -> None:
    units = talk(seed)
    build = written(name, units)
    places = EvidenceMap(units, build.pieces)
    rendering = shown(build, f"Who sang begin{asked}x?", budget)
    turns = [block.source for unit in units for block in unit.blocks]
    for turn_id in turns:
        by_provenance = places.by_provenance([turn_id], rendering.shown_pieces())
        assert by_provenance.visible == places.by_text([turn_id], rendering).visible
        assert by_provenance.visible <= by_provenance.partly <= 1
    whole = places.by_provenance(turns, rendering.shown_pieces())
    parts = [places.by_provenance([turn_id], rendering.shown_pieces()) for turn_id in turns]
    assert (whole.turns, whole.visible, whole.partly) == (
        len(turns),
        sum(part.visible for part in parts),
        sum(part.partly for part in parts),
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), asked=st.sets(st.integers(0, 23)), order=st.randoms())
def test_a_map_of_the_turns_that_are_asked_for_says_of_them_what_one_of_all_turns_says(
    seed: int, asked: set[int], order: random.Random
) -> None:
    units = talk(seed)
    build = written("piece_retrieval", units)
    whole, part = EvidenceMap(units, build.pieces), EvidenceMap(units, build.pieces, {f"D1:{n}" for n in asked})
    ranking = list(range(len(build.pieces)))
    order.shuffle(ranking)
    rendering = shown(build, "Who sang the red kettle?", 300)
    for turn_id in (f"D1:{number}" for number in range(24)):
        if int(turn_id[3:]) not in asked:
            with pytest.raises(KeyError):
                part.pieces_of(turn_id)
            continue
        assert part.pieces_of(turn_id) == whole.pieces_of(turn_id)
        assert part.rank([turn_id], ranking) == whole.rank([turn_id], ranking)
        pieces = rendering.shown_pieces()
        assert part.by_provenance([turn_id], pieces) == whole.by_provenance([turn_id], pieces)
        assert part.by_text([turn_id], rendering) == whole.by_text([turn_id], rendering)


# ---------------------------------------------------------------- worked by hand

# Turn a is three pieces of one line each (piece_tokens 8), b and c are one piece: pieces 0 1 2 | 3 | 4.
LINES = ["one two three one two three", "red blue green red blue green", "three two one three two one"]
(UNIT,) = split_sessions(
    [
        Session(
            "1",
            (Turn("a", "user", "\n".join(LINES)), Turn("b", "user", "Bo left."), Turn("c", "assistant", "Ann sang.")),
        )
    ],
    history="h",
)
PIECES = cut_pieces(UNIT, piece_tokens=8, first_index=0)
PLACES = EvidenceMap([UNIT], PIECES)


def test_the_pieces_of_turns() -> None:
    assert [PLACES.pieces_of(turn_id) for turn_id in "abc"] == [(0, 1, 2), (3,), (4,)]
    with pytest.raises(KeyError):
        PLACES.pieces_of("d")


@pytest.mark.parametrize(
    ("pieces", "visible", "partly"),
    [
        ({0, 1, 2, 3}, 2, 2),  # both whole
        ({0, 2, 3}, 1, 2),  # a lacks its middle
        ({1}, 0, 1),
        ({4}, 0, 0),  # a turn that is no evidence
        (set(), 0, 0),
    ],
)
def test_visibility_worked_by_hand(pieces: set[int], visible: int, partly: int) -> None:
    found = PLACES.by_provenance(["a", "b"], pieces)
    assert found == Visibility(2, visible, partly)
    assert found.share == visible / 2
    assert found.all == (visible == 2)
    assert found.any == (visible > 0)


def test_the_verbatim_evidence_score_takes_every_turn_whole() -> None:
    """1 if all turns are visible verbatim, else 0: neither a share nor 'at least one' nor 'partly' will do."""
    almost = PLACES.by_provenance(["a", "b"], {0, 1, 3})
    assert almost.partly == almost.turns
    assert almost.any
    assert not almost.all
    assert PLACES.by_provenance(["a", "b"], {0, 1, 2, 3}).all


@pytest.mark.parametrize(
    ("evidence", "order", "rank"),
    [
        (["b"], [3, 0, 1, 2, 4], 1),
        (["a"], [4, 3, 2, 1, 0], 3),  # the first of its pieces, wherever in the turn that is
        (["a", "b"], [4, 3, 0, 1, 2], 2),  # the first of any turn
        (["c"], [0, 1, 2, 3, 4], 5),
        ([], [0, 1, 2, 3, 4], None),
    ],
)
def test_the_rank_of_evidence_is_that_of_its_first_piece(
    evidence: list[str], order: list[int], rank: int | None
) -> None:
    assert PLACES.rank(evidence, order) == rank


# ---------------------------------------------------------------- what counts as visible


def rendering_of(*blocks: tuple[str, Resolution, tuple[int, ...]]) -> Rendering:
    return assemble([Fragment(text, 1, (0,), resolution, pieces) for text, resolution, pieces in blocks])


def test_a_turn_copied_into_a_record_is_not_visible() -> None:
    for resolution in (Resolution.RECORD, Resolution.MERGED, Resolution.NOTE, Resolution.SUMMARY):
        rendering = rendering_of(("[u00 | session 1] Bo left.\n", resolution, ()))
        assert "Bo left." in rendering.text
        assert PLACES.by_text(["b"], rendering).visible == 0
        assert PLACES.by_provenance(["b"], rendering.shown_pieces()).visible == 0


def test_provenance_of_blocks_that_are_not_verbatim_shows_nothing() -> None:
    rendering = rendering_of(("x\n", Resolution.RECORD, (3,)), ("y\n", Resolution.PLACEHOLDER, (4,)))
    assert rendering.shown_pieces() == frozenset()


def test_a_search_takes_white_space_as_one_and_does_not_reach_over_blocks() -> None:
    raw = Resolution.RAW
    assert PLACES.by_text(["b"], rendering_of(("user:  Bo\n\t left.\n", raw, (3,)))).visible == 1
    assert PLACES.by_text(["b"], rendering_of(("Bo\n", raw, ()), ("left.\n", raw, ()))).visible == 0


def test_a_turn_that_another_repeats_is_found_by_text_but_not_by_provenance() -> None:
    turns = (Turn("a", "user", "Bo left."), Turn("b", "user", "Bo left."))
    (unit,) = split_sessions([Session("1", turns)], history="h")
    places = EvidenceMap([unit], cut_pieces(unit, piece_tokens=8, first_index=0))
    rendering = rendering_of(("user: Bo left.\n", Resolution.PIECE, (0,)))
    assert places.by_provenance(["b"], rendering.shown_pieces()).visible == 0
    assert places.by_text(["b"], rendering).visible == 1


def test_squeezing_makes_every_run_of_white_space_one_blank() -> None:
    assert squeeze("  a\n\tb \u3000 c ") == "a b c"
