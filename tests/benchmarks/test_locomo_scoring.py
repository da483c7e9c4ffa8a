"""LoCoMo's scores against cases worked by hand, and against rules that are wrong in one point."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from nltk.stem.porter import PorterStemmer

from flexmem.benchmarks.locomo import scoring

# (category, gold, reply, expected). F1 = 2 * common / (words of gold + words of reply).
OFFICIAL = [
    # Articles go, Porter makes bicycles and bicycle "bicycl": 2 common of 2 and 3 words, 2*2/5.
    (4, "The red bicycles", "a red bicycle and helmet", 4 / 5),
    # With counts: gold has "new" twice, the reply once: common new, york; 2*2/(4+2). As sets 2*2/(3+2).
    (4, "New York New Jersey", "New York", 2 / 3),
    # "and" is dropped with the articles.
    (4, "bread and butter", "bread butter", 1.0),
    # A comma leaves no space: both are "10000 steps".
    (4, "10,000 steps", "10000 steps", 1.0),
    # Nor does other punctuation: motherinlaw against mother, in, law.
    (4, "mother-in-law", "mother in law", 0.0),
    # Category 4 isn't cut at ";": 1 common of 5 and 1.
    (4, "Yes; she said so twice", "yes", 1 / 3),
    # Category 3 is: "Yes" against "yes".
    (3, "Yes; she said so twice", "yes", 1.0),
    # Only gold is cut: "yes she said" against "yes", 2*1/(1+3).
    (3, "Yes", "Yes; she said", 1 / 2),
    # Category 2 isn't cut at ",": the same three words.
    (2, "7 May 2023", "May 7, 2023", 1.0),
    # tea best "dark tea" 2*1/3; dark chocolate best "dark tea" 2*1/4; plums 1. Mean of 2/3, 1/2, 1.
    (1, "tea, dark chocolate, plums", "plums, dark tea", 13 / 18),
    # Superfluous parts of the reply cost nothing in category 1.
    (1, "tea", "milk, tea, cake", 1.0),
    # ... but missing ones do: mean of 1 and 0.
    (1, "tea, cake", "tea", 1 / 2),
    # Nothing in common, or nothing at all.
    (4, "tea", "", 0.0),
    (4, "the", "a", 0.0),
    (1, "tea", "", 0.0),
]

SETS = [
    # {the, red, bicycles} and {a, red, bicycle}: no stemming, articles count. 2*1/6.
    ("The red bicycles", "A red bicycle!", 1 / 3),
    # Sets: {very, cold} twice.
    ("very very cold", "very cold", 1.0),
    # Only . , ! ? are blanked, so "tea;" is another word than "tea": 2*1/4.
    ("tea; milk", "tea milk", 1 / 2),
    # They are blanked and not deleted: {3, 5, km} and {3, km}, 2*2/5.
    ("3.5 km", "3 km", 4 / 5),
    ("tea", "", 0.0),
]

BLEU = [
    # "red" counts twice at most: precision 2/3; 3 words against 4: exp(1 - 4/3).
    ("a red red bicycle", "red red red", 2 / 3 * math.exp(-1 / 3)),
    # A longer reply has no brevity penalty: 2 of 4.
    ("red bicycle", "a red bicycle there", 1 / 2),
    # Marks are tokens: "tea", "!" against "tea": 1 of 2.
    ("tea", "Tea!", 1 / 2),
    ("tea", "", 0.0),
    ("tea", "milk", 0.0),
]


@pytest.mark.parametrize(("category", "gold", "reply", "expected"), OFFICIAL)
def test_f1_official(category: int, gold: str, reply: str, expected: float) -> None:
    assert scoring.f1_official(category, gold, reply) == pytest.approx(expected)


@pytest.mark.parametrize(("gold", "reply", "expected"), SETS)
def test_f1_set(gold: str, reply: str, expected: float) -> None:
    assert scoring.f1_set(gold, reply) == pytest.approx(expected)


@pytest.mark.parametrize(("gold", "reply", "expected"), BLEU)
def test_bleu1(gold: str, reply: str, expected: float) -> None:
    assert scoring.bleu1(gold, reply) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Not mentioned in the conversation", 1.0),
        ("(b) NOT MENTIONED", 1.0),
        ("There is no information available on that.", 1.0),
        ("an oven", 0.0),
        ("It was never mentioned", 0.0),
        ("", 0.0),
    ],
)
def test_category_5_asks_whether_the_reply_refuses(reply: str, expected: float) -> None:
    # Also where the file does have an answer ("No"): the official rule doesn't look at it.
    for gold in (None, "No"):
        assert scoring.score(5, gold, reply) == {"f1_official": expected, "f1_set": expected, "bleu1": expected}


def test_a_refusal_is_worth_nothing_in_the_other_categories() -> None:
    assert scoring.score(4, "an oven", "Not mentioned") == {"f1_official": 0.0, "f1_set": 0.0, "bleu1": 0.0}


def test_a_question_without_gold_is_an_error_outside_category_5() -> None:
    with pytest.raises(ValueError, match="category 4 has no gold answer"):
        scoring.score(4, None, "tea")


# ---------------------------------------------------------------- rules that are wrong in one point


@dataclass(frozen=True)
class Rules:
    """The official rules written out once more, each of which can be broken."""

    dropped: tuple[str, ...] = ("a", "an", "the", "and")
    comma: str = ""
    mark: str = ""
    stem: bool = True
    counts: bool = True
    cut_at_semicolon: tuple[int, ...] = (3,)
    split: tuple[int, ...] = (1,)
    mean_over_gold: bool = True

    def words(self, text: str) -> list[str]:
        text = text.replace(",", self.comma).lower()
        text = re.sub(f"[{re.escape(string.punctuation)}]", self.mark, text)
        words = [word for word in text.split() if word not in self.dropped]
        return [PorterStemmer().stem(word) for word in words] if self.stem else words

    def f1(self, gold: str, reply: str) -> float:
        wanted, given = self.words(gold), self.words(reply)
        if not self.counts:
            wanted, given = list(set(wanted)), list(set(given))
        common = sum((Counter(wanted) & Counter(given)).values())
        if not common:
            return 0.0
        precision, recall = common / len(given), common / len(wanted)
        return 2 * precision * recall / (precision + recall)

    def score(self, category: int, gold: str, reply: str) -> float:
        if category in self.cut_at_semicolon:
            gold = gold.split(";")[0]
        if category not in self.split:
            return self.f1(gold, reply)
        outer, inner = gold.split(","), reply.split(",")
        if not self.mean_over_gold:
            return sum(max(self.f1(g, r) for g in outer) for r in inner) / len(inner)
        return sum(max(self.f1(g, r) for r in inner) for g in outer) / len(outer)


WRONG = {
    "sets instead of counts": {"counts": False},
    "no stemming": {"stem": False},
    "'and' kept": {"dropped": ("a", "an", "the")},
    "articles kept": {"dropped": ()},
    "comma becomes a space": {"comma": " "},
    "punctuation becomes a space": {"mark": " "},
    "gold of category 3 not cut at ';'": {"cut_at_semicolon": ()},
    "gold of category 4 cut at ';'": {"cut_at_semicolon": (3, 4)},
    "category 1 not split": {"split": ()},
    "category 2 split": {"split": (1, 2)},
    "mean over the parts of the reply": {"mean_over_gold": False},
}


def _misses(score: Any) -> int:
    return sum(score(category, gold, reply) != pytest.approx(expected) for category, gold, reply, expected in OFFICIAL)


def test_the_rules_written_out_agree_with_every_case() -> None:
    assert _misses(Rules().score) == 0


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_rule_fails_a_case(name: str) -> None:
    assert _misses(replace(Rules(), **WRONG[name]).score) > 0


SET_WRONG = {
    "counts instead of sets": lambda text: Counter(re.sub(r"[.,!?]", " ", text.lower()).split()),
    "all punctuation blanked": lambda text: Counter(set(re.sub(r"[^\w\s]", " ", text.lower()).split())),
    "marks deleted": lambda text: Counter(set(re.sub(r"[.,!?]", "", text.lower()).split())),
    "case kept": lambda text: Counter(set(re.sub(r"[.,!?]", " ", text).split())),
    "stemmed": lambda text: Counter({PorterStemmer().stem(w) for w in re.sub(r"[.,!?]", " ", text.lower()).split()}),
}


@pytest.mark.parametrize("name", SET_WRONG)
def test_each_wrong_set_rule_fails_a_case(name: str) -> None:
    def f1(words: Any, gold: str, reply: str) -> float:
        wanted, given = words(gold), words(reply)
        total = wanted.total() + given.total()
        return 2 * (wanted & given).total() / total if total else 0.0

    wrong = partial(f1, SET_WRONG[name])
    cases = [*SETS, ("Red Tea", "red tea", 1.0)]
    assert any(wrong(gold, reply) != pytest.approx(expected) for gold, reply, expected in cases)
    assert all(scoring.f1_set(gold, reply) == pytest.approx(expected) for gold, reply, expected in cases)
