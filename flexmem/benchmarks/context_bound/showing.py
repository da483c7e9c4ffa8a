"""Patterns of values as outputs show them: word for word, with what identifies them, in any white space."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_SPACE = r"(?:\s|\\n|\\r|\\t)+"
_NOT_IN_WORD = r"(?![\w.])"
_LEAST_CONTEXT = 12
"""Characters beside a value that is found in a text, so that it can be told from another one of its kind."""


def is_scalar(value: object) -> bool:
    """Whether a person would copy it: a word, a title, a number."""
    return isinstance(value, int | float | str) and not isinstance(value, bool) and 0 < len(str(value)) <= 80


def field_pattern(row: Mapping[str, Any], key: str, others: Sequence[Mapping[str, Any]]) -> str:
    """A field of an object as JSON has it, together with the nearest other field that tells the object from ``others``
    and all that stands between them.
    """
    names = list(row)
    place = names.index(key)
    by_distance = sorted((name for name in names if name != key), key=lambda name: abs(names.index(name) - place))
    telling = (name for name in by_distance if is_scalar(row[name]) and _tells(row[name], name, others))
    neighbour = next(telling, None)
    first, last = sorted((place, names.index(neighbour))) if neighbour is not None else (place, place)
    return r"\s*,\s*".join(_field(name, row[name], grouped=name == key) for name in names[first : last + 1])


def element_pattern(value: str | int | float) -> str:
    """A scalar that stands by itself, in JSON."""
    return _json(value, grouped=True)


def prose_pattern(text: str, start: int, end: int, first: int, last: int) -> str:
    """``text[start:end]`` in the words of ``text[first:last]`` around it, printed as it is or within JSON; the words
    are widened where they are too few.
    """
    while first > 0 and (start - first < _LEAST_CONTEXT or not text[first - 1].isspace()) and start - first < 60:
        first -= 1
    while last < len(text) and (last - end < 1 or not text[last].isspace()) and last - end < 60:
        last += 1
    return f"{_prose(text[first:start])}({_prose(text[start:end])}){_prose(text[end:last]) or _NOT_IN_WORD}"


def _tells(value: object, name: str, others: Sequence[Mapping[str, Any]]) -> bool:
    return all(other.get(name) != value for other in others)


def _field(name: str, value: object, *, grouped: bool) -> str:
    return rf"{re.escape(json.dumps(name))}\s*:\s*{_json(value, grouped=grouped)}"


def _json(value: object, *, grouped: bool = False) -> str:
    if isinstance(value, dict):
        inner = r"\s*,\s*".join(_field(str(name), one, grouped=False) for name, one in value.items())
        return rf"\{{\s*{inner}\s*\}}"
    if isinstance(value, list):
        elements = r"\s*,\s*".join(map(_json, value))
        return rf"\[\s*{elements}\s*\]"
    text = r"\s+".join(re.escape(word) for word in json.dumps(value).split(" "))
    end = "" if isinstance(value, str) else _NOT_IN_WORD
    return f"({text}){end}" if grouped else f"{text}{end}"


def _prose(text: str) -> str:
    """A text's words, with any white space between them, escaped as JSON does or not."""
    words = re.split(r"\s+", text)
    return _SPACE.join("".join(map(_character, word)) for word in words)


def _character(character: str) -> str:
    if character in '"\\':
        return rf"\\?{re.escape(character)}"
    if not character.isascii():
        return rf"(?:{character}|{re.escape(json.dumps(character)[1:-1])})"
    return re.escape(character)
