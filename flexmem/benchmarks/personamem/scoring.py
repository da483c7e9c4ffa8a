"""Which option a reply names (docs/methods.md E.2b), restated from the benchmark's own evaluation."""

from __future__ import annotations

import re

from flexmem.benchmarks.personamem.prompts import FINAL

_BRACKETED = re.compile(r"\(([a-d])\)")
_ALONE = re.compile(r"\b([a-d])\b")
_END = "</final_answer>"


def names_only(reply: str, letter: str) -> bool:
    """Whether the part after the last token, or else the whole reply, names ``letter`` and no other option.

    A part's letters are those in brackets, or without any, those that stand alone; case doesn't count.
    """
    final = reply.strip().split(FINAL)[-1].strip().removesuffix(_END)
    return _letters(final) == {letter} or _letters(reply) == {letter}


def _letters(text: str) -> set[str]:
    text = text.lower()
    return set(_BRACKETED.findall(text)) or set(_ALONE.findall(text))
