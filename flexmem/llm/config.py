"""Which model a role uses, and how it is called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from flexmem.llm.errors import ModelConfigurationError
from flexmem.llm.families import capabilities
from flexmem.llm.prices import TokenPrice, price_from_file
from flexmem.ports import ChatModel, RateBudget

__all__ = ["ModelConfig", "make_model"]

_KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY"}


class ModelConfig(BaseModel):
    """One model. Immutable, unknown keys refused. ``max_tokens``, ``temperature`` and ``effort`` apply to every call:
    the first bounds what a caller asks, the others stand in where a caller says nothing.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: Literal["openai", "anthropic", "scripted"] = "openai"
    model: str = Field(min_length=1)  # with `scripted`: one of the named rules of `flexmem.llm.scripted`
    api: Literal["chat", "responses"] | None = None  # of `openai`; None: what the model's row says
    base_url: str | None = None  # None: OPENAI_BASE_URL or ANTHROPIC_BASE_URL, else the provider's own
    # The variable's name; keys never stand in a configuration. ANTHROPIC_API_KEY with `anthropic`.
    api_key_env: str = "OPENAI_API_KEY"
    max_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0, le=2)
    effort: str | None = None  # None, of the caller as well: medium for agent and reader, low for memory and judge
    # Added to the limit of a model that reasons, whose limit counts the hidden part too: enough for medium effort on
    # one question, and a limit costs nothing until it is used.
    reasoning_tokens: int = Field(default=4_096, ge=0)
    # The window in o200k tokens. Set it for servers that cut a long prompt in silence; None leaves the check to the
    # endpoint.
    context_tokens: int | None = Field(default=None, gt=0)
    family: str | None = None  # a row of `flexmem.llm.families`; None: by the model's name
    timeout_s: float = Field(default=600.0, gt=0)  # one attempt; a local model on CPUs may need minutes for a prompt
    # A call's requests and the waits between them; waiting for the account's budget comes on top.
    deadline_s: float = Field(default=1_800.0, gt=0)
    attempts: int = Field(default=6, ge=1)
    # Limits of the account, all workers together; None: learned from rejections.
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    account: str | None = Field(default=None, min_length=1)  # who shares them; None: address and key variable
    price: TokenPrice | None = None  # None: `price_file`, else what `genai-prices` knows of the address
    price_file: Path | None = None  # YAML, pattern of model names -> as `price`; read where the configuration is read
    latency_s: float = Field(default=0.0, ge=0)  # `scripted` only: the median of its simulated latency

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, content: object) -> object:
        """With the provider's key variable, and the price that the file has: workers elsewhere can't read it."""
        if not isinstance(content, Mapping):
            return content
        filled: dict[str, Any] = dict(content)
        variable = _KEY_VARIABLES.get(str(filled.get("provider")))
        if variable is not None:
            filled.setdefault("api_key_env", variable)
        path, model = filled.get("price_file"), filled.get("model")
        if filled.get("price") is None and isinstance(path, str | Path) and isinstance(model, str):
            filled["price"] = price_from_file(Path(path), model)
        return filled

    @model_validator(mode="after")
    def _consistent(self) -> ModelConfig:
        if self.provider != "openai" and self.api is not None:
            raise ValueError(f"`api` is for the provider openai, not for {self.provider}")
        if self.family is not None:
            capabilities("", self.family, messages=self.provider == "anthropic")
        return self


def make_model(config: ModelConfig, budget: RateBudget | None = None) -> ChatModel:
    """The model that ``config`` describes. Nothing is sent and no key is needed yet. ``budget``: what its account may
    send; a scripted model needs none.

    Raises:
        ModelConfigurationError: no scripted rule has that name, the address is not an HTTP one, or the provider's
            package is not installed.
    """
    if config.provider == "scripted":
        from flexmem.llm.scripted import ScriptedModel

        # A sweep makes more calls than memory should hold.
        return ScriptedModel(config.model, latency_s=config.latency_s, price=config.price, keep_requests=False)
    if config.provider == "anthropic":
        try:
            from flexmem.llm.anthropic_client import AnthropicChat
        except ModuleNotFoundError as error:
            if error.name is None or error.name.split(".")[0] != "anthropic":
                raise
            raise ModelConfigurationError(
                f"{config.model}: the provider anthropic needs its package: pip install 'flexmem[anthropic]'. Without "
                "it, Anthropic's compatible endpoint works with the provider openai.",
                attempts=0,
            ) from None
        return AnthropicChat(config, budget=budget)
    from flexmem.llm.openai_client import OpenAIChat  # the SDK takes half a second to import

    return OpenAIChat(config, budget=budget)
