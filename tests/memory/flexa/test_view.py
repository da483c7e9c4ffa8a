"""FlexA-Mem's renderings worked by hand: where things stand, what is lent, what is hidden (docs/methods.md A.5-A.7)."""

from __future__ import annotations

import pytest

from flexmem import tokens
from flexmem.history import Step, Unit, pack_steps
from flexmem.memory.protocol import Budget, BudgetError, Degraded, Query, Rendering, Resolution
from tests.memory.examples import CompassEmbedder, chat, clerk, compass_query, history, shown, words, written

RAW, EXCERPT, RECORD, MERGED = Resolution.RAW, Resolution.EXCERPT, Resolution.RECORD, Resolution.MERGED
PIECE, FRAME = Resolution.PIECE, Resolution.FRAME


def layout(rendering: Rendering) -> list[tuple[Resolution, tuple[int, ...], int]]:
    return [(block.resolution, block.uids, block.tokens) for block in rendering.blocks]


# ---------------------------------------------------------------- units

# Six sessions, a unit each. A turn of n words has n + 3 tokens, a header 8, a line `[u00 | session 1] calm` 9.
#
#   unit  turns                            raw   record        line   cosine with north
#   u0    one of 89                        100   calm            9    0
#   u1    one of 49                         60   north           9    1
#   u2    one of 48                         59   calm            9    0
#   u3    one of 49                         60   calm            9    0
#   u4    ten of 9, the violin in the 4th  128   north east     10    0.71
#   u5    one of 49                         60   east            9    0
#
# Budget 200, so the timeline may have 50. The lines have 55: the oldest four are merged to `[u00-u03 | merged] one`,
# 9 tokens, which leaves 9 + 10 + 9 = 28. All are shown; 200 - 28 = 172 are left. Excerpts have 20 to 40 tokens.
# Everything is an anchor: u1, u4, then those of cosine 0, oldest first.
#
#   u1   raw 60, no line of its own                 RAW       112 left
#   u4   raw 128 - 10 = 118 > 112. Excerpt within 40: the violin's piece 8 + 12 = 20; the first piece 12 + 3 = 15,
#        35 in all; neither the second nor any other fits the 5 left
#                                                   EXCERPT    77
#   u0   raw 100 > 77; its only piece has 92 > 40; its line 9
#                                                   RECORD     68
#   u2   raw 59                                     RAW         9
#   u3   raw 60 > 9; no excerpt within 9; its line  RECORD      0
#   u5   raw 60 - 9 = 51 > 0; its line is shown     nothing
LONG = [[words(9)] * 3, ["violin " + words(8)], [words(9)] * 6]
UNITS = chat([words(89)], [words(49)], [words(48)], [words(49)], [said for part in LONG for said in part], [words(49)])
RECORDS = ["calm", "north", "calm", "calm", "north east", "east"]
TEXT = f"""\
[u00-u03 | merged] one
[u00 | session 1] calm
{UNITS[1].text}{UNITS[2].text}[u03 | session 4] calm
[u04 | session 5] north east
### u04 — session 5
Ann: {words(9)}
[...]
Ann: violin {words(8)}
[u05 | session 6] east
"""


def units_shown() -> Rendering:
    build = written("flexa_unit", UNITS, model=clerk(RECORDS), writer="model", excerpt_cap=40, excerpt_min=20)
    return shown(build, compass_query("Where is the violin?", "north"), 200)


def test_unit_recovery_worked_by_hand() -> None:
    assert [unit.tokens for unit in UNITS] == [100, 60, 59, 60, 128, 60]
    rendering = units_shown()
    assert rendering.text == TEXT
    assert layout(rendering) == [
        (MERGED, (0, 1, 2, 3), 9),
        (RECORD, (0,), 9),
        (RAW, (1,), 60),
        (RAW, (2,), 59),
        (RECORD, (3,), 9),
        (RECORD, (4,), 10),
        (EXCERPT, (4,), 35),
        (RECORD, (5,), 9),
    ]
    assert rendering.tokens == 200
    assert rendering.ranking == (1, 4, 0, 2, 3, 5)
    assert rendering.degraded == {
        0: Degraded.EXCERPT_DID_NOT_FIT,
        3: Degraded.EXCERPT_DID_NOT_FIT,
        4: Degraded.DID_NOT_FIT,
        5: Degraded.EXCERPT_DID_NOT_FIT,
    }
    assert rendering.hidden == 0


def test_a_raw_unit_stands_in_its_records_place() -> None:
    """Budget 300: 75 for the timeline, nothing is merged; 300 - 55 = 245. u1 60 - 9 = 51, 194; u4 118, 76; the others'
    lines stay, but u2 59 - 9 = 50, 26. In time order, each at its place.
    """
    build = written("flexa_unit", UNITS, model=clerk(RECORDS), writer="model")
    rendering = shown(build, compass_query("Where is the violin?", "north"), 300)
    assert [(resolution, uids) for resolution, uids, _ in layout(rendering)] == [
        (RECORD, (0,)),
        (RAW, (1,)),
        (RAW, (2,)),
        (RECORD, (3,)),
        (RAW, (4,)),
        (RECORD, (5,)),
    ]
    kept = written("flexa_unit.keep_record", UNITS, model=clerk(RECORDS), writer="model")
    rendering = shown(kept, compass_query("Where is the violin?", "north"), 300)
    # 245: u1 60, 185; u4 128, 57; u2 59 does not fit, nor any other; no excerpt of 40 in units of one piece.
    assert [(resolution, uids) for resolution, uids, _ in layout(rendering)] == [
        (RECORD, (0,)),
        (RECORD, (1,)),
        (RAW, (1,)),
        (RECORD, (2,)),
        (RECORD, (3,)),
        (RECORD, (4,)),
        (RAW, (4,)),
        (RECORD, (5,)),
    ]


# ---------------------------------------------------------------- hiding


def agents_units() -> list[Unit]:
    """Four units of one step each: header 8, `Step 1`, `Action:` 6, the action 2, `Output:` 2 and 12: 30 tokens."""
    return pack_steps([Step(n, "red", words(11)) for n in range(1, 5)], history="h", limit=10)


def agents_query() -> Query:
    north, east = CompassEmbedder.vector("north"), CompassEmbedder.vector("east")
    return Query("Where is it?", north, "Where is it?", east, "Find it.")


def test_a_huge_newest_unit_hides_the_oldest_lines_for_its_call_and_merges_nothing() -> None:
    """A line `[u00 | step 1] calm` has 9 tokens, four have 36. Budget 400, window 320: the current allowance is a
    quarter of 80, which two lines fit; the reference allowance is a quarter of 300, so nothing is merged. 62 are left:
    u0, hidden, is the nearest and comes back raw at the place where time puts it, before u2's line; then 32 are left
    and u1, hidden too, comes back raw.
    """
    model = clerk(["north", "calm", "calm", "calm"])
    build = written("flexa_unit", agents_units(), model=model, writer="model")
    assert [unit.tokens for unit in agents_units()] == [30] * 4
    rendering = shown(build, agents_query(), Budget(400, 320))
    assert layout(rendering) == [(RAW, (0,), 30), (RAW, (1,), 30), (RECORD, (2,), 9), (RECORD, (3,), 9)]
    assert rendering.hidden == 2
    assert model.calls["memory"] == 4  # the records; no merge
    whole = shown(build, agents_query(), Budget(400, 100))
    assert (whole.hidden, model.calls["memory"]) == (0, 4)
    assert {uid for _, uids, _ in layout(whole) for uid in uids} == {0, 1, 2, 3}


def test_an_agents_merge_lasts_while_a_larger_allowance_would_not_need_it() -> None:
    model = clerk(["north", "calm", "calm", "calm"])
    build = written("flexa_unit.timeline_only", agents_units(), model=model, writer="model")
    before = shown(build, agents_query(), Budget(400, 100))
    assert [resolution for resolution, _, _ in layout(before)] == [RECORD] * 4
    # Both allowances are 22.5. 36: u0 and u1 merge, for the newest two are spared; 27: all that is left merges.
    merged = shown(build, agents_query(), Budget(120, 30))
    assert layout(merged) == [(MERGED, (0, 1, 2, 3), 9)]
    assert shown(build, agents_query(), Budget(400, 100)) == merged


def test_a_readers_merges_at_one_budget_leave_other_budgets_alone() -> None:
    build = written("flexa_unit", UNITS, model=clerk(RECORDS), writer="model")
    query = compass_query("Where is the violin?", "north")
    before = shown(build, query, 300)
    assert layout(shown(build, query, 200))[0][0] is MERGED
    assert shown(build, query, 300) == before


# ---------------------------------------------------------------- pieces and lending

# Two sessions of twelve turns of 9 words: pieces of 12 tokens, headers 8. All pieces tie at a score and a cosine of 0,
# so they come in order. Budget 160, of which the timeline may have 40; its heading and the details' take 3 each.
#
#   records of one word    lines 9 + 9 = 18     160 - 3 - 3 - 18 = 136 for pieces: 8 + 10 x 12 = 128; 8 left
#   records of 12 words    lines 20 + 20 = 40   160 - 3 - 3 - 40 = 114 for pieces: 8 +  8 x 12 = 104; 10 left
TALK = chat([words(9)] * 12, [words(9)] * 12)
SHORT_RECORDS, LONG_RECORDS = ["calm", "calm"], [words(12), words(12)]


def pieces_shown(records: list[str]) -> Rendering:
    build = written("flexa_piece", TALK, model=clerk(records), writer="model", least_room=0)
    return shown(build, compass_query("Where is the violin?", "north"), 160)


def test_what_the_timeline_leaves_of_its_allowance_goes_to_the_pieces() -> None:
    short, long = pieces_shown(SHORT_RECORDS), pieces_shown(LONG_RECORDS)
    assert short.text == (
        "# Timeline\n[u00 | session 1] calm\n[u01 | session 2] calm\n# Details\n### u00 — session 1\n"
        + f"Ann: {words(9)}\n" * 10
    )
    assert layout(short) == [
        (FRAME, (), 3),
        (RECORD, (0,), 9),
        (RECORD, (1,), 9),
        (FRAME, (), 3),
        (PIECE, (0,), 128),
    ]
    assert [(resolution, size) for resolution, _, size in layout(long)] == [
        (FRAME, 3),
        (RECORD, 20),
        (RECORD, 20),
        (FRAME, 3),
        (PIECE, 104),
    ]
    assert (short.tokens, long.tokens) == (152, 150)


def test_a_reserved_allowance_would_show_as_few_pieces_beside_a_short_timeline() -> None:
    """WRONG: the timeline keeps its 40 whether it uses them or not: 160 - 3 - 3 - 40 = 114, eight pieces."""
    reserved = (160 - 3 - 3 - 40 - 8) // 12
    lent = (160 - 3 - 3 - 18 - 8) // 12
    assert (reserved, lent) == (8, 10)
    assert len(pieces_shown(SHORT_RECORDS).shown_pieces()) == lent


def test_pieces_are_grouped_by_unit_in_time_order_whatever_their_rank() -> None:
    """The second session has the violin, in its third turn and its first; it ranks first and stands last."""
    talk = chat([words(9)] * 2, ["violin violin", words(9), "violin"])
    build = written("flexa_piece", talk, timeline=False, least_room=0)
    # 8 + 5 = 13; then 4 + 3 = 7 beside a gap; then 8 + 12 = 20 of the first session; 5 are left
    rendering = shown(build, compass_query("violin", "north"), 45)
    assert rendering.ranking == (2, 4, 0)
    assert rendering.text == (
        "### u00 — session 1\n" + f"Ann: {words(9)}\n" + "### u01 — session 2\nAnn: violin violin\n[...]\nAnn: violin\n"
    )


def test_without_a_piece_there_is_no_heading_for_details_and_without_a_line_none_for_the_timeline() -> None:
    build = written("flexa_piece", TALK, model=clerk(LONG_RECORDS), writer="model")
    query = compass_query("violin", "north")
    small = shown(build, query, 30)  # 7 for the timeline: no line; 27 for pieces: 8 + 12
    assert small.text.startswith("# Details\n### u00")
    none = shown(written("flexa_piece", chat(["red " * 300]), record_words=3), query, 64)
    assert none.text == "# Timeline\n[u00 | session 1] Ann: red red\n"
    empty = shown(written("flexa_piece", []), query, 64)
    assert (empty.text, empty.blocks, empty.tokens) == ("", (), 0)


def test_a_room_below_the_headings_is_refused() -> None:
    build = written("flexa_piece", TALK)
    assert shown(build, compass_query("violin", "north"), 6).text == ""
    with pytest.raises(BudgetError, match="5 tokens can't hold"):
        shown(build, compass_query("violin", "north"), 5)


@pytest.mark.parametrize("share", [0.9, 0.95, 0.99])
def test_a_timeline_that_may_have_nearly_everything_leaves_room_for_the_headings(share: float) -> None:
    build = written("flexa_piece", history(1, "reader", 30), timeline_share=share, record_words=5)
    for room in range(64, 140):
        rendering = shown(build, compass_query("violin", "north"), room)
        assert rendering.tokens == tokens.count(rendering.text) <= room
