"""Cutting: units packed to a limit, cut points that never move, pieces that are their block to the letter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem import history, tokens
from flexmem.history import (
    ChatPacker,
    Piece,
    Session,
    Step,
    StepPacker,
    Turn,
    Unit,
    cut_pieces,
    pack,
    pack_steps,
    split_sessions,
)

# ---------------------------------------------------------------- random histories

text = st.lists(
    st.sampled_from(
        [
            *(
                "red kettle",
                "Go on. Then stop! ",
                "\n",
                "\n\n",
                "\r\n",
                "/etc/hosts",
                " ",
                "1,234",
                "日本。",
                "🙂",
                "\ud800",
            ),
            *("\ud800", "\0", "<|endoftext|>", "x" * 90, "  indented", "# head", "[...]", "!\n/x"),
        ]
    )
    | st.text(max_size=4),
    max_size=14,
).map("".join)
turn_shapes = st.tuples(
    st.sampled_from(["user", "assistant", "system", "tool"]), text, st.sampled_from([None, "Ann", "/bot"])
)
session_shapes = st.tuples(st.lists(turn_shapes, max_size=6), st.sampled_from([None, "8 May 2023"]))
step_shapes = st.tuples(text, text, st.just("") | text)


def sessions_of(shapes: Iterable[tuple[list[tuple[str, str, str | None]], str | None]]) -> list[Session]:
    return [
        Session(
            str(number),
            tuple(
                Turn(f"D{number}:{position}", role, said, speaker)  # type: ignore[arg-type]
                for position, (role, said, speaker) in enumerate(turns)
            ),
            date,
        )
        for number, (turns, date) in enumerate(shapes, 1)
    ]


def steps_of(shapes: Iterable[tuple[str, str, str]]) -> list[Step]:
    return [Step(number, action, output, thought) for number, (action, output, thought) in enumerate(shapes, 1)]


conversations = st.lists(session_shapes, max_size=4).map(sessions_of)
trajectories = st.lists(step_shapes, max_size=8).map(steps_of)
units = st.one_of(
    conversations.map(lambda sessions: split_sessions(sessions, history="h", limit=40)),
    trajectories.map(lambda steps: pack_steps(steps, history="h", limit=40)),
)


def one_turn(said: str, speaker: str | None = "Ann") -> Unit:
    (unit,) = split_sessions([Session("1", (Turn("t", "user", said, speaker),))], history="h", limit=10**9)
    return unit


# ---------------------------------------------------------------- pack


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=30), st.integers(1, 10))
def test_runs_keep_the_limit_cover_everything_and_end_only_where_the_next_item_does_not_fit(
    sizes: list[int], limit: int
) -> None:
    runs = list(pack(sizes, limit))
    assert [position for first, past in runs for position in range(first, past)] == list(range(len(sizes)))
    for first, past in runs:
        assert sum(sizes[first:past]) <= limit or past == first + 1
        assert past == len(sizes) or sum(sizes[first : past + 1]) > limit


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=30), st.lists(st.integers(0, 12), max_size=5), st.integers(1, 10))
def test_appending_items_moves_no_cut(sizes: list[int], more: list[int], limit: int) -> None:
    before, after = list(pack(sizes, limit)), list(pack(sizes + more, limit))
    assert after[: max(0, len(before) - 1)] == before[:-1]  # all runs but the open one
    if before:
        assert after[len(before) - 1][0] == before[-1][0]


def closing_at_the_limit(sizes: Sequence[int], limit: int) -> Iterator[tuple[int, int]]:
    """WRONG: a run that reaches the limit exactly counts as over it."""
    first = total = 0
    for position, size in enumerate(sizes):
        if position > first and total + size >= limit:
            yield first, position
            first, total = position, 0
        total += size
    if sizes:
        yield first, len(sizes)


def closing_once_over_the_limit(sizes: Sequence[int], limit: int) -> Iterator[tuple[int, int]]:
    """WRONG: the item that goes over the limit still joins ("pack until over")."""
    first = total = 0
    for position, size in enumerate(sizes):
        total += size
        if total > limit:
            yield first, position + 1
            first, total = position + 1, 0
    if first < len(sizes):
        yield first, len(sizes)


def balanced(sizes: Sequence[int], limit: int) -> Iterator[tuple[int, int]]:
    """WRONG: as few runs as needed, equally filled: looks ahead, so a growing history moves the cuts."""
    runs = max(1, -(-sum(sizes) // limit))
    first = total = 0
    for position, size in enumerate(sizes):
        if position > first and total + size > sum(sizes) / runs:
            yield first, position
            first, total = position, 0
        total += size
    if sizes:
        yield first, len(sizes)


# Limit 10.
#   items      4   6   3   7   1   12   2   8
#   sums       4  10   3  10   .    .   .   .
# 4 + 6 = 10 is within the limit; + 3 is not, so a run ends after the 6. 3 + 7 = 10 likewise. 1 stays alone because 12
# would not fit beside it; 12 is over the limit by itself and makes a run alone, since 12 + 2 > 10; 2 + 8 = 10.
PACKED_SIZES, PACKED_LIMIT = (4, 6, 3, 7, 1, 12, 2, 8), 10
PACKED_RUNS = [(0, 2), (2, 4), (4, 5), (5, 6), (6, 8)]


def test_packing_worked_by_hand() -> None:
    assert list(pack(PACKED_SIZES, PACKED_LIMIT)) == PACKED_RUNS


@pytest.mark.parametrize("wrong", [closing_at_the_limit, closing_once_over_the_limit, balanced])
def test_the_packing_example_tells_wrong_variants(
    wrong: Callable[[Sequence[int], int], Iterator[tuple[int, int]]],
) -> None:
    assert list(wrong(PACKED_SIZES, PACKED_LIMIT)) != PACKED_RUNS


# ---------------------------------------------------------------- agents: steps into units


def step_tokens(step: Step) -> int:
    """T of a step's text as units show it."""
    thought = f"Step {step.number}\nThought: {_line(step.thought)}Action:\n" if step.thought else ""
    lead = thought or f"Step {step.number}\nAction:\n"
    return sum(
        tokens.count(part)
        for part in (
            [f"Step {step.number}\nThought: {_line(step.thought)}", f"Action:\n{_line(step.action)}"]
            if step.thought
            else [lead + _line(step.action)]
        )
    ) + tokens.count(f"Output:\n{_line(step.output)}")


def _line(said: str) -> str:
    return said if said.endswith("\n") else said + "\n"


@settings(deadline=None)
@given(trajectories, st.integers(10, 80))
def test_a_unit_of_steps_keeps_the_limit_or_is_one_step(steps: list[Step], limit: int) -> None:
    packed = pack_steps(steps, history="h", limit=limit)
    sizes = {step.number: step_tokens(step) for step in steps}
    assert [unit.uid for unit in packed] == list(range(len(packed)))
    covered = [number for unit in packed for number in range(unit.span[0], unit.span[1] + 1)]
    assert covered == [step.number for step in steps]
    for unit in packed:
        inside = range(unit.span[0], unit.span[1] + 1)
        assert sum(sizes[number] for number in inside) <= limit or len(inside) == 1
    for unit, following in pairwise(packed):
        inside = range(unit.span[0], following.span[0] + 1)
        assert sum(sizes[number] for number in inside) > limit


@settings(deadline=None)
@given(trajectories, trajectories)
def test_appending_steps_changes_no_closed_unit(steps: list[Step], more: list[Step]) -> None:
    renumbered = [replace(step, number=len(steps) + step.number) for step in more]
    packer = StepPacker(history="h", limit=40)
    returned = [unit for step in steps if (unit := packer.append(step)) is not None]
    assert returned == list(packer.closed)
    closed = list(packer.closed)
    for step in renumbered:
        packer.append(step)
    assert list(packer.closed)[: len(closed)] == closed
    assert [*packer.closed, *([packer.open] if packer.open else [])] == pack_steps(
        steps + renumbered, history="h", limit=40
    )


def test_without_steps_there_is_no_unit() -> None:
    assert pack_steps([], history="h") == []
    assert StepPacker(history="h").open is None


def test_the_text_of_an_agents_unit() -> None:
    unit = pack_steps([Step(1, "ls", "a.txt"), Step(2, "cat a.txt\n", "", "Read it.")], history="h")[0]
    assert unit.text == (
        "### u00 — steps 1-2\n"
        "Step 1\nAction:\nls\nOutput:\na.txt\n"
        "Step 2\nThought: Read it.\nAction:\ncat a.txt\nOutput:\n\n"
    )
    assert [(block.kind, block.source) for block in unit.blocks] == [
        ("action", "step 1"),
        ("output", "step 1"),
        ("thought", "step 2"),
        ("action", "step 2"),
        ("output", "step 2"),
    ]
    assert [unit.text[block.content_start : block.end] for block in unit.blocks] == [
        *("ls\n", "a.txt\n", "Read it.\n", "cat a.txt\n", "\n")
    ]
    assert (unit.label, unit.place, unit.span) == ("u00", "steps 1-2", (1, 2))
    assert pack_steps([Step(7, "ls", "")], history="h")[0].header == "### u00 — step 7\n"


# ---------------------------------------------------------------- readers: sessions into units


@settings(deadline=None)
@given(conversations, st.integers(5, 60))
def test_a_unit_of_turns_lies_in_one_session_starts_a_round_and_keeps_the_limit_or_is_one_round(
    sessions: list[Session], limit: int
) -> None:
    packed = split_sessions(sessions, history="h", limit=limit)
    turns = [turn for session in sessions for turn in session.turns]
    firsts = {session.turns[0].turn_id for session in sessions if session.turns}
    by_id = {session.session_id: session for session in sessions}
    assert [unit.uid for unit in packed] == list(range(len(packed)))
    assert [block.source for unit in packed for block in unit.blocks] == [turn.turn_id for turn in turns]
    for unit in packed:
        assert unit.span == (unit.span[0], unit.span[0] + len(unit.blocks) - 1)
        inside = turns[unit.span[0] : unit.span[1] + 1]
        assert [turn.turn_id for turn in inside] == [block.source for block in unit.blocks]
        assert unit.session is not None
        assert set(inside) <= set(by_id[unit.session].turns)
        assert unit.time == by_id[unit.session].date
        assert inside[0].role == "user" or inside[0].turn_id in firsts
        sizes = [tokens.count(unit.text[block.start : block.end]) for block in unit.blocks]
        rounds = 1 + sum(turn.role == "user" for turn in inside[1:])
        assert sum(sizes) <= limit or rounds == 1


@settings(deadline=None)
@given(conversations, conversations)
def test_appending_sessions_changes_no_unit(sessions: list[Session], more: list[Session]) -> None:
    before = split_sessions(sessions, history="h", limit=30)
    assert split_sessions(sessions + more, history="h", limit=30)[: len(before)] == before


@settings(deadline=None)
@given(conversations.filter(lambda sessions: any(session.turns for session in sessions)), st.lists(turn_shapes))
def test_appending_turns_to_a_session_changes_no_unit_but_the_last(
    sessions: list[Session], more: list[tuple[str, str, str | None]]
) -> None:
    while not sessions[-1].turns:
        sessions = sessions[:-1]
    last = sessions[-1]
    added = sessions_of([(more, None)])[0].turns
    grown = replace(last, turns=last.turns + tuple(replace(turn, turn_id="+" + turn.turn_id) for turn in added))
    before = split_sessions(sessions, history="h", limit=30)
    after = split_sessions([*sessions[:-1], grown], history="h", limit=30)
    assert after[: len(before) - 1] == before[:-1]
    assert after[len(before) - 1].span[0] == before[-1].span[0]


def test_a_session_worked_by_hand() -> None:
    """Limit 12. A turn is `Ann: ` and its words: "Ann", ":", one token a word and one for the line break.

    system       2 tokens of name + "rules" + break =  4   turns ahead of the first user turn are a round:  4
    user         3 words                            =  6   a round of 6 + 5 = 11: 4 + 11 > 12, a unit ends before it
    assistant    2 words                            =  5
    user         1 word                             =  4   11 + 4 > 12: another unit ends; 4 alone
    user         5 words                            =  8   4 + 8 = 12 fits: the two rounds share a unit
    """
    said = ["rules", "red blue green", "red blue", "red", "red blue green red blue"]
    roles = ["system", "user", "assistant", "user", "user"]
    turns = tuple(Turn(f"t{i}", role, words, "Ann") for i, (role, words) in enumerate(zip(roles, said, strict=True)))  # type: ignore[arg-type]
    assert [tokens.count(f"Ann: {words}\n") for words in said] == [4, 6, 5, 4, 8]
    packed = split_sessions([Session("3", turns, "8 May 2023")], history="h", limit=12)
    assert [unit.span for unit in packed] == [(0, 0), (1, 2), (3, 4)]
    assert packed[1].text == "### u01 — session 3, 8 May 2023\nAnn: red blue green\nAnn: red blue\n"


def test_role_words_are_a_prefix_and_names_are_content() -> None:
    session = Session("1", (Turn("a", "user", "Hi"), Turn("b", "assistant", "Ho", "Bo")))
    (unit,) = split_sessions([session], history="h")
    assert unit.text == "### u00 — session 1\nuser: Hi\nBo: Ho\n"
    assert [unit.text[block.start : block.content_start] for block in unit.blocks] == ["user: ", ""]
    assert [unit.text[block.content_start : block.end] for block in unit.blocks] == ["Hi\n", "Bo: Ho\n"]


def test_sessions_without_a_turn_leave_no_unit_and_keep_positions() -> None:
    sessions = [Session("1", ()), Session("2", (Turn("a", "user", "Hi"),)), Session("3", ())]
    (unit,) = split_sessions(sessions, history="h")
    assert (unit.uid, unit.session, unit.span) == (0, "2", (0, 0))


# ---------------------------------------------------------------- a running chat: items into units


items = st.lists(st.lists(text, min_size=1, max_size=3), max_size=8)


def packed_chat(said: list[list[str]]) -> ChatPacker:
    packer = ChatPacker(history="h", limit=40)
    turn = 0
    for item in said:
        packer.append([Turn(f"m{turn + n}", "user", words, "Ann") for n, words in enumerate(item)])
        turn += len(item)
    return packer


@settings(deadline=None)
@given(items, items)
def test_a_chats_items_are_never_parted_and_appending_changes_no_closed_unit(
    said: list[list[str]], more: list[list[str]]
) -> None:
    packer = packed_chat(said)
    whole = packed_chat(said + more)
    closed = list(packer.closed)
    assert whole.units()[: len(closed)] == closed
    firsts = [packer.first_item(unit.uid) for unit in packer.units()] + [len(said)]
    assert firsts == sorted(set(firsts)) if said else firsts == [0]
    assert packer.first_item(len(packer.units())) == len(said)
    for unit, (first, past) in zip(packer.units(), pairwise(firsts), strict=True):
        turns = sum(len(item) for item in said[:first])
        inside = sum(len(item) for item in said[first:past])
        assert unit.span == (turns, turns + inside - 1)
        assert [block.source for block in unit.blocks] == [f"m{turn}" for turn in range(turns, turns + inside)]
        sizes = [tokens.count(unit.text[block.start : block.end]) for block in unit.blocks]
        assert sum(sizes) <= 40 or past == first + 1
        assert unit.place == f"turns {turns + 1}-{turns + inside}"


# ---------------------------------------------------------------- the unit itself


@settings(deadline=None)
@given(units)
def test_blocks_tile_the_text_after_the_header_and_its_count_is_exact(packed: list[Unit]) -> None:
    for unit in packed:
        assert unit.text.startswith(unit.header)
        assert unit.header.endswith("\n")
        position = len(unit.header)
        for block in unit.blocks:
            assert block.start == position <= block.content_start < block.end
            assert unit.text[block.end - 1] == "\n"
            position = block.end
        assert position == len(unit.text)
        assert unit.tokens == tokens.count(unit.text)


@pytest.mark.parametrize(
    "changes",
    [{"uid": 1}, {"history": "g"}, {"text": "x"}, {"span": (0, 1)}, {"time": "now"}, {"session": "9"}, {"blocks": ()}],
)
def test_the_digest_covers_what_a_unit_holds(changes: dict[str, object]) -> None:
    unit = one_turn("Hi \ud800")
    assert unit.digest == one_turn("Hi \ud800").digest
    assert replace(unit, **changes).digest != unit.digest  # type: ignore[arg-type]


# ---------------------------------------------------------------- pieces


def pieces_of(unit: Unit, limit: int) -> list[list[Piece]]:
    """A unit's pieces, block by block."""
    pieces = cut_pieces(unit, piece_tokens=limit, first_index=0)
    return [[piece for piece in pieces if piece.block == number] for number in range(len(unit.blocks))]


@settings(max_examples=200, deadline=None)
@given(units, st.integers(8, 40), st.integers(0, 5))
def test_the_pieces_of_a_block_joined_are_the_block(packed: list[Unit], limit: int, first_index: int) -> None:
    for unit in packed:
        pieces = cut_pieces(unit, piece_tokens=limit, first_index=first_index)
        assert [piece.index for piece in pieces] == list(range(first_index, first_index + len(pieces)))
        assert [piece.block for piece in pieces] == sorted(piece.block for piece in pieces)
        for number, block in enumerate(unit.blocks):
            own = [piece for piece in pieces if piece.block == number]
            assert own, "a block without a piece"
            assert (own[0].start, own[0].content_start, own[-1].end) == (block.start, block.content_start, block.end)
            assert all(piece.content_start == piece.start for piece in own[1:])
            assert all(one.end == two.start for one, two in pairwise(own))
            assert "".join(piece.text for piece in own) == unit.text[block.start : block.end]
            assert "".join(piece.content for piece in own) == unit.text[block.content_start : block.end]
        for piece in pieces:
            assert (piece.uid, piece.text) == (unit.uid, unit.text[piece.start : piece.end])
            assert piece.tokens == tokens.count(piece.text)


words = st.lists(st.sampled_from(["red", "kettle", "on", "the", "stove"]), min_size=1, max_size=12).map(" ".join)
plain_lines = st.lists(words | st.just(""), min_size=1, max_size=12).map("\n".join)


@settings(deadline=None)
@given(plain_lines, st.integers(8, 40))
def test_pieces_of_short_lines_keep_the_limit_end_at_line_breaks_and_begin_with_text(said: str, limit: int) -> None:
    """A line here has at most 15 tokens with its name; the limit is on the content, without the words that we add."""
    limit = max(limit, 16)
    unit = one_turn(said)
    (pieces,) = pieces_of(unit, limit)
    for piece in pieces:
        assert tokens.count(piece.content) <= limit or piece.content.strip().count("\n") == 0
        assert piece.text.endswith("\n")
        assert piece.content.split("\n")[0].strip()  # a blank line stays with the line before it
    for one, two in pairwise(pieces):
        first_line = two.content.split("\n")[0] + "\n"
        assert tokens.count(one.content + first_line) > limit or two.content.startswith(first_line + "\n")


@settings(max_examples=200, deadline=None)
@given(text, st.integers(8, 40))
def test_only_a_line_over_the_limit_is_cut_inside(said: str, limit: int) -> None:
    unit = one_turn(said)
    (pieces,) = pieces_of(unit, limit)
    end = 0
    for line in history._lines(unit.text[unit.blocks[0].start :]):
        start, end = end, end + len(line)
        inside = [p for p in pieces if unit.blocks[0].start + start < p.start < unit.blocks[0].start + end]
        assert not inside or tokens.count(line) > limit


def test_pieces_worked_by_hand() -> None:
    """Limit 8 tokens. The content's lines, each with its blank lines, and their tokens ("Ann: " has two, a break one):

    Ann: red blue\\n         5    5 + 4 > 8: the first piece ends here
    red blue green\\n        4
    red\\n\\n\\n               2    4 + 2 = 6 (breaks in a row are one token); 6 + 8 > 8: the second piece ends here
    the long line is over 8 and falls into sentences, each with the blank after it:
    six words and a stop    8    8 + 7 > 8: a piece
    five words and a stop   7    7 + 3 > 8: a piece
    red blue.\\n             3    (a stop and the break after it are one token)
    red\\n                   2    3 + 2 = 5 <= 8: joins the last sentence
    """
    long_line = "red blue green red blue green. red blue green red blue. red blue.\n"
    unit = one_turn(f"red blue\nred blue green\nred\n\n\n{long_line}red")
    (pieces,) = pieces_of(unit, 8)
    assert [piece.text for piece in pieces] == [
        "Ann: red blue\n",
        "red blue green\nred\n\n\n",
        "red blue green red blue green. ",
        "red blue green red blue. ",
        "red blue.\nred\n",
    ]
    assert [piece.tokens for piece in pieces] == [5, 6, 8, 7, 5]


def test_the_words_that_we_add_count_in_the_first_piece_but_not_against_the_limit() -> None:
    said = "red blue green red blue green red\n"  # 8 tokens
    unit = one_turn(said, speaker=None)
    (pieces,) = pieces_of(unit, 8)
    assert [piece.text for piece in pieces] == ["user: " + said]
    assert pieces[0].tokens == 10
    assert pieces[0].content == said


def test_no_token_is_longer_than_what_a_line_is_sifted_by() -> None:
    encoding = tokens.encoding()
    ranks = range(tokens._TABLE_SIZE)
    assert max(len(encoding.decode_single_token_bytes(rank)) for rank in ranks) <= history._LONG_LINE_CHARACTERS


def test_a_sentence_over_the_limit_is_cut_hard_at_the_limit() -> None:
    unit = one_turn("red " * 40)
    (pieces,) = pieces_of(unit, 16)
    assert len(pieces) > 2
    assert all(tokens.count(piece.text) <= 16 for piece in pieces)
    assert all(tokens.count(one.text + two.text[:4]) > 16 for one, two in pairwise(pieces))


@pytest.mark.parametrize(
    "said", ["\r\n" * 30, "a\r\nb\r\n\r\nc", "\0" * 50, "\ud800" * 50, "<|endoftext|>" * 20, "\n\na"]
)
def test_odd_text_comes_back_whole(said: str) -> None:
    unit = one_turn(said)
    (pieces,) = pieces_of(unit, 8)
    assert "".join(piece.text for piece in pieces) == f"Ann: {_line(said)}"


def test_windows_line_ends_stay_with_their_lines() -> None:
    (pieces,) = pieces_of(one_turn("red blue green red blue\r\n\r\nred blue green red blue green\r\n"), 8)
    assert [piece.text for piece in pieces] == [
        "Ann: red blue green red blue\r\n\r\n",
        "red blue green red blue green\r\n",
    ]


@pytest.mark.parametrize(
    "said",
    ["red " * 250_000, "a" + "\n" * 400_000, "a" + " " * 1_000_000 + "b", "a.\n" + " \n" * 400_000],
    ids=["a line of 1 MB", "line breaks", "a million blanks", "blank lines"],
)
def test_huge_lines_and_blank_runs_are_cut_within_reason(said: str) -> None:
    """Cutting must not take time in the square of the length; the suite's time limit would tell."""
    unit = one_turn(said)
    (pieces,) = pieces_of(unit, 128)
    assert "".join(piece.text for piece in pieces) == f"Ann: {_line(said)}"
    assert len(pieces) > 1
