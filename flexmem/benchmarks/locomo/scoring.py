"""LoCoMo's scores of a short answer (docs/methods.md E.1).

`f1_official` follows the rules of the benchmark's own evaluation; `f1_set` and `bleu1` those of A-Mem, which
FluxMem-style tables use. They differ by many points, so that figures compare only under one name.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from nltk.stem.porter import PorterStemmer

from flexmem.benchmarks.locomo.config import ADVERSARIAL

METRICS = ("f1_official", "f1_set", "bleu1")

_MULTI_HOP, _OPEN_DOMAIN = 1, 3
_REFUSALS = ("no information available", "not mentioned")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_DROPPED_WORDS = re.compile(r"\b(?:a|an|the|and)\b")
_SET_MARKS = str.maketrans(".,!?", "    ")
_WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")
_STEMMER = PorterStemmer()


def score(category: int, gold: str | None, reply: str) -> Mapping[str, float]:
    """All of `METRICS`, each in [0, 1]. Category 5 has no gold answer: each is 1 if the reply refuses, else 0."""
    if category == ADVERSARIAL:
        return dict.fromkeys(METRICS, float(refuses(reply)))
    if gold is None:
        raise ValueError(f"a question of category {category} has no gold answer")
    return {
        "f1_official": f1_official(category, gold, reply),
        "f1_set": f1_set(gold, reply),
        "bleu1": bleu1(gold, reply),
    }


def refuses(reply: str) -> bool:
    """Whether a reply says that the conversation doesn't hold the answer."""
    return any(words in reply.lower() for words in _REFUSALS)


def f1_official(category: int, gold: str, reply: str) -> float:
    """F1 of stemmed words with counts. Category 3: gold up to its first ";". Category 1: both cut at ",", the mean over
    gold parts of the best F1 that any part of the reply has with it.
    """
    if category == _MULTI_HOP:
        parts = reply.split(",")
        best = [max(_f1(_stems(wanted), _stems(part)) for part in parts) for wanted in gold.split(",")]
        return sum(best) / len(best)
    if category == _OPEN_DOMAIN:
        gold = gold.split(";")[0]
    return _f1(_stems(gold), _stems(reply))


def f1_set(gold: str, reply: str) -> float:
    """F1 of sets of lower-cased words; of the punctuation only . , ! ? are blanked; one rule for all categories."""
    return _f1(Counter(_plain_words(gold)), Counter(_plain_words(reply)))


def bleu1(gold: str, reply: str) -> float:
    """Share of the reply's words and marks that the gold answer has too (each as often as there at most), times
    exp(1 - gold length / reply length) where the reply is the shorter one.
    """
    wanted, given = _WORD_OR_MARK.findall(gold.lower()), _WORD_OR_MARK.findall(reply.lower())
    if not given:
        return 0.0
    precision = (Counter(wanted) & Counter(given)).total() / len(given)
    return precision * min(1.0, math.exp(1 - len(wanted) / len(given)))


def _f1(gold: Counter[str], reply: Counter[str]) -> float:
    """Harmonic mean of precision and recall, which is twice the common words over all words of both."""
    total = gold.total() + reply.total()
    return 2 * (gold & reply).total() / total if total else 0.0


def _stems(text: str) -> Counter[str]:
    # Punctuation goes first and leaves no space, as in the official code: "mother-in-law" is one word.
    bare = _DROPPED_WORDS.sub(" ", text.lower().translate(_PUNCTUATION))
    return Counter(_stem(word) for word in bare.split())


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    return str(_STEMMER.stem(word))


def _plain_words(text: str) -> set[str]:
    return set(text.lower().translate(_SET_MARKS).split())
