"""PersonaMem's table and contexts, checked: what is missing or malformed is named with file, row or line, and field."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from flexmem.benchmarks.checking import NonEmpty, Record, checked
from flexmem.benchmarks.json_streams import line_objects
from flexmem.benchmarks.personamem.options import parse_letter, parse_options
from flexmem.benchmarks.protocol import DataError


class MessageRecord(Record):
    """One message of a context."""

    role: Literal["system", "user", "assistant"]
    content: str


class _Row(Record):
    """One row of the table; everything is text in it."""

    model_config = ConfigDict(strict=False, frozen=True)

    persona_id: NonEmpty
    question_id: NonEmpty
    question_type: NonEmpty
    topic: str
    user_question_or_message: NonEmpty
    correct_answer: str
    all_options: str
    shared_context_id: NonEmpty
    end_index_in_shared_context: Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """One question. ``gold`` is a position among ``options``; its history is the first ``end`` messages of the context.
    ``place`` names the row in messages.
    """

    question_id: str
    question_type: str
    persona_id: str
    topic: str
    text: str
    options: tuple[str, ...]
    gold: int
    context_id: str
    end: int
    place: str


_ROW = TypeAdapter(_Row)
_MESSAGES = TypeAdapter(list[MessageRecord])


def parse_questions(raw: bytes, source: str) -> list[QuestionRecord]:
    """The rows in the file's order; ``source`` names the file in errors.

    Raises:
        DataError: not UTF-8, not the table's columns, a malformed row, or a question id that stands twice.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: not text in UTF-8 ({error}). Replace the file.") from error
    seen: set[str] = set()
    records = []
    for place, row in _rows(text, source):
        record = _question(checked(_ROW, row, place), place)
        if record.question_id in seen:
            raise DataError(f"{place}: question_id: {record.question_id!r} stands twice in the file")
        seen.add(record.question_id)
        records.append(record)
    return records


def parse_contexts(
    chunks: Iterable[bytes], source: str, wanted: Collection[str]
) -> dict[str, tuple[MessageRecord, ...]]:
    """Messages of the contexts whose ids are ``wanted``, out of one ``{id: messages}`` a line.

    Raises:
        DataError: a line is no such object, or an id stands twice.
    """
    contexts: dict[str, tuple[MessageRecord, ...]] = {}
    for number, entry in line_objects(chunks, source):
        place = f"{source}: line {number}"
        if len(entry) != 1:
            raise DataError(f"{place}: {len(entry)} keys where one context is expected. Replace the file.")
        ((context_id, messages),) = entry.items()
        if context_id in contexts:
            raise DataError(f"{place}: context {context_id} stands twice in the file")
        if context_id in wanted:
            records: list[MessageRecord] = checked(_MESSAGES, messages, place, "messages")
            contexts[context_id] = tuple(records)
    return contexts


def _rows(text: str, source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        missing = sorted(set(_Row.model_fields).difference(reader.fieldnames or ()))
        if missing:
            raise DataError(f"{source}: line 1: lacks the columns {', '.join(missing)}")
        for number, row in enumerate(reader, 1):
            yield f"{source}: row {number} (line {reader.line_num})", row
    except csv.Error as error:
        raise DataError(f"{source}: after line {reader.line_num}: broken CSV ({error}). Replace the file.") from error


def _question(row: _Row, place: str) -> QuestionRecord:
    try:
        options = parse_options(row.all_options)
    except ValueError as error:
        raise DataError(f"{place}: all_options: {error}") from error
    try:
        gold = parse_letter(row.correct_answer)
    except ValueError as error:
        raise DataError(f"{place}: correct_answer: {error}") from error
    return QuestionRecord(
        row.question_id,
        row.question_type,
        row.persona_id,
        row.topic,
        row.user_question_or_message,
        options,
        gold,
        row.shared_context_id,
        row.end_index_in_shared_context,
        place,
    )
