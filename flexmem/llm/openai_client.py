"""A chat model behind an OpenAI-compatible endpoint, over Chat Completions."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import openai

from flexmem import tokens
from flexmem.llm.capabilities import capabilities
from flexmem.llm.config import ModelConfig
from flexmem.llm.errors import (
    ContextOverflow,
    Malformed,
    ModelConfigurationError,
    ModelError,
    Place,
    QuotaExhausted,
    RateLimited,
    Refused,
    Transient,
    classify,
    classify_answer,
)
from flexmem.ports import ChatReply, ChatRequest, Usage

__all__ = ["OpenAIChat"]

_OPENAI_URL = "https://api.openai.com/v1"
_NO_KEY = "no-key"
_BACKOFF_S = 1.0  # the first wait's upper bound; doubles with every attempt
_BACKOFF_CAP_S = 60.0
_PREFLIGHT_S = 10.0


class OpenAIChat:
    """A `ChatModel` over Chat Completions, with its own retries (`flexmem.llm.errors` says of what).

    The key comes from the environment variable that the configuration names, the address from the configuration, else
    ``OPENAI_BASE_URL``, else OpenAI's. A local address (this machine, a private network, a name without a dot) needs no
    key: a placeholder is sent. Elsewhere a missing key fails the first call or `preflight`, so that `describe` works
    without one.

    A wait before attempt n + 1 is what the endpoint asked for plus a random part of up to 1 s · 2^(n-1), at most 60 s
    (full jitter: callers that were rejected together don't return together). A wait that would pass the deadline is not
    begun. ``sleep``, ``uniform`` (a number in [0, 1)) and ``clock`` (seconds) are there for tests.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is sent yet.

        Raises:
            ModelConfigurationError: the address is not an http:// or https:// one.
        """
        self.name = config.model
        self.config = config
        self._url = config.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL
        key = os.environ.get(config.api_key_env, "").strip()
        self._place = Place(config.model, _public(self._url), key)
        parts = urlsplit(self._url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ModelConfigurationError(f"{self._place}: `base_url` must start with http:// or https://.", attempts=0)
        self._key = key or (_NO_KEY if _is_local(parts.hostname) else "")
        self._row = capabilities(config.model, config.family)
        self._sleep, self._uniform, self._clock = sleep, uniform, clock
        self._client: openai.AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def describe(self) -> Mapping[str, Any]:
        """All that shapes replies. Time-outs, attempts and the key don't."""
        shaping = {"model", "temperature", "effort", "max_tokens", "reasoning_tokens", "context_tokens"}
        return {
            "provider": "openai",
            "base_url": self._place.base_url,
            "family": self._row.family,
            **self.config.model_dump(include=shaping),
        }

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer, after retries where they may help.

        Raises:
            ModelError: the kind says what went wrong (`flexmem.llm.errors`); the last failure where retries ran out.
        """
        request = self._with_defaults(request)
        self._check_key()
        self._check_window(request)
        fields, dropped = self._row.parameters(request, reasoning_tokens=self.config.reasoning_tokens)
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        body = {"model": self.name, "messages": messages, **fields}
        deadline = self._clock() + self.config.deadline_s
        attempt = 0
        while True:
            attempt += 1
            started = self._clock()
            outcome = await self._attempt(body, min(self.config.timeout_s, deadline - started))
            now = self._clock()
            if isinstance(outcome, ChatReply):
                return replace(outcome, latency_s=now - started, attempts=attempt, dropped=dropped)
            outcome.attempts = attempt
            wait = self._wait(outcome, attempt)
            if not outcome.retry or attempt >= self.config.attempts or now + wait >= deadline:
                raise outcome
            await self._sleep(wait)

    async def preflight(self) -> None:
        """Check, without cost, that the endpoint answers and that a key is there.

        Raises:
            ModelConfigurationError: no key, a rejected key, no answer, an address that serves no API, or, at OpenAI
                itself, a model that the account doesn't have.
            QuotaExhausted: the account has no credit left.
        """
        self._check_key()
        try:
            async with asyncio.timeout(_PREFLIGHT_S):
                response = await self._connect().models.with_raw_response.list()
            listed: object = json.loads(response.text)
        except (openai.OpenAIError, TimeoutError) as raised:
            error = classify(raised, self._place)
        except ValueError:
            error = Malformed(f"{self._place}: the address answers, but not as an API does; check `base_url`.")
        else:
            self._check_listed(listed)
            return
        # A server may lack the list of models; but an address without a path has surely lost its /v1.
        lists_nothing = error.status == 404 and urlsplit(self._url).path.strip("/")
        if isinstance(error, RateLimited) or lists_nothing:
            return
        if isinstance(error, ModelConfigurationError | QuotaExhausted):
            raise error
        raise ModelConfigurationError(str(error), status=error.status)

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()

    # ------------------------------------------------------------ one attempt

    async def _attempt(self, body: dict[str, Any], limit: float) -> ChatReply | ModelError:
        """Send once, waiting at most ``limit`` seconds. A failure is returned, not raised: raising it here would chain
        it to the SDK's exception, whose text may quote the key.
        """
        try:
            async with asyncio.timeout(limit):
                response = await self._connect().chat.completions.with_raw_response.create(**body)
            return _read(json.loads(response.text), self._place)
        except (openai.OpenAIError, ModelError, TimeoutError, json.JSONDecodeError, UnicodeDecodeError) as raised:
            return classify(raised, self._place)

    def _connect(self) -> openai.AsyncOpenAI:
        """The SDK's client of the running event loop: connections can't outlive the loop that opened them."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._loop = loop
            # The SDK's own HTTP client closes itself when collected, in whichever loop runs then.
            connections = openai.DefaultAsyncHttpxClient(timeout=self.config.timeout_s)
            self._client = openai.AsyncOpenAI(
                api_key=self._key, base_url=self._url, max_retries=0, http_client=connections
            )
        return self._client

    def _wait(self, error: ModelError, attempt: int) -> float:
        """Seconds before the attempt after number ``attempt``."""
        spread = min(_BACKOFF_CAP_S, _BACKOFF_S * 2.0 ** (attempt - 1))
        return (error.retry_after or 0.0) + spread * self._uniform()

    # ------------------------------------------------------------ before anything is sent

    def _with_defaults(self, request: ChatRequest) -> ChatRequest:
        config = self.config
        return replace(
            request,
            max_tokens=min(request.max_tokens, config.max_tokens or request.max_tokens),
            temperature=config.temperature if request.temperature is None else request.temperature,
            effort=config.effort if request.effort is None else request.effort,
        )

    def _check_key(self) -> None:
        if not self._key:
            raise ModelConfigurationError(
                f"{self._place}: no API key. Set {self.config.api_key_env} in the environment, or `base_url` to a "
                "local endpoint, which needs none.",
                attempts=0,
            )

    def _check_window(self, request: ChatRequest) -> None:
        window = self.config.context_tokens
        if window is None:
            return
        prompt = sum(tokens.count(message.content) for message in request.messages)
        if prompt + request.max_tokens > window:
            raise ContextOverflow(
                f"{self._place}: a prompt of {prompt} tokens and a reply of up to {request.max_tokens} don't fit "
                f"`context_tokens` = {window}; lower the budget or `max_tokens`.",
                attempts=0,
            )

    def _check_listed(self, listed: object) -> None:
        """At OpenAI the list is complete; elsewhere servers take names that they don't list."""
        if not isinstance(listed, dict):
            raise ModelConfigurationError(f"{self._place}: the address answers, but not as an API does.")
        if urlsplit(self._url).hostname != urlsplit(_OPENAI_URL).hostname:
            return
        names = {model.get("id") for model in listed.get("data", ()) if isinstance(model, dict)}
        if names and self.name not in names:
            raise ModelConfigurationError(f"{self._place}: the account has no such model; check `model`.")


# ---------------------------------------------------------------- reading a 200


def _read(answer: object, place: Place) -> ChatReply:
    """The reply in a decoded 200.

    Raises:
        ModelError: it holds an error (some servers send those with 200), a refusal, or no reply.
    """
    if not isinstance(answer, dict):
        raise _malformed(place, f"JSON of type {type(answer).__name__}")
    if answer.get("error"):
        status = answer["error"].get("code") if isinstance(answer["error"], dict) else None
        raise classify_answer(status if isinstance(status, int) else 200, answer, place=place)
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _malformed(place, "no choices")
    message, finish = choices[0].get("message"), choices[0].get("finish_reason") or "stop"
    usage = _usage(answer.get("usage"))
    if not isinstance(message, dict):
        raise _malformed(place, "no message", usage)
    if message.get("refusal"):
        raise Refused(f"{place}: the model refused: {place.quote(str(message['refusal']))}", usage=usage)
    if finish == "content_filter":
        raise Refused(f"{place}: the content filter withheld the reply.", usage=usage)
    if finish == "error":
        raise Transient(f"{place}: the endpoint failed while it generated.", usage=usage)
    text = message.get("content")
    if text is None and finish == "length":
        text = ""  # all of the limit went into hidden reasoning
    if not isinstance(text, str):
        raise _malformed(place, "no content" if text is None else "content that is not text", usage)
    return ChatReply(text, str(answer.get("model") or place.model), usage, str(finish))


def _malformed(place: Place, found: str, usage: Usage | None = None) -> Malformed:
    return Malformed(f"{place}: the answer is not a chat completion ({found}).", status=200, usage=usage)


def _usage(counts: object) -> Usage:
    def at(*path: str) -> int | None:
        value: object = counts
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, int) else None

    return Usage(
        input=at("prompt_tokens"),
        output=at("completion_tokens"),
        cached=at("prompt_tokens_details", "cached_tokens"),
        reasoning=at("completion_tokens_details", "reasoning_tokens"),
    )


# ---------------------------------------------------------------- addresses


def _is_local(host: str) -> bool:
    if "." not in host and ":" not in host:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.endswith((".local", ".internal", ".localhost"))
    return address.is_private or address.is_unspecified


def _public(url: str) -> str:
    """The address without a user's name and password, a query or a trailing slash."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
