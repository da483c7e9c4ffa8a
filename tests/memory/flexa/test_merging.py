"""Merging by rule: every line keeps its head, in order, within the words asked for (docs/methods.md A.5)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.memory.flexa.merging import merge_by_rule
from tests.memory.examples import words


def test_what_fits_is_kept_whole() -> None:
    assert merge_by_rule(["8 May 2023: Ann sang. Bo left.", "9 May 2023: Ann slept."], 120) == (
        "8 May 2023: Ann sang. Bo left. 9 May 2023: Ann slept."
    )


def test_a_share_worked_by_hand() -> None:
    """Twenty words for three sentences of 10, 3 and 12 words. An equal share is 6 each; the short one needs 3, so the
    other two have 8 and a half: eight each, 8 + 3 + 8 = 19. A cut line ends with a semicolon.
    """
    texts = [f"{words(10)}. red blue green.", f"{words(12)}."]
    merged = merge_by_rule(texts, 20)
    assert merged == "red blue green one two three red blue; red blue green. red blue green one two three red blue;"
    assert len(merged.split()) == 19


def test_an_agents_record_keeps_the_head_of_every_step() -> None:
    """Two steps of nine words, ten words in all: five each, which is the assigned name, the call and its argument."""
    record = "15: token = login('ann', secret) -> ok as before; 16: song = play('x', 3) -> Error: no such song"
    assert merge_by_rule([record], 10) == "15: token = login('ann', secret); 16: song = play('x', 3);"


def test_a_merged_record_falls_into_its_lines_again() -> None:
    once = merge_by_rule(["15: a = b(1) -> one two three four; 16: c = d(2) -> one two three four"], 10)
    assert once == "15: a = b(1) ->; 16: c = d(2) ->;"
    twice = merge_by_rule([once, "17: e = f(3) -> one two three four"], 15)
    assert twice == "15: a = b(1) ->; 16: c = d(2) ->; 17: e = f(3) ->;"


def test_of_nothing_it_makes_nothing() -> None:
    assert merge_by_rule(["", "  "], 120) == ""


lines = st.lists(st.sampled_from(["red", "blue", "green", "3:", "x.", "a;", "->"]), max_size=30).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(lines, max_size=6), st.integers(5, 130))
def test_merged_text_keeps_the_limit_and_the_order_and_adds_no_word(texts: list[str], limit: int) -> None:
    merged = merge_by_rule(texts, limit).split()
    assert len(merged) <= limit
    source = iter(word.rstrip(";,") for text in texts for word in text.split())
    assert all(word.rstrip(";,") in source for word in merged)  # a subsequence: `in` consumes the iterator


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(5, 40), min_size=1, max_size=8))
def test_as_many_words_are_used_as_equal_shares_allow(sizes: list[int]) -> None:
    merged = merge_by_rule([words(size) + "." for size in sizes], 120).split()
    total = sum(sizes)
    assert len(merged) == total if total <= 120 else 120 - len(sizes) < len(merged) <= 120
