"""Chat Completions, as OpenAI and all compatible servers have it."""

from __future__ import annotations

from typing import Any

from flexmem.llm.capabilities import Capabilities, is_closed
from flexmem.llm.errors import Place, Refused, Transient
from flexmem.llm.wire import answered, count_at, malformed, schema_name
from flexmem.ports import ChatReply, ChatRequest, Usage

__all__ = ["ChatForm"]


class ChatForm:
    """A `flexmem.llm.wire.WireForm`."""

    def __init__(self, row: Capabilities, reasoning_tokens: int) -> None:
        self._row, self._reasoning_tokens = row, reasoning_tokens

    def body(self, model: str, request: ChatRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        """See `WireForm.body`."""
        sent = self._row.parameters(request, reasoning_tokens=self._reasoning_tokens)
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        body: dict[str, Any] = {"model": model, "messages": messages, self._row.limit: sent.limit}
        if sent.effort is not None:
            body["reasoning_effort"] = sent.effort
        if sent.temperature is not None:
            body["temperature"] = sent.temperature
        if sent.schema == "json_object":
            body["response_format"] = {"type": "json_object"}
        elif sent.schema == "json_schema" and request.schema is not None:
            schema = dict(request.schema)
            form = {"name": schema_name(schema), "schema": schema, "strict": is_closed(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body, sent.dropped

    def read(self, answer: object, place: Place) -> ChatReply:
        """See `WireForm.read`."""
        content = answered(answer, place)
        choices = content.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise malformed(place, "no choices")
        message, finish = choices[0].get("message"), choices[0].get("finish_reason") or "stop"
        usage = _usage(content.get("usage"))
        if not isinstance(message, dict):
            raise malformed(place, "no message", usage)
        if message.get("refusal"):
            refusal = place.quote(str(message["refusal"]))
            raise Refused(f"{place}: the model refused: {refusal}", status=200, usage=usage)
        if finish == "content_filter":
            raise Refused(f"{place}: the content filter withheld the reply.", status=200, usage=usage)
        if finish == "error":
            raise Transient(f"{place}: the endpoint failed while it generated.", status=200, usage=usage)
        text = message.get("content")
        if text is None and finish == "length":
            text = ""  # all of the limit went into hidden reasoning
        if not isinstance(text, str):
            raise malformed(place, "no content" if text is None else "content that is not text", usage)
        return ChatReply(text, str(content.get("model") or place.model), usage, str(finish))


def _usage(counts: object) -> Usage:
    return Usage(
        input=count_at(counts, "prompt_tokens"),
        output=count_at(counts, "completion_tokens"),
        cached=count_at(counts, "prompt_tokens_details", "cached_tokens"),
        reasoning=count_at(counts, "completion_tokens_details", "reasoning_tokens"),
        cache_written=count_at(counts, "prompt_tokens_details", "cache_write_tokens"),
    )
