"""Large JSON files record by record, wherever the chunks end."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from flexmem.benchmarks.json_streams import array_objects, line_objects
from flexmem.benchmarks.protocol import DataError

RECORDS = [{"a": 1, "text": 'brackets ]}, a quote " and ä€𝄞'}, {}, {"nested": [{"b": [[]]}]}]


def cut(raw: bytes, size: int) -> Iterator[bytes]:
    return (raw[start : start + size] for start in range(0, len(raw), size))


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_is_read_whatever_the_chunks(size: int, indent: int | None) -> None:
    raw = f" {json.dumps(RECORDS, indent=indent, ensure_ascii=False)}\n".encode()
    assert list(array_objects(cut(raw, size), "x.json")) == RECORDS
    assert list(array_objects(cut(b"\xef\xbb\xbf" + raw, size), "x.json")) == RECORDS
    assert list(array_objects([b" [ ] "], "x.json")) == []


def test_records_come_before_the_rest_is_read() -> None:
    def chunks() -> Iterator[bytes]:
        yield b'[{"a": 1}, {"a'
        raise AssertionError("read too far")

    assert next(array_objects(chunks(), "x.json")) == {"a": 1}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", r"^x\.json: line 1, record 0: cut short before an array"),
        (b'{"a": 1}', r"line 1, record 0: not a JSON array"),
        (b'[\n{"a": 1},\n 7]', r"line 3, record 1: not an object"),
        (b'[{"a": 1}\n{"a": 2}]', r"line 2, record 1: not valid JSON \(a comma is missing\)"),
        (b'[{"a": 1},\n{"a":\n"b', r"line 3, record 1: not valid JSON \(.*\): cut short or damaged"),
        (b'[{"a": 1},\n', r"line 2, record 1: cut short before a record"),
        (b'[{"a": 1}', r"line 1, record 1: cut short before the array's end"),
        (b'[{"a": "\xff"}]', r"x\.json: not text in UTF-8"),
    ],
)
def test_what_is_broken_is_named_with_line_and_record(raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(array_objects(cut(raw, 4), "x.json"))


@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_lines_are_read_with_their_numbers(size: int) -> None:
    raw = '{"a": "ä"}\n\n{"b": 2}'.encode()
    assert list(line_objects(cut(raw, size), "x.jsonl")) == [(1, {"a": "ä"}), (3, {"b": 2})]
    assert list(line_objects(cut(raw + b"\n", size), "x.jsonl")) == [(1, {"a": "ä"}), (3, {"b": 2})]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"a": 1}\n{"a":', r"^x\.jsonl: line 2: not valid JSON at column 6 \(.*\): cut short or damaged"),
        (b"{}\n[]\n", r"line 2: not a JSON object"),
        (b'{"a": "\xff"}', r"line 1: not text in UTF-8"),
    ],
)
def test_a_broken_line_is_named(raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(line_objects([raw], "x.jsonl"))
