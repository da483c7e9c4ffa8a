"""The four options of a question, which the file writes as JSON in some rows and as a Python list in others."""

from __future__ import annotations

import ast
import json
from contextlib import suppress
from typing import Any

LETTERS = "abcd"


def parse_options(text: str) -> tuple[str, ...]:
    """The options' texts in order, without their ``(a) `` to ``(d) ``.

    Raises:
        ValueError: neither JSON nor a Python literal, or not four texts that begin with their letters.
    """
    options = _literal(text)
    marks = [f"({letter}) " for letter in LETTERS]
    if not isinstance(options, list) or len(options) != len(marks) or not all(isinstance(o, str) for o in options):
        raise ValueError("not a list of four texts")
    for option, mark in zip(options, marks, strict=True):
        if not option.startswith(mark):
            raise ValueError(f"option {option[:20]!r} does not begin with {mark!r}")
    return tuple(option.removeprefix(mark) for option, mark in zip(options, marks, strict=True))


def parse_letter(text: str) -> int:
    """The position of the option that ``(c)`` names.

    Raises:
        ValueError: it names none.
    """
    letter = text.strip().removeprefix("(").removesuffix(")").lower()
    if len(letter) != 1 or letter not in LETTERS:
        raise ValueError(f"{text!r} is none of (a) to (d)")
    return LETTERS.index(letter)


def _literal(text: str) -> Any:
    with suppress(json.JSONDecodeError):
        return json.loads(text)
    try:
        return ast.literal_eval(text)  # literals only: nothing is run
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError("neither JSON nor a Python list") from error
