"""What the forms of a model API have in common: a body is made from a request, a reply read from a decoded 200."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from flexmem.llm.capabilities import Capabilities
from flexmem.llm.errors import Malformed, Place, classify_answer
from flexmem.ports import ChatReply, ChatRequest, Usage

__all__ = ["WireForm", "answered", "count_at", "malformed", "schema_name"]


class WireForm(Protocol):
    """One API's form of a call."""

    def __init__(self, row: Capabilities, reasoning_tokens: int) -> None: ...

    def body(self, model: str, request: ChatRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The body, and the names of what the model doesn't take."""
        ...

    def read(self, answer: object, place: Place) -> ChatReply:
        """The reply in a decoded 200.

        Raises:
            ModelError: it holds an error (some servers send those with 200), a refusal, or no reply.
        """
        ...


def answered(answer: object, place: Place) -> Mapping[str, Any]:
    """The object that a 200 holds.

    Raises:
        ModelError: it is none, or an error.
    """
    if not isinstance(answer, dict):
        raise malformed(place, f"JSON of type {type(answer).__name__}")
    if answer.get("error"):
        status = answer["error"].get("code") if isinstance(answer["error"], dict) else None
        raise classify_answer(status if isinstance(status, int) else 200, answer, place=place)
    return answer


def malformed(place: Place, found: str, usage: Usage | None = None) -> Malformed:
    """A 200 without a reply; ``found`` says what it has instead."""
    return Malformed(f"{place}: the answer is not a model's reply ({found}).", status=200, usage=usage)


def count_at(counts: object, *path: str) -> int | None:
    """The number at a path of nested objects; None where there is none."""
    value = counts
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def schema_name(schema: Mapping[str, Any]) -> str:
    """What OpenAI's APIs call a schema: its title, in the characters that they allow."""
    title = str(schema.get("title", "reply"))
    return "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in title)[:64]
