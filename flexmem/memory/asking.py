"""Asking the memory model: an unusable reply is asked for once more, then the method's declared fallback steps in."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from flexmem.llm.errors import Malformed, Refused
from flexmem.memory.protocol import MethodError
from flexmem.ports import ChatModel, ChatRequest, Message, Services

ATTEMPTS = 2  # an unusable reply twice in a row means: the fallback


class ReplyForm(BaseModel):
    """Base of the JSON objects that memory models are asked for. What else an object holds is ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


Form = TypeVar("Form", bound=ReplyForm)


class MemoryModel:
    """The memory role's model at low effort and temperature 0. Unusable replies are counted in ``fallbacks`` under the
    name of what takes their place.

    Failures other than an unusable or refused reply are raised: they are the caller's.
    """

    def __init__(self, model: ChatModel, fallbacks: Counter[str]) -> None:
        self._model = model
        self._fallbacks = fallbacks

    async def text(self, prompt: str, max_tokens: int, fallback: str) -> str | None:
        """The reply's text without surrounding blanks; None, counted as ``fallback``, where none is usable.

        Raises:
            ModelError: the model could not be asked.
        """
        for attempt in range(ATTEMPTS):
            reply = await self._ask(prompt, max_tokens, None, attempt)
            if reply is not None and reply.strip():
                return reply.strip()
        self._fallbacks[fallback] += 1
        return None

    async def fill(self, form: type[Form], prompt: str, max_tokens: int, fallback: str) -> Form | None:
        """The reply's JSON object; None, counted as ``fallback``, where none has the asked-for form.

        Raises:
            ModelError: the model could not be asked.
        """
        schema = json_schema(form)
        for attempt in range(ATTEMPTS):
            filled = read_object(form, await self._ask(prompt, max_tokens, schema, attempt))
            if filled is not None:
                return filled
        self._fallbacks[fallback] += 1
        return None

    async def _ask(self, prompt: str, max_tokens: int, schema: dict[str, Any] | None, attempt: int) -> str | None:
        request = ChatRequest(
            (Message("user", prompt),),
            role="memory",
            max_tokens=max_tokens,
            temperature=0.0,
            effort="low",
            schema=schema,
            sample=attempt,
        )
        try:
            return (await self._model.complete(request)).text
        except (Malformed, Refused):
            return None


def memory_model(services: Services, fallbacks: Counter[str]) -> MemoryModel:
    """The memory model of a build.

    Raises:
        MethodError: none is configured.
    """
    if services.model is None:
        raise MethodError("this method needs a memory model (models.memory in a sweep, model=... in Memory)")
    return MemoryModel(services.model, fallbacks)


def json_schema(form: type[ReplyForm]) -> dict[str, Any]:
    """A form's JSON schema as strict structured output takes it: every property required, no others, no titles."""
    return _strict(form.model_json_schema())


def read_object(form: type[Form], reply: str | None) -> Form | None:
    """The first JSON object of a reply, if it has the form; text around it is forgiven."""
    if reply is None or "{" not in reply:
        return None
    try:
        fields, _ = json.JSONDecoder().raw_decode(reply[reply.index("{") :])
        return form.model_validate(fields, strict=True)
    except (ValueError, RecursionError):  # a model that loops can nest brackets without end
        return None


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key not in ("title", "default", "description")}
    if "properties" in kept:
        kept["properties"] = {name: _strict(value) for name, value in kept["properties"].items()}
        kept["required"] = list(kept["properties"])
        kept["additionalProperties"] = False
    if "items" in kept:
        kept["items"] = _strict(kept["items"])
    return kept
