"""Text processing for BM25 (docs/methods.md A.3)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmem.retrieval.stopwords import STOP_WORDS
from flexmem.retrieval.text import content_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<b>Bold</b> move", ["bold", "move"]),
        ("<a href=\"http://host/path\" title='x y' id=z>link</a>", ["link"]),
        ("<input disabled>field<br/>next<br>line", ["field", "next", "line"]),
        ("<ns:item data-key='1' @click=go>kept</ns:item >", ["kept"]),
        ("<!DOCTYPE html><?xml version='1.0'?>body", ["body"]),
        ("# Heading\n> quoted `code` | **bold** *it* cell |", ["heading", "quoted", "code", "bold", "cell"]),
        ("```python\nprint\n```", ["python", "print"]),
    ],
)
def test_markup_is_stripped_and_its_text_kept(text: str, words: list[str]) -> None:
    assert content_words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("when count<limit and limit>zero", ["count", "limit", "limit", "zero"]),
        ("price < 5 or weight > 7", ["price", "5", "weight", "7"]),
        ("<https://example.org/page>", ["https", "example", "org", "page"]),
        ("Map<String, Integer>", ["map", "string", "integer"]),
        ("an unclosed <div class=", ["unclosed", "div", "class"]),
    ],
)
def test_an_angle_bracket_that_opens_no_tag_loses_nothing(text: str, words: list[str]) -> None:
    assert content_words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("access_token", ["access_token"]),
        ("user__id = x_1", ["user__id", "x_1"]),
        ("_really_ and __truly__", ["really", "truly"]),
        ("_two words_", ["two", "words"]),
        ("__init__ _private trailing_", ["init", "private", "trailing"]),
        ("___ _ __", []),
    ],
)
def test_an_underscore_marks_at_the_edge_of_a_word_only(text: str, words: list[str]) -> None:
    assert content_words(text) == words


def test_words_are_unicode_lower_cased_and_filtered() -> None:
    assert content_words("Zoë's CAFÉ: I don't like 5 x 12 of them, 東京") == ["zoë", "café", "like", "5", "12", "東京"]


def test_the_month_of_may_is_not_a_stop_word() -> None:
    assert content_words("It may be in May") == ["may", "may"]


def test_the_stop_words_are_a_fixed_lower_case_list_of_about_180() -> None:
    assert 170 <= len(STOP_WORDS) <= 190
    assert all(word == word.lower() and word.isalpha() for word in STOP_WORDS)


def test_stemming_joins_the_forms_of_a_word_and_is_off_by_default() -> None:
    assert content_words("adopted adopting adoption") == ["adopted", "adopting", "adoption"]
    assert content_words("adopted adopting adopts", stemmed=True) == ["adopt"] * 3
    assert content_words("being generously", stemmed=True) == ["generous"]  # stop words go before the stemmer


@given(st.text())
def test_every_word_passes_the_filters(text: str) -> None:
    for word in content_words(text):
        assert word not in STOP_WORDS
        assert len(word) > 1 or word.isdigit()
        assert word == word.strip("_")


@pytest.mark.parametrize("opening", ["<a ", '<a b="', "<a b='", "<", "</a", "<!a", "<a b=c "])
def test_unclosed_tags_cost_linear_time(opening: str) -> None:
    def best(repeats: int) -> float:
        times = []
        for _ in range(3):
            start = time.perf_counter()
            content_words(opening * repeats)
            times.append(time.perf_counter() - start)
        return min(times)

    assert best(40_000) < 100 * best(2_000)  # 20 times the text; quadratic would be 400


def test_a_tag_with_many_attributes_and_no_end_costs_linear_time() -> None:
    assert len(content_words("<a" + " bb" * 100_000)) == 100_000
