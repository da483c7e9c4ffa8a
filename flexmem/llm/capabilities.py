"""What a model takes, and what becomes of a request that asks for more: one row per model family.

A parameter that a model would reject or ignore is left out of the request, and its name is reported, so that a result
table can show that a setting had no effect. The rows themselves stand in `flexmem.llm.families`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from flexmem.ports import ChatRequest, Role

__all__ = ["ROLE_EFFORTS", "Api", "Capabilities", "Parameters", "is_closed"]

Api = Literal["chat", "responses", "messages"]
"""Chat Completions, OpenAI's Responses, Anthropic's Messages."""

ROLE_EFFORTS: dict[Role, str] = {"agent": "medium", "reader": "medium", "memory": "low", "judge": "low"}
"""What is sent where neither request nor configuration names an effort (docs/methods.md 0.4): providers change their
defaults from model to model, and some reason only when told to."""

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is sent of a request, whatever the API calls it. ``limit`` counts hidden reasoning as well; an ``effort`` of
    None is no parameter, ``none`` an explicit one; ``schema``: how the reply is bound; ``dropped`` names what was left
    out.
    """

    limit: int
    effort: str | None
    temperature: float | None
    schema: Literal["json_schema", "json_object"] | None
    dropped: tuple[str, ...]

    @property
    def reasons(self) -> bool:
        """Whether the model is told to reason."""
        return self.effort not in (None, "none")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One family's row.

    ``names``: a pattern of the model names it covers, matched from the start, without a provider's prefix. ``api``: how
    it is called where the configuration doesn't say. ``limit``: what Chat Completions calls the reply's limit.
    ``efforts``: the values of the reasoning effort it takes; empty: it takes no such parameter. ``temperature``: taken
    always, never, or only where the effort is ``none``. ``schema``: what it can be bound to: a JSON Schema, any JSON,
    nothing; ``closed_schema``: only to one of closed objects. ``reasoning_context``: it would be shown its reasoning of
    earlier turns unless told not to. ``thinking``: how Messages makes it reason: by a budget of tokens, or by itself.
    """

    family: str
    names: str
    api: Api = "chat"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    efforts: tuple[str, ...] = ()
    temperature: Literal["always", "never", "without_effort"] = "always"
    schema: Literal["json_schema", "json_object", "none"] = "json_schema"
    closed_schema: bool = False
    reasoning_context: bool = False
    thinking: Literal["none", "budget", "effort_and_budget", "adaptive"] = "none"

    def parameters(self, request: ChatRequest, *, reasoning_tokens: int = 0) -> Parameters:
        """What is sent of ``request``.

        ``reasoning_tokens`` is added to the limit of a model that reasons: the limit counts hidden reasoning as well,
        so a reply's own limit alone would leave nothing of a short answer.
        """
        dropped: list[str] = []
        effort = self._effort(request)
        if request.effort is not None and request.effort != effort:
            dropped.append("effort")
        reasons = effort not in (None, "none")
        temperature = request.temperature
        if temperature is not None and (
            self.temperature == "never" or (self.temperature == "without_effort" and reasons)
        ):
            dropped.append("temperature")
            temperature = None
        schema = self._schema(request)
        if request.schema is not None and schema != "json_schema":
            dropped.append("schema")
        limit = request.max_tokens + (reasoning_tokens if reasons else 0)
        return Parameters(limit, effort, temperature, schema, tuple(dropped))

    def _effort(self, request: ChatRequest) -> str | None:
        """The asked-for effort, else the role's; the nearest that the model takes, the weaker of two."""
        wanted = request.effort or ROLE_EFFORTS[request.role]
        if not self.efforts or wanted in self.efforts:
            return wanted if self.efforts else None
        if wanted not in _EFFORTS:
            wanted = ROLE_EFFORTS[request.role]
        place = _EFFORTS.index(wanted)
        return min(self.efforts, key=lambda effort: abs(_EFFORTS.index(effort) - place))

    def _schema(self, request: ChatRequest) -> Literal["json_schema", "json_object"] | None:
        if request.schema is None:
            return None
        if self.schema == "json_schema" and (is_closed(request.schema) or not self.closed_schema):
            return "json_schema"
        # Endpoints refuse JSON mode unless the prompt itself asks for JSON.
        if self.schema == "json_object" and any("json" in message.content.lower() for message in request.messages):
            return "json_object"
        return None


def is_closed(schema: object) -> bool:
    """Whether every object in the schema names all its properties as required and forbids others: strict mode refuses
    anything else.
    """
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" and (
            schema.get("additionalProperties") is not False
            or set(schema.get("required", ())) != set(schema.get("properties", ()))
        ):
            return False
        return all(is_closed(value) for value in schema.values())
    return not isinstance(schema, list) or all(is_closed(item) for item in schema)
