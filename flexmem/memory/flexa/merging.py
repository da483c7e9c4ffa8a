"""Merging records by rule: the head of each step's or sentence's line, in order (docs/methods.md A.5)."""

from __future__ import annotations

import re
from collections.abc import Sequence

# An agent's record is "15: call -> result; 16: ..."; a reader's is sentences.
_STEP = re.compile(r"(?:^|; )(?=\d+: )")
_SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s+|; ")
_LEAST_WORDS = 5  # fewer words of a line do not tell an assigned name and its call


def merge_by_rule(texts: Sequence[str], words: int) -> str:
    """One text of at most ``words`` words out of consecutive records, oldest first.

    Every line keeps its head, where a call's assigned name and distinguishing argument stand. All lines get an equal
    share of words; what short lines leave goes to
    the longer ones.
    """
    lines = [line.split() for text in texts for line in _split(text)]
    lines = [line for line in lines if line]
    if not lines:
        return ""
    share = max(_LEAST_WORDS, words // len(lines))
    while share < max(map(len, lines)) and sum(min(len(line), share + 1) for line in lines) <= words:
        share += 1
    return " ".join([word for line in lines for word in _head(line, share)][:words])


def _head(line: list[str], share: int) -> list[str]:
    """The first words of a line; a cut line ends with a semicolon, so that a later merge finds it again."""
    if len(line) <= share:
        return line
    return [*line[: share - 1], line[share - 1].rstrip(";,") + ";"]


def _split(text: str) -> list[str]:
    steps = [part for part in _STEP.split(text) if part.strip()]
    if len(steps) > 1 or re.match(r"\d+: ", text):
        return [step.rstrip("; ") + ";" for step in steps]
    return _SENTENCE_BREAK.split(text)
