"""Entities by pattern: paths, URLs, dotted names, numbers, dates, capitalised runs (docs/methods.md A.8)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.memory.flexa.entities import find_entities


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("see https://example.org/a?b=1 now", {"https://example.org/a?b=1"}),
        ("open src/main.py, then /etc/hosts.", {"src/main.py", "/etc/hosts"}),
        ("call api.spotify.login now", {"api.spotify.login"}),
        ("it cost 1,250.50 or 300 but not 12", {"1,250.50", "300"}),
        ("on 8 May, 2023 or May 8, 2023 or 2023-05-08 and 2023/05/08", {"8 May, 2023", "May 8, 2023", "2023-05-08"}),
        ("we met Ann Lee and Bo", {"Ann Lee", "Bo"}),
        ("1,12 and x1,123 and 12ab345", {"1,12", "123"}),
    ],
)
def test_each_kind_is_found(text: str, entities: set[str]) -> None:
    assert entities <= set(find_entities(text, 99))


@pytest.mark.parametrize("text", ["12 and 7", "a word", "Then it ended. Then it began", "v12ab", "----", "////", "1,2"])
def test_other_words_are_none(text: str) -> None:
    assert find_entities(text, 99) == ()


def test_a_sentences_first_word_is_no_name() -> None:
    assert find_entities("Then Ann sang. Later Bo left", 99) == ("Ann", "Bo")


def test_the_first_of_each_are_kept_up_to_the_limit() -> None:
    assert find_entities("a/b a/b c/d 100 e/f", 3) == ("a/b", "c/d", "e/f")
    assert find_entities("x" * 90 + "/y", 9) == ()  # longer than eighty characters


@pytest.mark.parametrize("run", ["-", "/", "1,", "a-", "1.", "Ab ", "a.", "-/"])
def test_a_long_run_of_one_kind_takes_no_time_in_its_square(run: str) -> None:
    """A ruler or a row of digits of 300,000 characters; looked at from each of its characters, hours."""
    assert len(find_entities(run * (300_000 // len(run)), 12)) <= 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["a", "1", "12", ",", ".", "/", "-", " ", "\n", "Ann", "é", "\ud800"]), max_size=30))
def test_entities_are_verbatim_and_distinct(parts: list[str]) -> None:
    text = "".join(parts)
    found = find_entities(text, 5)
    assert len(found) == len(set(found)) <= 5
    assert all(entity in text and 1 < len(entity) <= 80 for entity in found)
