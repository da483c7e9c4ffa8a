"""Large JSON files read one record at a time: an array of objects, or one object a line."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from flexmem.benchmarks.protocol import DataError

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def array_objects(chunks: Iterable[bytes], source: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSON array in UTF-8, in order; only about one of them is held in memory. ``source`` names the
    file in errors.

    Raises:
        DataError: not text in UTF-8, not an array of objects, or cut short, with line and record.
    """
    text = _Window(_decoded(chunks, source), source)
    if text.next_mark("an array") != "[":
        raise text.problem("not a JSON array")
    text.skip(1)
    mark = text.next_mark("a record")
    while mark != "]":
        if mark != "{":
            raise text.problem("not an object")
        yield text.take_object()
        mark = text.next_mark("the array's end")
        if mark == ",":
            text.skip(1)
            mark = text.next_mark("a record")
        elif mark != "]":
            raise text.problem("not valid JSON (a comma is missing)")


def line_objects(chunks: Iterable[bytes], source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Pairs of line number, from 1, and object of a JSON-lines file in UTF-8; blank lines are passed over.

    Raises:
        DataError: a line is no JSON object, or not UTF-8, with its number.
    """
    for number, line in enumerate(_lines(chunks), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{source}: line {number}: not valid JSON at column {error.colno} ({error.msg}): cut short or damaged. "
                "Replace the file."
            ) from error
        except UnicodeDecodeError as error:
            raise DataError(f"{source}: line {number}: not text in UTF-8 ({error}). Replace the file.") from error
        if not isinstance(value, dict):
            raise DataError(f"{source}: line {number}: not a JSON object. Replace the file.")
        yield number, value


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _decoded(chunks: Iterable[bytes], source: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        for chunk in chunks:
            yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: not text in UTF-8 ({error}). Replace the file.") from error


class _Window:
    """The part of a text that is being looked at, and where in the file it stands."""

    def __init__(self, parts: Iterator[str], source: str) -> None:
        self._parts = parts
        self._source = source
        self._text = ""
        self._line = 1
        self._record = 0

    def next_mark(self, wanted: str) -> str:
        """The next character that is no white space; it stays."""
        while True:
            self.skip(len(_match(self._text)))
            if self._text:
                return self._text[0]
            if not self._more():
                raise self.problem(f"cut short before {wanted}")

    def skip(self, length: int) -> None:
        """Pass over ``length`` characters."""
        self._line += self._text.count("\n", 0, length)
        self._text = self._text[length:]

    def take_object(self) -> dict[str, Any]:
        """The object that starts here."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text)
            except json.JSONDecodeError as error:
                # An unfinished object and a broken one look alike, so all that is left is tried before it is called so.
                if self._more():
                    continue
                line = self._line + error.lineno - 1
                raise self.problem(f"not valid JSON ({error.msg}): cut short or damaged", line) from error
            self.skip(end)
            self._record += 1
            assert isinstance(value, dict)  # it starts with a brace
            return value

    def problem(self, what: str, line: int | None = None) -> DataError:
        """What is wrong, with place and remedy."""
        return DataError(f"{self._source}: line {line or self._line}, record {self._record}: {what}. Replace the file.")

    def _more(self) -> bool:
        """Twice as much text, so that a long object is looked at a few times only; False at the end of the file."""
        wanted, parts, size = max(len(self._text), 1), [self._text], 0
        for part in self._parts:
            parts.append(part)
            size += len(part)
            if size >= wanted:
                break
        self._text = "".join(parts)
        return size > 0


def _match(text: str) -> str:
    found = _BLANK.match(text)
    return found[0] if found else ""
