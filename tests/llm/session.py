"""An endpoint and a client of it, for whichever API; waits are recorded, not slept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from flexmem.llm.anthropic_client import AnthropicChat
from flexmem.llm.config import ModelConfig
from flexmem.llm.errors import ModelError
from flexmem.llm.http_chat import HttpChat
from flexmem.llm.openai_client import OpenAIChat
from flexmem.ports import ChatReply, ChatRequest, Message

from .endpoint import ChatEndpoint

T = TypeVar("T")

HELLO = ChatRequest((Message("system", "be brief"), Message("user", "hello")), "reader", 50)

APIS: dict[str, dict[str, Any]] = {
    "chat": {"model": "local"},
    "responses": {"model": "local", "api": "responses"},
    "messages": {"model": "local", "provider": "anthropic"},
}
"""The configuration of a model behind each API."""


class Waits(list[float]):
    """A sleep that only takes notes."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


class Ticking:
    """A clock that moves by ``step`` seconds whenever it is read."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def client(config: ModelConfig, **options: Any) -> HttpChat:
    """The client of a configuration, with the options of `HttpChat`."""
    kind = AnthropicChat if config.provider == "anthropic" else OpenAIChat
    return kind(config, **options)


def run(model: HttpChat, call: Coroutine[Any, Any, T]) -> T:
    """Run one call in an event loop of its own and close the model's connections."""

    async def once() -> T:
        try:
            return await call
        finally:
            await model.aclose()

    return asyncio.run(once())


class Session:
    """An endpoint and a client of it."""

    def __init__(self, endpoint: ChatEndpoint, options: dict[str, Any], config: dict[str, Any]) -> None:
        self.endpoint, self.waits = endpoint, Waits()
        settings = {"model": "local", "base_url": endpoint.url, **config}
        self.model = client(ModelConfig(**settings), **{"sleep": self.waits, "uniform": lambda: 0.5, **options})

    def call(self, request: ChatRequest = HELLO) -> ChatReply:
        return run(self.model, self.model.complete(request))

    def fail(self, kind: type[ModelError], request: ChatRequest = HELLO) -> ModelError:
        with pytest.raises(ModelError) as raised:
            self.call(request)
        assert type(raised.value) is kind
        return raised.value

    def preflight(self) -> None:
        run(self.model, self.model.preflight())


Open = Callable[..., Session]
