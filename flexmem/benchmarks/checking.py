"""Checking benchmark files against a schema: what is wrong is named with file, record and field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from flexmem.benchmarks.protocol import DataError

T = TypeVar("T")


def _number_as_text(value: Any) -> Any:
    """Some answers are bare years and counts."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


NonEmpty = Annotated[str, StringConstraints(min_length=1)]
AnswerText = Annotated[str, BeforeValidator(_number_as_text)]


class Record(BaseModel):
    """Base of a file's records: no conversions; fields that no part of a benchmark uses are not read."""

    model_config = ConfigDict(strict=True, frozen=True)


def parse_json(raw: bytes, source: str) -> Any:
    """The content of a JSON file; ``source`` names it in errors.

    Raises:
        DataError: not JSON, or not UTF-8.
    """
    try:
        return json.loads(raw)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{source}: not valid JSON at line {error.lineno} column {error.colno} ({error.msg}): cut short or "
            "damaged. Replace the file."
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: not text in UTF-8 ({error}). Replace the file.") from error


def member(mapping: Mapping[str, Any], key: str, place: str) -> Any:
    """A value that must be there.

    Raises:
        DataError: it is missing.
    """
    if key not in mapping:
        raise DataError(f"{place}: {key}: missing")
    return mapping[key]


def checked(adapter: TypeAdapter[T], value: Any, place: str, field: str = "") -> T:
    """A value of the adapter's type; ``place`` and ``field`` name it in errors.

    Raises:
        DataError: it is of another type; the first problem is told, further ones are counted.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = field + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        what = "missing" if first["type"] == "missing" else first["msg"]
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise DataError(f"{place}: {where.lstrip('.') or 'top level'}: {what}{more}") from error
