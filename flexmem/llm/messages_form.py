"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

from flexmem.llm.capabilities import Capabilities, Parameters
from flexmem.llm.errors import Place, Refused
from flexmem.llm.wire import answered, count_at, malformed
from flexmem.ports import ChatReply, ChatRequest, Usage

__all__ = ["MessagesForm"]

_LEAST_BUDGET = 1_024  # the API refuses fewer tokens of thinking
_SHARES = {"low": 0.25, "medium": 0.5, "high": 1.0}  # of the tokens for reasoning, where a model thinks by a budget
_FINISHES = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}
_FINISHES |= {"model_context_window_exceeded": "length"}  # the reply ran into the end of the window


class MessagesForm:
    """A `flexmem.llm.wire.WireForm`.

    An agent's prompts grow from step to step, so they are cached up to their last message; those of other roles are
    read once, and writing them to the cache would cost more than it saves.
    """

    def __init__(self, row: Capabilities, reasoning_tokens: int) -> None:
        self._row, self._reasoning_tokens = row, max(reasoning_tokens, _LEAST_BUDGET)

    def body(self, model: str, request: ChatRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        """See `WireForm.body`."""
        sent = self._row.parameters(request, reasoning_tokens=self._reasoning_tokens)
        system = "\n\n".join(message.content for message in request.messages if message.role == "system")
        turns = [
            {"role": message.role, "content": message.content}
            for message in request.messages
            if message.role != "system"
        ]
        body: dict[str, Any] = {"model": model, "max_tokens": sent.limit, "messages": turns}
        if system:
            body["system"] = system
        if request.role == "agent":
            body["cache_control"] = {"type": "ephemeral"}
        output: dict[str, Any] = {}
        if sent.reasons and self._row.thinking in ("adaptive", "effort_and_budget"):
            output["effort"] = sent.effort
        if sent.schema == "json_schema" and request.schema is not None:
            output["format"] = {"type": "json_schema", "schema": dict(request.schema)}
        if output:
            body["output_config"] = output
        thinking = self._thinking(sent)
        if thinking is not None:
            body["thinking"] = thinking
        dropped = sent.dropped
        if sent.temperature is not None:
            body["temperature"] = min(sent.temperature, 1.0)  # this API's scale ends there
            dropped += ("temperature",) if sent.temperature > 1.0 else ()
        return body, dropped

    def read(self, answer: object, place: Place) -> ChatReply:
        """See `WireForm.read`."""
        content = answered(answer, place)
        usage = _usage(content.get("usage"))
        blocks, reason = content.get("content"), content.get("stop_reason")
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise malformed(place, "no content", usage)
        if reason == "refusal":
            details = content.get("stop_details")
            why = details.get("explanation") or details.get("category") if isinstance(details, dict) else None
            said = place.quote(str(why)) if why else "no explanation"
            raise Refused(f"{place}: the model refused: {said}", status=200, usage=usage)
        if not isinstance(reason, str):
            raise malformed(place, "no reason why it stopped", usage)
        texts = [block.get("text") for block in blocks if block.get("type") == "text"]
        if not all(isinstance(text, str) for text in texts):
            raise malformed(place, "content that is not text", usage)
        model = str(content.get("model") or place.model)
        return ChatReply("".join(map(str, texts)), model, usage, _FINISHES.get(reason, reason))

    def _thinking(self, sent: Parameters) -> dict[str, Any] | None:
        """How the model is made to think, or kept from it: some do by themselves."""
        if self._row.thinking == "adaptive":
            return {"type": "adaptive" if sent.reasons else "disabled"}
        if self._row.thinking == "none" or not sent.reasons:
            return None
        share = _SHARES.get(sent.effort or "", 1.0)
        return {"type": "enabled", "budget_tokens": max(_LEAST_BUDGET, round(share * self._reasoning_tokens))}


def _usage(counts: object) -> Usage:
    """Anthropic counts the cached and the written part of a prompt beside the rest, everyone else within it."""
    rest, cached = count_at(counts, "input_tokens"), count_at(counts, "cache_read_input_tokens")
    written = count_at(counts, "cache_creation_input_tokens")
    return Usage(
        input=None if rest is None else rest + (cached or 0) + (written or 0),
        output=count_at(counts, "output_tokens"),
        cached=cached,
        reasoning=count_at(counts, "output_tokens_details", "thinking_tokens"),
        cache_written=written,
    )
