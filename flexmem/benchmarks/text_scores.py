"""Scoring replies without a model: token F1 and containment of words that were normalised first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS)}
_ARTICLES = {"a", "an", "the"}
_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)

_ISO_DATE = re.compile(r"\b(\d{4})[-/](\d{1,2})[-/](\d{1,2})\b")
_MONTH_FIRST = re.compile(rf"\b({'|'.join(_MONTH_NAMES)})\s+(\d{{1,2}})(?:st|nd|rd|th)?\b,?\s+(\d{{4}})\b")
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({'|'.join(_MONTH_NAMES)})\b,?")
_WITHIN_NUMBER = re.compile(r"(?<=\d)[,:.](?=\d)")
_DASH = re.compile(r"[-–—/]")
_PUNCTUATION = re.compile(r"[^\w\s]")

_ABSTENTIONS = (
    "not mentioned",
    "not mention",
    "not stated",
    "not state",
    "not say",
    "not said",
    "not specified",
    "not know",
    "unknown",
    "no information",
    "no mention",
    "not enough information",
    "cannot be answered",
    "can not be answered",
    "cant be answered",
)


def words(text: str) -> list[str]:
    """The words that scores compare: lower-cased, dates as ``9 march 2024``, numbers up to twelve as digits, without
    articles and punctuation.
    """
    text = _ISO_DATE.sub(_spell_date, text.casefold())
    text = _MONTH_FIRST.sub(r"\2 \1 \3", text)
    text = _DAY_FIRST.sub(r"\1 \2", text)
    text = _PUNCTUATION.sub("", _DASH.sub(" ", _WITHIN_NUMBER.sub("", text)))
    return [_NUMBER_DIGITS.get(word, word) for word in text.split() if word not in _ARTICLES]


def _spell_date(match: re.Match[str]) -> str:
    year, month, day = map(int, match.groups())
    return f"{day} {_MONTH_NAMES[month - 1]} {year}" if 1 <= month <= len(_MONTH_NAMES) else match.group()


def f1(gold: str, reply: str) -> float:
    """Harmonic mean of precision and recall over bags of `words`; 0 where they share none."""
    expected, given = Counter(words(gold)), Counter(words(reply))
    common = (expected & given).total()
    return 2 * common / (expected.total() + given.total()) if common else 0.0


def contains(parts: Sequence[str], reply: str) -> bool:
    """Whether the `words` of each part occur in the reply's, in a row; the parts in any order."""
    given = f" {' '.join(words(reply))} "
    return all(f" {' '.join(words(part))} " in given for part in parts)


def abstains(reply: str) -> bool:
    """Whether the reply says that what it was given doesn't tell."""
    given = f" {' '.join(words(reply))} "
    return any(f" {phrase} " in given for phrase in _ABSTENTIONS)
