"""Answer recall: which share of a gold answer's content words a rendering holds (ours; docs/methods.md E.6b)."""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable
from functools import lru_cache

from flexmem.history import Piece, Unit
from flexmem.memory.protocol import VERBATIM, Rendering
from flexmem.retrieval.text import content_words

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_SHORT_MONTHS = {month[:3]: month for month in _MONTHS} | {"sept": "september"}
_NUMBER_WORDS = dict(
    zip(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
        map(str, range(13)),
        strict=True,
    )
)
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_LONGEST_NUMBER = 1_000  # digits; Python refuses to read numbers of some thousand
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}\b)")


def answer_words(text: str) -> frozenset[str]:
    """Content words with numbers and dates in one form: ``7th`` and ``07`` are ``7``, ``2,000`` is ``2000``, ``two``
    is ``2``, ``Sept`` is ``september``.
    """
    return frozenset(map(_normal, content_words(_GROUPED.sub("", text))))


@lru_cache(maxsize=1 << 17)
def _normal(word: str) -> str:
    ordinal = _ORDINAL.fullmatch(word)
    if ordinal:
        word = ordinal.group(1)
    if word.isdecimal() and len(word) <= _LONGEST_NUMBER:
        return str(int(word))
    return _SHORT_MONTHS.get(word) or _NUMBER_WORDS.get(word) or word


class WordFinder:
    """Finds answer words in a history and in renderings of it, without reading a rendering's verbatim text again.

    Args:
        units: the history.
        pieces: the same, cut.
        words: the answers' words that will be asked for; None: all.
    """

    def __init__(self, units: Iterable[Unit], pieces: Iterable[Piece], words: Collection[str] | None = None) -> None:
        wanted = None if words is None else frozenset(words)
        self._headers = [unit.header for unit in units]
        self._pieces_with: dict[str, array[int]] = {}
        for piece in pieces:
            held = answer_words(piece.text)
            for word in held if wanted is None else held & wanted:
                self._pieces_with.setdefault(word, array("i")).append(piece.index)
        self._header_words = {word for header in self._headers for word in answer_words(header)}

    def is_extractive(self, answer: frozenset[str]) -> bool:
        """Whether all of the answer's words occur in the history (its dates included): the population of answer
        recall.
        """
        return bool(answer) and all(word in self._pieces_with or word in self._header_words for word in answer)

    def recall(self, answer: frozenset[str], rendering: Rendering) -> float:
        """Share of the answer's words that the rendering's text holds, in [0, 1].

        Raises:
            ValueError: the answer has no content word; such a question has no answer recall.
        """
        if not answer:
            raise ValueError("an answer without a content word has no recall")
        shown = rendering.shown_pieces()
        missing = {word for word in answer if shown.isdisjoint(self._pieces_with.get(word, ()))}
        for block in rendering.blocks:
            if not missing:
                break
            text = rendering.text[block.start : block.end]
            if block.resolution in VERBATIM:
                headers = [self._headers[uid] for uid in block.uids]
                text = "".join(header for header in headers if text.startswith(header))
            missing -= _words_of_line(text)
        return 1 - len(missing) / len(answer)


@lru_cache(maxsize=1 << 14)
def _words_of_line(text: str) -> frozenset[str]:
    """Headers and timeline lines come back call after call."""
    return answer_words(text)
