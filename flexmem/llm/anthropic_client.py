"""A chat model behind Anthropic's own API, over its SDK (``pip install 'flexmem[anthropic]'``)."""

from __future__ import annotations

from typing import Any

import anthropic

from flexmem.llm.config import ModelConfig
from flexmem.llm.families import capabilities
from flexmem.llm.http_chat import HttpChat
from flexmem.llm.messages_form import MessagesForm

__all__ = ["AnthropicChat"]


class AnthropicChat(HttpChat):
    """A `ChatModel` over Messages; everything else is `HttpChat`'s. The address falls back on ``ANTHROPIC_BASE_URL``
    and may end in ``/v1`` or not.
    """

    _sdk_errors = (anthropic.AnthropicError,)

    def __init__(self, config: ModelConfig, **options: Any) -> None:
        """Takes the options of `HttpChat`; nothing is sent yet.

        Raises:
            ModelConfigurationError: the address is not an http:// or https:// one.
        """
        row = capabilities(config.model, config.family, messages=True)
        super().__init__(config, MessagesForm(row, config.reasoning_tokens), row, **options)

    def _open(self) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(
            api_key=self._key,
            base_url=self._url.rstrip("/").removesuffix("/v1"),
            timeout=self.config.timeout_s,
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(timeout=self.config.timeout_s),
            open_telemetry=False,
        )

    async def _send(self, body: dict[str, Any]) -> str:
        # The SDK's method has no temperature, since newer models take none.
        extra = {"temperature": body["temperature"]} if "temperature" in body else None
        fields = {name: value for name, value in body.items() if name != "temperature"}
        client: anthropic.AsyncAnthropic = self._connected()
        response = await client.messages.with_raw_response.create(**fields, extra_body=extra)
        text: str = await response.text()
        return text

    async def _ask_for_models(self) -> str:
        client: anthropic.AsyncAnthropic = self._connected()
        models = client.models.with_raw_response
        # Asked for by name, an alias is found as well; another server may have no such question.
        response = await (models.retrieve(self.name) if self._is_providers_own else models.list())
        return await response.text()
