"""A scripted reply to any prompt: as long as the prompt asks for, and in the form that it asks for."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from flexmem.ports import ChatRequest

WORDS = 80
"""Length of a text whose prompt states none."""
_MANY = 4  # items of a list of texts
_STATED = re.compile(r"\bat most (\d+)(?: [a-z]+)? words\b", re.IGNORECASE)
_LABEL = re.compile(r"\[u?(\d+)\b|\bu(\d+)\b|\b(?:page|note|unit|item|memory) (\d+)\b", re.IGNORECASE)
_HEADING = re.compile(r"^.{0,80}:[ \t]*$", re.MULTILINE)


def stated_length(request: ChatRequest) -> str:
    """Words of the prompt's own material, as many as it states ("at most 80 words"; 80 where it states nothing). With a
    schema, an object that fills it: texts of that length, keywords, numbers that the prompt uses as labels, and choices
    that depend on the prompt alone.

    The material is what follows the prompt's last line that ends with a colon, else all of it.
    """
    prompt = next((message.content for message in reversed(request.messages) if message.role == "user"), "")
    if request.schema is None:
        lengths = _lengths(prompt)
        return " ".join(_material(prompt)[: next(lengths)])
    return json.dumps(_Filler(prompt).fill(request.schema, "reply"), ensure_ascii=False)


class _Filler:
    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._words = _material(prompt)
        self._lengths = _lengths(prompt)
        numbers = (next(filter(None, found.groups())) for found in _LABEL.finditer(prompt))
        self._labels = list(dict.fromkeys(map(int, numbers))) or [0]

    def fill(self, schema: Mapping[str, Any], name: str) -> Any:
        """A value of the schema's type; ``name`` tells properties of one type apart."""
        if "enum" in schema:
            return schema["enum"][self._draw(name) % len(schema["enum"])]
        kind = schema.get("type")
        if kind == "object":
            return {key: self.fill(value, f"{name}.{key}") for key, value in schema.get("properties", {}).items()}
        if kind == "array":
            return self._items(schema.get("items", {}), name)
        if kind == "boolean":
            return self._draw(name) % 2 == 0
        if kind == "integer":
            return self._labels[self._draw(name) % len(self._labels)]
        if kind == "number":
            return (self._draw(name) % 11) / 10
        return " ".join(self._words[: next(self._lengths)])

    def _items(self, schema: Mapping[str, Any], name: str) -> list[Any]:
        kind = schema.get("type")
        if "enum" not in schema and kind == "string":
            frequent = Counter(word.strip(".,:;!?\"'").lower() for word in self._words if len(word) > _MANY)
            return [word for word, _ in frequent.most_common(_MANY) if word]
        if "enum" not in schema and kind == "integer":
            first = self._draw(name) % len(self._labels)
            return (self._labels[first:] + self._labels[:first])[:_MANY]
        return [self.fill(schema, f"{name}[{number}]") for number in range(2)]

    def _draw(self, name: str) -> int:
        text = f"{name}\n{self._prompt}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")


def _material(prompt: str) -> list[str]:
    headings = list(_HEADING.finditer(prompt))
    return (prompt[headings[-1].end() :] if headings else prompt).split() or prompt.split()


def _lengths(prompt: str) -> Iterator[int]:
    """The stated lengths in their order, the last one for ever."""
    stated = [int(number) for number in _STATED.findall(prompt)] or [WORDS]
    yield from stated[:-1]
    while True:
        yield stated[-1]
