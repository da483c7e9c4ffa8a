"""Log files as JSON: one document, or one object a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flexmem.logs.problems import LogError

MOST_BYTES = 256 * 1024 * 1024
"""A parsed log takes several times its size in memory, so a larger file is refused rather than half loaded."""
_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class LogFile:
    """A file's content. With ``lines``, ``value`` is the list of what stood on those lines (from 1)."""

    source: str
    value: Any
    lines: tuple[int, ...] | None = None

    def place(self, position: int) -> str:
        """Where an item of the list stands: its line, or its place in the JSON."""
        where = f"[{position}]" if self.lines is None else f"line {self.lines[position]}"
        return f"{self.source}: {where}"


def read_file(path: Path) -> LogFile:
    """Read a JSON or JSON-lines file of at most `MOST_BYTES`.

    Raises:
        LogError: it is too large, empty, not UTF-8 or not JSON, with line and column.
        OSError: it can't be read.
    """
    source = str(path)
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise LogError(
            f"{source}: it has {size:,} bytes, and logs of up to {MOST_BYTES:,} are read; take one sample or "
            "conversation out of it"
        )
    raw = path.read_bytes()
    if raw.startswith(_ZIP):
        raise LogError(
            f"{source}: it is a zip archive, as Inspect's .eval logs are; convert it to JSON first: "
            "inspect log convert FILE --to json --output-dir FOLDER"
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise LogError(f"{source}: line {line}: not text in UTF-8 (byte {raw[error.start]:#04x})") from error
    if not text.strip():
        raise LogError(f"{source}: it is empty; expected JSON, or one JSON object a line")
    return _parsed(text, source)


def _parsed(text: str, source: str) -> LogFile:
    try:
        return LogFile(source, json.loads(text))
    except json.JSONDecodeError as error:
        if _is_by_line(text):
            return _by_line(text, source)
        place = f"{source}: line {error.lineno}, column {error.colno}"
        raise LogError(f"{place}: not valid JSON ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise LogError(f"{source}: JSON that can't be read: {error}") from error


def _is_by_line(text: str) -> bool:
    """Whether the first line that is not blank is a JSON object, and more follows."""
    first, _, rest = text.lstrip().partition("\n")
    try:
        return bool(rest.strip()) and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _by_line(text: str, source: str) -> LogFile:
    values, numbers = [], []
    # Not `splitlines`: texts may hold other line separators, which JSON does not escape.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except json.JSONDecodeError as error:
            place = f"{source}: line {number}, column {error.colno}"
            raise LogError(f"{place}: not valid JSON ({error.msg})") from error
        except (ValueError, RecursionError) as error:
            raise LogError(f"{source}: line {number}: JSON that can't be read: {error}") from error
        numbers.append(number)
    return LogFile(source, values, tuple(numbers))
