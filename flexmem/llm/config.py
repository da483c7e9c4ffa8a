"""Which model a role uses, and how it is called."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from flexmem.llm.capabilities import capabilities
from flexmem.ports import ChatModel

__all__ = ["ModelConfig", "make_model"]


class ModelConfig(BaseModel):
    """One model. Immutable, unknown keys refused. ``max_tokens``, ``temperature`` and ``effort`` apply to every call:
    the first bounds what a caller asks, the others stand in where a caller says nothing.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: Literal["openai", "scripted"] = "openai"
    model: str = Field(min_length=1)  # with `scripted`: one of the named rules of `flexmem.llm.scripted`
    base_url: str | None = None  # None: OPENAI_BASE_URL, else OpenAI's
    api_key_env: str = "OPENAI_API_KEY"  # the variable's name; keys never stand in a configuration
    max_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0, le=2)
    effort: str | None = None
    # Added to the limit of a model that reasons, whose limit counts the hidden part too: enough for medium effort on
    # one question, and a limit costs nothing until it is used.
    reasoning_tokens: int = Field(default=4_096, ge=0)
    # The window in o200k tokens. Set it for servers that cut a long prompt in silence; None leaves the check to the
    # endpoint.
    context_tokens: int | None = Field(default=None, gt=0)
    family: str | None = None  # a row of `flexmem.llm.capabilities`; None: by the model's name
    timeout_s: float = Field(default=600.0, gt=0)  # one attempt; a local model on CPUs may need minutes for a prompt
    deadline_s: float = Field(default=1_800.0, gt=0)  # a call with its retries and waits
    attempts: int = Field(default=6, ge=1)
    latency_s: float = Field(default=0.0, ge=0)  # `scripted` only: the median of its simulated latency

    @field_validator("family")
    @classmethod
    def _known(cls, family: str | None) -> str | None:
        if family is not None:
            capabilities("", family)
        return family


def make_model(config: ModelConfig) -> ChatModel:
    """The model that ``config`` describes. Nothing is sent and no key is needed yet.

    Raises:
        ModelConfigurationError: no scripted rule has that name, or the address is not an HTTP one.
    """
    if config.provider == "scripted":
        from flexmem.llm.scripted import ScriptedModel

        # A sweep makes more calls than memory should hold.
        return ScriptedModel(config.model, latency_s=config.latency_s, keep_requests=False)
    from flexmem.llm.openai_client import OpenAIChat  # the SDK takes half a second to import

    return OpenAIChat(config)
