"""From text to the words that BM25 indexes (docs/methods.md A.3; FlexA-Mem App. A: "lower-cased content words without
stop words and markup").

Of the Markdown markers ``#*_>|`` and backticks only ``_`` is a word character, so splitting at ``\\w+`` already strips
the others and leaves the text inside. ``_`` is a marker at the edge of a word (``_really_``, ``__init__``) and part of
the word inside it (``access_token``).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from nltk.stem.snowball import SnowballStemmer

from flexmem.retrieval.stopwords import STOP_WORDS

_NAME = r"[A-Za-z][\w:.-]*+"
_ATTRIBUTE = r"\s++[A-Za-z_:@][\w:.-]*+"
_VALUE = r"""\s*+=\s*+(?>"[^"<>]*+"|'[^'<>]*+'|[^\s"'<>]++)"""
# Possessive throughout: a text of many unclosed tags is scanned once. After a word, an attribute must have a value:
# `x<y and y>z` is a comparison, not a tag.
_TAG = re.compile(
    rf"(?<!\w)<{_NAME}(?:{_ATTRIBUTE}(?:{_VALUE})?+)*+\s*+/?+>"
    rf"|<{_NAME}(?:{_ATTRIBUTE}{_VALUE})*+\s*+/?+>"
    rf"|</{_NAME}\s*+>"
    r"|<[!?][A-Za-z][^<>]*+>"
)
_WORD = re.compile(r"\w+")
_STEMS_KEPT = 1 << 18  # words; some 40 MB at most, more than the vocabulary of any one benchmark


def content_words(text: str, *, stemmed: bool = False) -> list[str]:
    """The indexed words of ``text``, in order, repeats kept: markup stripped, Unicode words lower-cased, stop words and
    one-character words other than digits dropped; ``stemmed`` applies the English Snowball stemmer to what is left.
    """
    if "<" in text:
        text = _TAG.sub(" ", text)
    found = _WORD.findall(text)
    if "_" in text:
        found = [word.strip("_") for word in found]
    words = [word for raw in found if (word := raw.lower()) not in STOP_WORDS and (len(word) > 1 or word.isdigit())]
    return [_stem(word) for word in words] if stemmed else words


@cache
def _stemmer() -> SnowballStemmer:
    return SnowballStemmer("english")


@lru_cache(maxsize=_STEMS_KEPT)
def _stem(word: str) -> str:
    stem: str = _stemmer().stem(word)
    return stem
