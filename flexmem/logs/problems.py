"""What is wrong with a log, said by place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flexmem.errors import FlexmemError


class LogError(FlexmemError):
    """A log can't be read; the message names the file, the line or place in its JSON, and what was expected there."""


def expected(place: str, wanted: str, found: Any) -> LogError:
    """The error of a value that is not what it should be."""
    return LogError(f"{place}: expected {wanted}, found {_named(found)}")


def member(value: Mapping[str, Any], key: str, place: str, wanted: str) -> Any:
    """A value that must be there.

    Raises:
        LogError: it is not.
    """
    if key not in value:
        raise LogError(f"{place}: {key!r} is missing; expected {wanted}")
    return value[key]


def an_object(value: Any, place: str, wanted: str) -> Mapping[str, Any]:
    """A JSON object.

    Raises:
        LogError: it is something else.
    """
    if not isinstance(value, Mapping):
        raise expected(place, wanted, value)
    return value


def a_list(value: Any, place: str, wanted: str) -> list[Any]:
    """A JSON list.

    Raises:
        LogError: it is something else.
    """
    if not isinstance(value, list):
        raise expected(place, wanted, value)
    return value


def text_or_none(value: Any, place: str) -> str:
    """A text; null is the empty one.

    Raises:
        LogError: it is something else.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise expected(place, "text", value)
    return value


def _named(value: Any) -> str:
    """A JSON value in words, short enough for a message."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return f"the text {value[:40]!r}" if value else "an empty text"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    keys = ", ".join(map(repr, list(value)[:8]))
    return f"an object with {keys}" if keys else "an empty object"
