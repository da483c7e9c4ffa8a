"""OpenAI's Responses API, without what it keeps between calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flexmem.llm.capabilities import Capabilities, is_closed
from flexmem.llm.errors import Place, Refused, classify_answer
from flexmem.llm.wire import answered, count_at, malformed, schema_name
from flexmem.ports import ChatReply, ChatRequest, Usage

__all__ = ["ResponsesForm"]


class ResponsesForm:
    """A `flexmem.llm.wire.WireForm`.

    Nothing is stored at the provider, and a model that would be shown its reasoning of earlier turns is told not to be:
    that is history which no memory budget counts.
    """

    def __init__(self, row: Capabilities, reasoning_tokens: int) -> None:
        self._row, self._reasoning_tokens = row, reasoning_tokens

    def body(self, model: str, request: ChatRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        """See `WireForm.body`."""
        sent = self._row.parameters(request, reasoning_tokens=self._reasoning_tokens)
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        body: dict[str, Any] = {"model": model, "input": messages, "max_output_tokens": sent.limit, "store": False}
        reasoning = {} if sent.effort is None else {"effort": sent.effort}
        if self._row.reasoning_context:
            reasoning["context"] = "current_turn"
        if reasoning:
            body["reasoning"] = reasoning
        if sent.temperature is not None:
            body["temperature"] = sent.temperature
        if sent.schema == "json_object":
            body["text"] = {"format": {"type": "json_object"}}
        elif sent.schema == "json_schema" and request.schema is not None:
            schema = dict(request.schema)
            form = {"type": "json_schema", "name": schema_name(schema), "schema": schema, "strict": is_closed(schema)}
            body["text"] = {"format": form}
        return body, sent.dropped

    def read(self, answer: object, place: Place) -> ChatReply:
        """See `WireForm.read`."""
        content = answered(answer, place)
        usage = _usage(content.get("usage"))
        status, reason = content.get("status"), _reason(content)
        if status in ("failed", "cancelled"):
            failed = classify_answer(500, content, place=place)  # it names no error, or `answered` had raised it
            failed.usage = usage
            raise failed
        if reason == "content_filter":
            raise Refused(f"{place}: the content filter withheld the reply.", status=200, usage=usage)
        parts = _parts(content, place, usage)
        refusals = [str(part.get("refusal")) for part in parts if part.get("type") == "refusal"]
        if refusals:
            raise Refused(f"{place}: the model refused: {place.quote(refusals[0])}", status=200, usage=usage)
        texts = [part.get("text") for part in parts if part.get("type") == "output_text"]
        if not texts and reason != "max_output_tokens":
            raise malformed(place, "no text", usage)
        if not all(isinstance(text, str) for text in texts):
            raise malformed(place, "content that is not text", usage)
        finish = {"max_output_tokens": "length"}.get(reason, reason) if status == "incomplete" else "stop"
        return ChatReply("".join(map(str, texts)), str(content.get("model") or place.model), usage, finish)


def _reason(content: Mapping[str, Any]) -> str:
    """Why a response is incomplete."""
    details = content.get("incomplete_details")
    return str(details.get("reason") or "incomplete") if isinstance(details, dict) else ""


def _parts(content: Mapping[str, Any], place: Place, usage: Usage) -> list[Mapping[str, Any]]:
    """The parts of all messages; reasoning and whatever else stands between them is left out."""
    output = content.get("output")
    if not isinstance(output, list):
        raise malformed(place, "no output", usage)
    messages = [item for item in output if isinstance(item, dict) and item.get("type") == "message"]
    parts = [part for message in messages for part in message.get("content") or ()]
    if not all(isinstance(part, dict) for part in parts):
        raise malformed(place, "content that is not text", usage)
    return parts


def _usage(counts: object) -> Usage:
    return Usage(
        input=count_at(counts, "input_tokens"),
        output=count_at(counts, "output_tokens"),
        cached=count_at(counts, "input_tokens_details", "cached_tokens"),
        reasoning=count_at(counts, "output_tokens_details", "reasoning_tokens"),
        cache_written=count_at(counts, "input_tokens_details", "cache_write_tokens"),
    )
