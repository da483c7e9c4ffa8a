"""A chat model behind an HTTP endpoint: what all such clients share, whatever they speak.

Retries, the deadline, the account's budget, the record of what was sent, keys and the check before a run stand here; a
client adds its SDK and the form of its API (`flexmem.llm.wire`).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from flexmem import tokens
from flexmem.llm.address import DEFAULT_URLS, endpoint_url, is_local, public_url
from flexmem.llm.capabilities import ROLE_EFFORTS, Capabilities
from flexmem.llm.config import ModelConfig
from flexmem.llm.errors import (
    ContextOverflow,
    Malformed,
    ModelConfigurationError,
    ModelError,
    Place,
    QuotaExhausted,
    RateLimited,
    classify,
)
from flexmem.llm.prices import find_price
from flexmem.llm.wire import WireForm
from flexmem.ports import Attempt, ChatReply, ChatRequest, Lease, RateBudget, Usage

__all__ = ["HttpChat"]

_NO_KEY = "no-key"
_BACKOFF_S = 1.0  # the first wait's upper bound; doubles with every attempt
_BACKOFF_CAP_S = 60.0
_PREFLIGHT_S = 10.0
_BYTES_A_TOKEN = 4  # of English; the budget's estimate is put right once a reply tells its usage
_FRAME_TOKENS = 16  # a message's role and the marks around it, generously
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")  # what the APIs call a reply's limit
_OTHER_TOKENIZERS = 1.5  # tokens of the thriftless over those of o200k, for the same text

# Turned away before a token was made, so nothing was paid.
_FREE: Final = (RateLimited, QuotaExhausted, ModelConfigurationError, ContextOverflow)


class HttpChat(ABC):
    """A `ChatModel` behind an HTTP endpoint, with its own retries (`flexmem.llm.errors` says of what).

    The key comes from the environment variable that the configuration names, the address from the configuration, else
    from the SDK's own variable, else it is the provider's. A local address (this machine, a private network, a name
    without a dot) needs no key: a placeholder is sent. Elsewhere a missing key fails the first call or `preflight`, so
    that `describe` works without one.

    A wait before attempt n + 1 is what the endpoint asked for plus a random part of up to 1 s · 2^(n-1), at most 60 s
    (full jitter: callers that were rejected together don't return together). A wait that would pass the deadline is not
    begun.

    With a ``budget`` each attempt first waits for its turn. That wait does not count against the deadline: it tells how
    many others ask, not how this call fares, and who gives up in the line has to stand in it again. The deadline bounds
    the rest: requests and the waits between them.

    ``sleep``, ``uniform`` (a number in [0, 1)), ``clock`` (seconds, monotonic) and ``wall`` (Unix seconds) are there
    for tests.
    """

    _sdk_errors: ClassVar[tuple[type[Exception], ...]]

    def __init__(
        self,
        config: ModelConfig,
        form: WireForm,
        row: Capabilities,
        *,
        budget: RateBudget | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is sent yet.

        Raises:
            ModelConfigurationError: the address is not an http:// or https:// one.
        """
        self.name = config.model
        self.config = config
        self._form, self._row = form, row
        self._url = endpoint_url(config)
        key = os.environ.get(config.api_key_env, "").strip()
        self._place = Place(config.model, public_url(self._url), key)
        parts = urlsplit(self._url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ModelConfigurationError(f"{self._place}: `base_url` must start with http:// or https://.", attempts=0)
        self._key = key or (_NO_KEY if is_local(self._url) else "")
        self._price = find_price(config)
        self._budget = budget
        self._sleep, self._uniform, self._clock, self._wall = sleep, uniform, clock, wall
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def describe(self) -> Mapping[str, Any]:
        """All that shapes replies. Time-outs, attempts, limits, prices and the key don't."""
        shaping = {"model", "temperature", "effort", "max_tokens", "reasoning_tokens", "context_tokens"}
        described = {
            "provider": self.config.provider,
            "base_url": self._place.base_url,
            "family": self._row.family,
            **self.config.model_dump(include=shaping),
        }
        if self.config.effort is None and self._row.efforts:
            described["effort"] = dict(ROLE_EFFORTS)
        return described

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer, after retries where they may help.

        Raises:
            ModelError: the kind says what went wrong (`flexmem.llm.errors`); the last failure where retries ran out.
                Its ``trail`` holds every request that was sent, as the reply's does.
        """
        request = self._with_defaults(request)
        self._check_key()
        self._check_window(request)
        body, dropped = self._form.body(self.name, request)
        deadline = self._clock() + self.config.deadline_s
        trail: list[Attempt] = []
        while True:
            lease, waited = await self._turn(request, trail)
            deadline += waited
            begun_at, started = self._wall(), self._clock()
            outcome = await self._with_lease(lease, body, min(self.config.timeout_s, deadline - started))
            now = self._clock()
            trail.append(self._record(len(trail) + 1, begun_at, now - started, outcome))
            if isinstance(outcome, ChatReply):
                return replace(
                    outcome, latency_s=now - started, attempts=len(trail), dropped=dropped, trail=tuple(trail)
                )
            wait = self._wait(outcome, len(trail))
            if not outcome.retry or len(trail) >= self.config.attempts or now + wait >= deadline:
                outcome.attempts, outcome.trail = len(trail), tuple(trail)
                raise outcome
            await self._sleep(wait)

    def most_usd(self, request: ChatRequest) -> float | None:
        """The most that sending ``request`` once can cost, in USD; None where the price is unknown. The prompt is
        counted generously, since other models cut text into more tokens than o200k.
        """
        if self._price is None:
            return None
        request = self._with_defaults(request)
        texts = [message.content for message in request.messages]
        if request.schema is not None:
            texts.append(json.dumps(request.schema))
        prompt = sum(tokens.count(text) + _FRAME_TOKENS for text in texts)
        body, _ = self._form.body(self.name, request)
        limit = next(body[name] for name in _LIMITS if name in body)
        return self._price.most_usd(round(prompt * _OTHER_TOKENIZERS), limit)

    async def preflight(self) -> None:
        """Check, without cost, that the endpoint answers and that a key is there.

        Raises:
            ModelConfigurationError: no key, a rejected key, no answer, an address that serves no API, or, at the
                provider's own, a model that the account doesn't have.
            QuotaExhausted: the account has no credit left.
        """
        self._check_key()
        failures: tuple[type[Exception], ...] = (*self._sdk_errors, TimeoutError)
        try:
            async with asyncio.timeout(_PREFLIGHT_S):
                answer = await self._ask_for_models()
            found: object = json.loads(answer)
        except failures as raised:
            error = classify(raised, self._place)
        except ValueError:
            error = Malformed(f"{self._place}: the address answers, but not as an API does; check `base_url`.")
        else:
            self._check_models(found)
            return
        # A server may lack the list of models; but an address without a path has surely lost its /v1.
        lists_nothing = error.status == 404 and self._may_lack_models
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

    # ------------------------------------------------------------ what a client adds

    @abstractmethod
    def _open(self) -> Any:
        """An SDK's client without retries of its own. It is given its connections: those that it makes itself close
        when they are collected, in whichever loop runs then.
        """

    @abstractmethod
    async def _send(self, body: dict[str, Any]) -> str:
        """Send a body once; the text of a 200. An SDK's own exceptions are `_sdk_errors`."""

    @abstractmethod
    async def _ask_for_models(self) -> str:
        """The answer to a question about models that costs nothing."""

    @property
    def _may_lack_models(self) -> bool:
        """Whether a 404 to that question may be a server's that works otherwise."""
        return not self._is_providers_own

    def _check_models(self, found: object) -> None:
        """Raises:
        ModelConfigurationError: the answer is none, or tells that the model is not there.
        """
        if not isinstance(found, dict):
            raise ModelConfigurationError(f"{self._place}: the address answers, but not as an API does.")

    def _connected(self) -> Any:
        """The SDK's client of the running event loop: connections can't outlive the loop that opened them."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._loop, self._client = loop, self._open()
        return self._client

    # ------------------------------------------------------------ one attempt

    async def _turn(self, request: ChatRequest, trail: list[Attempt]) -> tuple[Lease | None, float]:
        """Leave of the account's budget to send once, and the seconds waited for it."""
        if self._budget is None:
            return None, 0.0
        asked = self._clock()
        size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
        try:
            lease = await self._budget.acquire(size // _BYTES_A_TOKEN + request.max_tokens)
        except ModelError as refused:
            refused.attempts, refused.trail = len(trail), tuple(trail)
            raise
        return lease, self._clock() - asked

    async def _with_lease(self, lease: Lease | None, body: dict[str, Any], limit: float) -> ChatReply | ModelError:
        """One attempt, after which the budget knows what it used."""
        if lease is None or self._budget is None:
            return await self._attempt(body, limit)
        try:
            outcome = await self._attempt(body, limit)
        except BaseException:
            await self._budget.settle(lease, None)
            raise
        if isinstance(outcome, RateLimited):
            await self._budget.rejected(lease, outcome.retry_after)
        else:
            usage = outcome.usage or Usage()
            known = usage.input is not None and usage.output is not None
            await self._budget.settle(lease, (usage.input or 0) + (usage.output or 0) if known else None)
        return outcome

    async def _attempt(self, body: dict[str, Any], limit: float) -> ChatReply | ModelError:
        """Send once, waiting at most ``limit`` seconds. A failure is returned, not raised: raising it here would chain
        it to the SDK's exception, whose text may quote the key.
        """
        answer: str | None = None
        failures: tuple[type[Exception], ...] = (*self._sdk_errors, ModelError, TimeoutError)
        try:
            async with asyncio.timeout(limit):
                answer = await self._send(body)
            return self._form.read(json.loads(answer), self._place)
        except (json.JSONDecodeError, UnicodeError) as raised:
            error = classify(raised, self._place)
        except failures as raised:
            error = classify(raised, self._place)
        if answer is not None and error.status is None:
            error.status = 200
        return error

    def _record(self, number: int, begun_at: float, latency_s: float, outcome: ChatReply | ModelError) -> Attempt:
        usage = outcome.usage or Usage()
        usd = None if self._price is None else self._price.usd(usage, begun_at)
        if isinstance(outcome, ChatReply):
            return Attempt(number, begun_at, latency_s, "reply", 200, usage, usd)
        rejected = isinstance(outcome, _FREE) and outcome.status is not None and outcome.status >= 400
        if rejected and self._price is not None and usage == Usage():
            usd = 0.0
        return Attempt(number, begun_at, latency_s, type(outcome).__name__, outcome.status, usage, usd)

    def _wait(self, error: ModelError, attempt: int) -> float:
        """Seconds before the attempt after number ``attempt``."""
        spread = min(_BACKOFF_CAP_S, _BACKOFF_S * 2.0 ** (attempt - 1))
        return (error.retry_after or 0.0) + spread * self._uniform()

    # ------------------------------------------------------------ before anything is sent

    @property
    def _is_providers_own(self) -> bool:
        return urlsplit(self._url).hostname == urlsplit(DEFAULT_URLS[self.config.provider]).hostname

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
