"""What a model takes on Chat Completions: one row per model family.

A parameter that a model would reject or ignore is left out of the request, and its name is reported, so that a result
table can show that a setting had no effect. A name that no row knows is taken for a model on a local server (vLLM,
llama.cpp, SGLang, LM Studio, Ollama).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from flexmem.ports import ChatRequest

__all__ = ["FAMILIES", "Capabilities", "capabilities"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One family's row.

    ``names``: a pattern of the model names it covers, matched from the start, without a provider's prefix. ``limit``:
    how the reply's limit is called. ``efforts``: the values of ``reasoning_effort`` it takes; empty: it takes no such
    parameter. ``default_effort``: what it reasons with when not told, None: it doesn't. ``temperature``: taken always,
    never, or only where the effort is ``none``. ``schema``: what it can be bound to: a JSON Schema, any JSON, nothing.
    """

    family: str
    names: str
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    efforts: tuple[str, ...] = ()
    default_effort: str | None = None
    temperature: Literal["always", "never", "without_effort"] = "always"
    schema: Literal["json_schema", "json_object", "none"] = "json_schema"

    def parameters(self, request: ChatRequest, *, reasoning_tokens: int = 0) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The body's fields besides model and messages, and the names of what was dropped.

        ``reasoning_tokens`` is added to the limit of a model that reasons: the limit counts hidden reasoning as well,
        so a reply's own limit alone would leave nothing of a short answer.
        """
        fields: dict[str, Any] = {}
        dropped: list[str] = []
        effort = request.effort if request.effort in self.efforts else self.default_effort
        if request.effort is not None:
            if request.effort in self.efforts:
                fields["reasoning_effort"] = request.effort
            else:
                dropped.append("effort")
        reasons = effort not in (None, "none")
        fields[self.limit] = request.max_tokens + (reasoning_tokens if reasons else 0)
        if request.temperature is not None:
            if self.temperature == "always" or (self.temperature == "without_effort" and not reasons):
                fields["temperature"] = request.temperature
            else:
                dropped.append("temperature")
        if request.schema is not None:
            form = self._response_format(request, request.schema)
            if form is not None:
                fields["response_format"] = form
            if form is None or form["type"] != "json_schema":
                dropped.append("schema")
        return fields, tuple(dropped)

    def _response_format(self, request: ChatRequest, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        if self.schema == "json_schema":
            name = re.sub(r"\W", "_", str(schema.get("title", "reply")))[:64]
            form = {"name": name, "schema": dict(schema), "strict": _is_closed(schema)}
            return {"type": "json_schema", "json_schema": form}
        # Endpoints refuse JSON mode unless the prompt itself asks for JSON.
        if self.schema == "json_object" and any("json" in message.content.lower() for message in request.messages):
            return {"type": "json_object"}
        return None


def _is_closed(schema: object) -> bool:
    """Whether every object in the schema names all its properties as required and forbids others: strict mode refuses
    anything else.
    """
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" and (
            schema.get("additionalProperties") is not False
            or set(schema.get("required", ())) != set(schema.get("properties", ()))
        ):
            return False
        return all(_is_closed(value) for value in schema.values())
    return not isinstance(schema, list) or all(_is_closed(item) for item in schema)


_OPENAI: Literal["max_completion_tokens"] = "max_completion_tokens"
_THREE = ("low", "medium", "high")

# The first row that matches counts. Sources: the providers' API references and compatibility pages.
FAMILIES: tuple[Capabilities, ...] = (
    # Models that don't reason keep max_tokens: OpenAI takes both, and servers that lend these names know only that.
    Capabilities("gpt-4", r"gpt-4(o|\.)|chatgpt-4o"),
    Capabilities("gpt-3.5", r"gpt-(4|3\.5)", schema="json_object"),
    Capabilities("gpt-5-chat", r"gpt-5(\.\d+)?-chat", _OPENAI),
    Capabilities("gpt-5-pro", r"gpt-5-pro", _OPENAI, ("high",), "high", "never"),
    Capabilities("gpt-5", r"gpt-5(?!\.)", _OPENAI, ("minimal", *_THREE), "medium", "never"),
    Capabilities("gpt-5.1", r"gpt-5\.1(?!\d)", _OPENAI, ("none", *_THREE), "none", "without_effort"),
    Capabilities("gpt-5.2", r"gpt-5\.[234](?!\d)", _OPENAI, ("none", *_THREE, "xhigh"), "none", "without_effort"),
    # Later ones may reason without being told to, so temperature waits for an explicit effort of none.
    Capabilities("gpt-next", r"gpt-\d", _OPENAI, ("none", *_THREE, "xhigh"), "medium", "without_effort"),
    Capabilities("o-series", r"o[134]\b", _OPENAI, _THREE, "medium", "never"),
    Capabilities("gpt-oss", r"gpt-oss", efforts=_THREE, default_effort="medium"),
    # Anthropic's compatibility layer takes no effort and ignores response_format; from 4.7 on temperature is an error.
    Capabilities("claude-next", r"claude-[a-z]+-(4[-.][7-9]\b|[5-9])", temperature="never", schema="none"),
    Capabilities("claude", r"claude", schema="none"),
    Capabilities("gemini", r"gemini-(2\.5|[3-9])", efforts=("minimal", *_THREE), default_effort="medium"),
    Capabilities("deepseek", r"deepseek-(chat|reasoner)", schema="json_object"),
    Capabilities("plain", r"(?!)", schema="none"),  # matches no name: for a server that rejects response_format
    Capabilities("local", r""),
)


def capabilities(model: str, family: str | None = None) -> Capabilities:
    """The row called ``family``, else the first that matches the model's name.

    Raises:
        ValueError: no row has that name.
    """
    if family is not None:
        for row in FAMILIES:
            if row.family == family:
                return row
        raise ValueError(f"unknown model family {family!r}; known: {', '.join(row.family for row in FAMILIES)}")
    name = model.lower().removeprefix("ft:").rsplit("/", 1)[-1]
    return next(row for row in FAMILIES if re.match(row.names, name))
