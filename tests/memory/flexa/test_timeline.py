"""The timeline: merging that lasts, hiding that doesn't, labels (docs/methods.md A.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.history import Step, Unit, pack_steps
from flexmem.llm.errors import Transient
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.records import Record
from flexmem.memory.flexa.timeline import Entry, Timeline, make_entry, merge_label, record_entry
from tests.memory.examples import chat, words

Spans = list[tuple[int, ...]]


def entry(uid: int, size: int) -> Entry:
    """A record's entry that is said to have so many tokens."""
    return Entry(0, (uid,), f"text {uid}", f"u{uid:02d} | session 1", f"[u{uid:02d}] ...\n", size)


class Writer:
    """Merges to a text of so many words; keeps what it was asked to merge."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.texts: list[list[str]] = []
        self.labels: list[list[str]] = []

    async def write(self, unit: Unit, previous: str | None) -> Record:
        raise AssertionError("a timeline writes no record")

    async def merge(self, texts: Sequence[str], labels: Sequence[str]) -> str:
        self.texts.append(list(texts))
        self.labels.append(list(labels))
        return words(self.number)

    def recall(self, unit: Unit) -> None:
        raise AssertionError("a timeline recalls nothing")


def merge_down(timeline: Timeline, limit: float, number: int = 2) -> Writer:
    writer = Writer(number)
    asyncio.run(timeline.merge_down(limit, writer))
    return writer


def spans(entries: Sequence[Entry]) -> Spans:
    return [made.uids for made in entries]


# ---------------------------------------------------------------- worked by hand

# Nine records of 10 tokens each, 90 together. A merged line of two words is `[u00-u03 | merged] red blue`: 7 tokens of
# label, 2 words, 1 line break: 10 tokens as well. The newest two are spared while two others are left.
#
# Allowance 60 (the larger of current and reference):
#   90 > 60   of the seven free ones the oldest four become one        M(0-3) 4 5 6 7 8               60
#   60 > 60?  no
# Later, two more records: 80 tokens:
#   80 > 60   free are M 4 5 6 7 8: the oldest four, M among them      M(0-6) 7 8 9 10                50
# Then an allowance of 35:
#   50 > 35   free are M 7 8: three, so three                          M(0-8) 9 10                    30
# And of 25:
#   30 > 25   one is free: the protection is given up, all three       M(0-10)                        10
RECORDS = [entry(uid, 10) for uid in range(9)]
NEWER = [entry(uid, 10) for uid in (9, 10)]
FIRST: Spans = [(0, 1, 2, 3), (4,), (5,), (6,), (7,), (8,)]
SECOND: Spans = [tuple(range(7)), (7,), (8,), (9,), (10,)]
THIRD: Spans = [tuple(range(9)), (9,), (10,)]
FOURTH: Spans = [tuple(range(11))]


def test_merging_worked_by_hand() -> None:
    timeline = Timeline(FlexaConfig(), RECORDS)
    writer = merge_down(timeline, 60)
    assert spans(timeline.entries) == FIRST
    assert timeline.entries[0].line == "[u00-u03 | merged] red blue\n"
    assert timeline.entries[0].tokens == 10
    assert writer.texts == [["text 0", "text 1", "text 2", "text 3"]]
    assert writer.labels == [["u00 | session 1", "u01 | session 1", "u02 | session 1", "u03 | session 1"]]
    for later in NEWER:
        timeline.append(later)
    writer = merge_down(timeline, 60)
    assert spans(timeline.entries) == SECOND
    assert writer.texts == [["red blue", "text 4", "text 5", "text 6"]]
    assert writer.labels[0][0] == "u00-u03 | merged"
    merge_down(timeline, 35)
    assert spans(timeline.entries) == THIRD
    merge_down(timeline, 25)
    assert spans(timeline.entries) == FOURTH
    assert [made.level for made in timeline.entries] == [4]


def simulated(group: int = 4, protect: int = 2, newest_first: bool = False, remerge: bool = True) -> list[Spans]:
    """The example in plain numbers, with one rule changed."""
    lines: list[tuple[int, ...]] = [(uid,) for uid in range(9)]
    states = []
    for limit, more in ((60, ()), (60, (9, 10)), (35, ()), (25, ())):
        lines += [(uid,) for uid in more]
        while 10 * len(lines) > limit and len(lines) > 1:
            free = len(lines) - protect
            first, past = (0, min(group, free)) if free >= 2 else (0, min(group, len(lines)))
            if newest_first and free >= 2:
                first, past = max(0, free - group), free
            if not remerge and len(lines[0]) > 1 and free > 2:
                first, past = 1, min(1 + group, free)
            lines[first:past] = [tuple(uid for line in lines[first:past] for uid in line)]
        states.append(list(lines))
    return states


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"group": 5}, id="a merge of five"),
        pytest.param({"group": 3}, id="a merge of three"),
        pytest.param({"protect": 0}, id="newest records not protected"),
        pytest.param({"protect": 3}, id="three records protected"),
        pytest.param({"newest_first": True}, id="the newest merged first"),
        pytest.param({"remerge": False}, id="merged records never merged again"),
    ],
)
def test_the_merging_example_tells_wrong_variants(wrong: dict[str, int]) -> None:
    assert simulated() == [FIRST, SECOND, THIRD, FOURTH]
    assert simulated(**wrong) != [FIRST, SECOND, THIRD, FOURTH]  # type: ignore[arg-type]


# The same nine records after the first merge (60 tokens), and a call whose newest unit is huge: its current allowance
# is 35, while the reference allowance is still 60. Nothing is merged; the oldest lines are left out until 35 suffice:
#   M(0-3) 4 5 6 7 8 = 60;  without M 50;  without 4 40;  without 5 30 <= 35:  6 7 8 are shown, three entries hidden
# The next call has its 60 again and shows all six.
SHOWN_AT_35: Spans = [(6,), (7,), (8,)]


def test_hiding_worked_by_hand() -> None:
    timeline = Timeline(FlexaConfig(), RECORDS)
    merge_down(timeline, 60)
    assert spans(timeline.shown(35)) == SHOWN_AT_35
    assert spans(timeline.entries) == FIRST
    assert spans(timeline.shown(60)) == FIRST
    assert spans(timeline.shown(59.9)) == FIRST[1:]
    assert timeline.shown(9) == []


def merging_what_is_hidden(timeline: Timeline) -> Spans:
    """WRONG: merges down to the current allowance."""
    merge_down(timeline, 35)
    return spans(timeline.shown(35))


def hiding_the_newest(timeline: Timeline) -> Spans:
    """WRONG: keeps the oldest lines."""
    kept = list(timeline.entries)
    while sum(made.tokens for made in kept) > 35:
        kept.pop()
    return spans(kept)


def hiding_only_merged_lines(timeline: Timeline) -> Spans:
    """WRONG: records are never hidden."""
    return spans([made for made in timeline.entries if made.level == 0])


@pytest.mark.parametrize("wrong", [merging_what_is_hidden, hiding_the_newest, hiding_only_merged_lines])
def test_the_hiding_example_tells_wrong_variants(wrong: Callable[[Timeline], Spans]) -> None:
    timeline = Timeline(FlexaConfig(), RECORDS)
    merge_down(timeline, 60)
    assert wrong(timeline) != SHOWN_AT_35


# ---------------------------------------------------------------- merge_policy: level


def test_merging_by_level_worked_by_hand() -> None:
    """Eleven records of 10 tokens, 110. Allowance 50.

    110   free are 0-8, all of level 0: the oldest four    M(0-3) 4 5 6 7 8 9 10     80
     80   free are M 4-8; level 0 has the run 4-8: four    M(0-3) M(4-7) 8 9 10      50
    Two more records, 70:
     70   free are M M 8 9 10; level 0 has 8 9 10          M(0-3) M(4-7) M(8-10) 11 12   50
    One more, 60:
     60   free are M M M 11; level 0 has 11 alone, no run; level 1 has three           M(0-10) 11 12 13   40
    """
    timeline = Timeline(FlexaConfig(merge_policy="level"), [entry(uid, 10) for uid in range(11)])
    merge_down(timeline, 50)
    assert spans(timeline.entries) == [(0, 1, 2, 3), (4, 5, 6, 7), (8,), (9,), (10,)]
    for uid in (11, 12):
        timeline.append(entry(uid, 10))
    merge_down(timeline, 50)
    assert spans(timeline.entries) == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10), (11,), (12,)]
    timeline.append(entry(13, 10))
    merge_down(timeline, 50)
    assert spans(timeline.entries) == [tuple(range(11)), (11,), (12,), (13,)]
    assert [made.level for made in timeline.entries] == [2, 0, 0, 0]


@pytest.mark.parametrize("levels", [(2, 1, 0), (0, 2, 1)])
def test_merging_by_level_falls_back_to_the_oldest_where_no_level_has_a_run(levels: tuple[int, ...]) -> None:
    made = [make_entry(level, (uid,), words(2), f"u{uid:02d}") for uid, level in enumerate((*levels, 0, 0))]
    timeline = Timeline(FlexaConfig(merge_policy="level"), made)
    merge_down(timeline, sum(one.tokens for one in made) - 1)
    assert spans(timeline.entries) == [(0, 1, 2), (3,), (4,)]
    assert timeline.entries[0].level == 3


# ---------------------------------------------------------------- properties

records = st.lists(st.integers(1, 80), min_size=0, max_size=20)


@pytest.mark.parametrize("policy", ["oldest", "level"])
@settings(max_examples=60, deadline=None)
@given(sizes=records, limits=st.lists(st.integers(0, 600), min_size=1, max_size=4), number=st.integers(1, 200))
def test_merges_last_are_of_at_most_four_neighbours_and_150_words_and_stop_as_soon_as_they_may(
    policy: str, sizes: list[int], limits: list[int], number: int
) -> None:
    timeline = Timeline(FlexaConfig.model_validate({"merge_policy": policy}))
    for position, (limit, size) in enumerate(zip(limits * 20, sizes, strict=False)):
        timeline.append(make_entry(0, (position,), words(size), f"u{position:02d} | session 1"))
        before = list(timeline.entries)
        writer = Writer(number)
        asyncio.run(timeline.merge_down(limit, writer))
        after = timeline.entries
        total = sum(made.tokens for made in after)
        assert total <= limit or len(after) == 1
        if sum(made.tokens for made in before) <= limit:
            assert after == before
        # All units are covered, in order, and what was together stays together.
        assert [uid for made in after for uid in made.uids] == list(range(position + 1))
        assert all(any(set(old.uids) <= set(new.uids) for new in after) for old in before)
        assert all(2 <= len(group) <= 4 for group in writer.texts)
        assert len(before) - len(after) == sum(len(group) - 1 for group in writer.texts)
        for made in after:
            assert len(made.text.split()) <= 150 or made.level == 0
            assert made.tokens == tokens.count(made.line)
            assert (made.level == 0) == (len(made.uids) == 1)


@settings(max_examples=60, deadline=None)
@given(records, st.integers(0, 400))
def test_by_default_only_the_oldest_entries_merge_and_the_newest_two_are_spared(sizes: list[int], limit: int) -> None:
    timeline = Timeline(FlexaConfig(), [entry(uid, size) for uid, size in enumerate(sizes)])
    merge_down(timeline, limit, number=1)
    merged = [made.level > 0 for made in timeline.entries]
    assert not any(merged[1:])  # re-merging makes one rolling entry at the old end
    if any(merged) and len(timeline.entries) > 1:
        assert timeline.entries[-1].level == timeline.entries[-2].level == 0 or len(timeline.entries) == 2


@settings(max_examples=60, deadline=None)
@given(records, st.floats(0, 600))
def test_shown_are_the_newest_entries_that_the_allowance_holds(sizes: list[int], allowance: float) -> None:
    timeline = Timeline(FlexaConfig(), [entry(uid, size) for uid, size in enumerate(sizes)])
    shown = timeline.shown(allowance)
    assert shown == timeline.entries[len(timeline.entries) - len(shown) :]
    assert sum(made.tokens for made in shown) <= allowance
    if len(shown) < len(sizes):
        assert sum(sizes[len(sizes) - len(shown) - 1 :]) > allowance


def test_a_reply_over_150_words_is_cut_whoever_wrote_it() -> None:
    timeline = Timeline(FlexaConfig(), [entry(uid, 100) for uid in range(6)])
    merge_down(timeline, 550, number=151)
    assert timeline.entries[0].text == words(150)


def test_a_failing_merge_keeps_the_merges_before_it_and_can_be_tried_again() -> None:
    class Failing(Writer):
        async def merge(self, texts: Sequence[str], labels: Sequence[str]) -> str:
            if len(self.texts) == 1:
                self.texts.append([])
                raise Transient("the endpoint failed")
            return await super().merge(texts, labels)

    timeline = Timeline(FlexaConfig(), RECORDS)
    writer = Failing(2)
    with pytest.raises(Transient):
        asyncio.run(timeline.merge_down(35, writer))
    assert spans(timeline.entries) == FIRST
    asyncio.run(timeline.merge_down(35, writer))
    assert spans(timeline.entries) == [tuple(range(7)), (7,), (8,)]
    assert sum(made.tokens for made in timeline.shown(1_000)) == 30


# ---------------------------------------------------------------- lines


def test_the_label_of_a_record_is_the_units_place_without_the_date() -> None:
    (unit,) = chat(["Hi"])
    assert record_entry(unit, Record(0, "8 May 2023: Hi")).line == "[u00 | session 1] 8 May 2023: Hi\n"
    agent = pack_steps([Step(15, "a", "b"), Step(16, "c", "d")], history="h")[0]
    assert record_entry(agent, Record(0, "15: a -> b")).line == "[u00 | steps 15-16] 15: a -> b\n"


def test_a_line_is_one_line() -> None:
    made = make_entry(0, (0,), "one\n two\r\n\tthree ", "u00")
    assert made.line == "[u00] one two three\n"
    assert made.tokens == tokens.count(made.line)


def test_merged_labels_name_the_first_and_the_last_unit() -> None:
    assert merge_label([1, 2, 3, 4]) == "u01-u04 | merged"
    assert merge_label([99, 100, 101]) == "u99-u101 | merged"


def test_levels_grow_by_one_over_the_highest_merged() -> None:
    timeline = Timeline(FlexaConfig(), [entry(uid, 10) for uid in range(8)])
    for limit, level in ((60, 1), (30, 2)):
        merge_down(timeline, limit)
        assert timeline.entries[0].level == level
    assert all(one.uids[-1] < two.uids[0] for one, two in pairwise(timeline.entries))
