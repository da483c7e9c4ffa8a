"""A chat model behind an OpenAI-compatible endpoint, over Chat Completions or the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import openai

from flexmem.llm.chat_form import ChatForm
from flexmem.llm.config import ModelConfig
from flexmem.llm.errors import ModelConfigurationError
from flexmem.llm.families import capabilities
from flexmem.llm.http_chat import HttpChat
from flexmem.llm.responses_form import ResponsesForm

__all__ = ["OpenAIChat"]


class OpenAIChat(HttpChat):
    """A `ChatModel` over Chat Completions, or over Responses where the configuration or the model's row says so;
    everything else is `HttpChat`'s. The address falls back on ``OPENAI_BASE_URL``.
    """

    _sdk_errors = (openai.OpenAIError,)

    def __init__(self, config: ModelConfig, **options: Any) -> None:
        """Takes the options of `HttpChat`; nothing is sent yet.

        Raises:
            ModelConfigurationError: the address is not an http:// or https:// one.
        """
        row = capabilities(config.model, config.family)
        self._api = config.api or row.api
        form = (ResponsesForm if self._api == "responses" else ChatForm)(row, config.reasoning_tokens)
        super().__init__(config, form, row, **options)

    def describe(self) -> Mapping[str, Any]:
        """See `HttpChat.describe`."""
        described = super().describe()
        return described if self._api == "chat" else {**described, "api": self._api}

    def _open(self) -> openai.AsyncOpenAI:
        connections = openai.DefaultAsyncHttpxClient(timeout=self.config.timeout_s)
        return openai.AsyncOpenAI(api_key=self._key, base_url=self._url, max_retries=0, http_client=connections)

    async def _send(self, body: dict[str, Any]) -> str:
        client: openai.AsyncOpenAI = self._connected()
        api: Any = client.responses if self._api == "responses" else client.chat.completions
        text: str = (await api.with_raw_response.create(**body)).text
        return text

    async def _ask_for_models(self) -> str:
        client: openai.AsyncOpenAI = self._connected()
        return (await client.models.with_raw_response.list()).text

    @property
    def _may_lack_models(self) -> bool:
        return bool(urlsplit(self._url).path.strip("/"))

    def _check_models(self, found: object) -> None:
        """At OpenAI the list is complete; elsewhere servers take names that they don't list."""
        super()._check_models(found)
        if not self._is_providers_own or not isinstance(found, dict):
            return
        names = {model.get("id") for model in found.get("data", ()) if isinstance(model, dict)}
        if names and self.name not in names:
            raise ModelConfigurationError(f"{self._place}: the account has no such model; check `model`.")
