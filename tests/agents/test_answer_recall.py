"""Answer recall: one form for numbers and dates, its population, and agreement with reading the text (docs/methods.md
E.6b).
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.agents.answer_recall import WordFinder, answer_words
from flexmem.contract.cases import WordEmbedder, services
from flexmem.history import Session, Turn, Unit, cut_pieces, split_sessions
from flexmem.memory.assemble import assemble
from flexmem.memory.protocol import Budget, MemoryBuild, Query, Rendering, Resolution
from flexmem.memory.registry import find_method
from flexmem.memory.selection import Fragment
from tests.memory.examples import TOPICS, history

# ---------------------------------------------------------------- one form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("7th", "7"),
        ("the 1st, 2nd, 3rd", "1 2 3"),
        ("07", "7"),
        ("2,000", "2000"),
        ("1,234,567", "1234567"),
        ("two", "2"),
        ("Twelve kettles", "12 kettles"),
        ("Sept", "september"),
        ("7 Sep 2023", "September 7th, 2023"),
        ("May", "may"),
        ("KETTLE!", "kettle"),
        ("the kettle of the house", "kettle house"),
        ("٧", "7"),
    ],
)
def test_these_are_the_same(one: str, other: str) -> None:
    assert answer_words(one) == answer_words(other) != frozenset()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("7", "70"),
        ("2,00", "200"),
        ("may", "march"),
        ("twenty", "20"),
        ("2.5", "25"),
        ("third", "3"),
        ("sat", "saturday"),
    ],
)
def test_these_are_not(one: str, other: str) -> None:
    assert answer_words(one) != answer_words(other)


def test_a_number_of_thousands_of_digits_is_a_word_like_any_other() -> None:
    """Python refuses to read a number of more than 4,300 digits."""
    number = "9" * 5_000
    assert answer_words(f"it was {number}") == {number}


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9))
def test_a_number_is_itself_in_every_spelling(number: int) -> None:
    suffix = "th" if number % 10 not in (1, 2, 3) else {1: "st", 2: "nd", 3: "rd"}[number % 10]
    for spelled in (f"{number:,}", f"{number:012d}", f"{number}{suffix}"):
        assert answer_words(spelled) == answer_words(str(number))


# ---------------------------------------------------------------- population

TURNS = (Turn("a", "user", "I sold the red kettle for 2,000 euros."), Turn("b", "assistant", "Well done."))
(UNIT,) = split_sessions([Session("3", TURNS, "8 May 2023")], history="h")
PIECES = cut_pieces(UNIT, piece_tokens=128, first_index=0)
FINDER = WordFinder([UNIT], PIECES)


@pytest.mark.parametrize(
    ("answer", "extractive"),
    [
        ("the red kettle", True),
        ("2000 euros", True),
        ("8 May", True),  # the session's date stands in the unit's header
        ("May 8th, 2023", True),
        ("a blue kettle", False),
        ("three", True),  # session 3, by its header
        ("four", False),
        ("", False),  # no content word: no question of answer recall
        ("the", False),
    ],
)
def test_a_question_counts_if_all_words_of_its_answer_are_in_the_history(answer: str, extractive: bool) -> None:
    assert FINDER.is_extractive(answer_words(answer)) == extractive


def test_an_answer_without_a_content_word_has_no_recall() -> None:
    with pytest.raises(ValueError, match="no recall"):
        FINDER.recall(answer_words("the"), assemble([]))


# ---------------------------------------------------------------- recall


def rendering_of(*blocks: tuple[str, Resolution, tuple[int, ...]]) -> Rendering:
    return assemble([Fragment(text, 1, (0,), resolution, pieces) for text, resolution, pieces in blocks])


@pytest.mark.parametrize(
    ("rendering", "recall"),
    [
        (rendering_of(), 0.0),
        (rendering_of((UNIT.text, Resolution.RAW, (0, 1))), 1.0),
        # Without the header: kettle and 2000 of kettle, 2000, 8, may.
        (rendering_of((PIECES[0].text, Resolution.PIECE, (0,))), 0.5),
        (rendering_of((UNIT.header + PIECES[1].text, Resolution.EXCERPT, (1,))), 0.5),
        (rendering_of(("[u00 | session 3] 8 May 2023: a kettle\n", Resolution.RECORD, ())), 0.75),
        (rendering_of(("# Details\n", Resolution.FRAME, ()), ("2,000 kettles\n", Resolution.NOTE, ())), 0.25),
    ],
)
def test_recall_is_the_share_of_the_answers_words_that_the_text_holds(rendering: Rendering, recall: float) -> None:
    assert FINDER.recall(answer_words("a kettle for 2000 on 8 May"), rendering) == recall


def written(name: str, units: list[Unit]) -> MemoryBuild:
    build = find_method(name).configured({}).build(services())

    async def write() -> None:
        for unit in units:
            await build.write(unit)

    asyncio.run(write())
    return build


@pytest.mark.parametrize("name", ["flexa_unit", "flexa_piece", "truncation", "dense_units", "hybrid_pieces"])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 999), budget=st.integers(64, 900), words=st.lists(st.sampled_from(TOPICS), min_size=1))
def test_recall_is_what_reading_the_whole_rendering_gives(name: str, seed: int, budget: int, words: list[str]) -> None:
    units = history(seed, "reader", 30)
    build = written(name, units)
    answer = answer_words(" ".join(words) + " on 3 May 2023")

    async def render() -> Rendering:
        vector = (await WordEmbedder().embed(["violin"]))[0]
        return await build.view().render(Query.question("violin", vector), Budget(budget))

    rendering = asyncio.run(render())
    found = answer_words(rendering.text) & answer
    finder = WordFinder(units, build.pieces)
    assert finder.recall(answer, rendering) == pytest.approx(len(found) / len(answer))
    everything = frozenset().union(*(answer_words(unit.text) for unit in units))
    assert finder.is_extractive(answer) == (answer <= everything)
    narrow = WordFinder(units, build.pieces, answer)
    assert narrow.recall(answer, rendering) == finder.recall(answer, rendering)
    assert narrow.is_extractive(answer) == finder.is_extractive(answer)
