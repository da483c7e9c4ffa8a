"""Failures of model calls: what can happen, and what is done about it.

    Exception
     └─ ModelError                  rejected for a reason that fits none below      fail the call
         ├─ RateLimited             429: requests or tokens a minute                retry, not before `retry_after`
         ├─ Transient               no connection, time-out, 408, 409, 425, 5xx     retry
         ├─ Malformed               a 200 that is not a model's reply               retry
         ├─ ContextOverflow         prompt and reply don't fit the model's window   fail the call
         ├─ Refused                 the model or its content filter declined        fail the call
         ├─ Truncated               a reply cut by its limit, of no use as it is    fail the call
         ├─ QuotaExhausted          no credit left on the account                   stop the run
         └─ ModelConfigurationError no key, unknown model, wrong address, a         stop the run
                                    parameter that the model rejects

*retry*: the client sends the request again while attempts and deadline last, then raises the last failure. *fail the
call*: raised at once; the same request would fail again, so the caller decides (an agent loop may go on, an episode is
recorded). *stop the run*: raised at once; every other call would fail alike, so dispatch stops and nothing is scored.

`Truncated` is never raised by a client: a reply's ``finish`` says ``length``, and the caller that can't use a part of
an answer raises it.

`classify` and `classify_answer` are the only places that turn what an SDK raises or an endpoint answers into this
hierarchy. A message says what happened, where (model, address) and what to do about it. Keys are blanked out of it, and
clients raise it without the SDK's exception as its context, since that quotes the endpoint's answer, which may quote
the key.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar

from flexmem.errors import FlexmemError
from flexmem.ports import Attempt, Usage

__all__ = [
    "ContextOverflow",
    "Malformed",
    "ModelConfigurationError",
    "ModelError",
    "Place",
    "QuotaExhausted",
    "RateLimited",
    "Refused",
    "Transient",
    "Truncated",
    "classify",
    "classify_answer",
    "retry_after",
]

_SHOWN = 300  # characters of an endpoint's own words that a message quotes


class ModelError(FlexmemError):
    """A model call failed.

    ``retry``: sending the request again may help. ``stops_run``: every other call would fail alike. ``status``: the
    HTTP status, None without one. ``retry_after``: seconds the endpoint asked to wait. ``usage``: what the failed call
    cost, where the endpoint said so. ``attempts``: how often the request was sent, 0 if not at all. ``trail``: each of
    those, in order. It pickles, so that it crosses processes.
    """

    retry: ClassVar[bool] = False
    stops_run: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        usage: Usage | None = None,
        attempts: int = 1,
        trail: tuple[Attempt, ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.usage = usage
        self.attempts = attempts
        self.trail = trail

    def __str__(self) -> str:
        message = str(self.args[0])
        return f"{message} (sent {self.attempts} times)" if self.attempts > 1 else message


class RateLimited(ModelError):
    """The account's requests or tokens per minute are used up; `retry_after` says until when, if the endpoint does."""

    retry = True


class Transient(ModelError):
    """The network or the endpoint failed in a way that passes."""

    retry = True


class Malformed(ModelError):
    """The endpoint answered 200 with something that is not a model's reply, as overloaded gateways do."""

    retry = True


class ContextOverflow(ModelError):
    """The prompt, or the prompt and the reply asked for, are longer than the model's context window."""


class Refused(ModelError):
    """The model refused, or its content filter withheld the reply."""


class Truncated(ModelError):
    """The reply was cut by its token limit and is of no use to the caller."""


class QuotaExhausted(ModelError):
    """The account has no credit left: waiting doesn't help."""

    stops_run = True


class ModelConfigurationError(ModelError):
    """The model can't be called as configured: no key, wrong key, unknown model, wrong address, rejected parameter."""

    stops_run = True


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call went, for messages; ``secret`` is blanked out of whatever an endpoint says."""

    model: str = ""
    base_url: str = ""
    secret: str = ""

    def __str__(self) -> str:
        return f"{self.model or 'the model'} at {self.base_url}" if self.base_url else self.model or "the model"

    def quote(self, text: str) -> str:
        """An endpoint's words on one line, without keys, cut to a length that a log can bear."""
        if self.secret:
            text = text.replace(self.secret, "[key]")
        text = " ".join(_KEYS.sub("[key]", text).split())
        return text if len(text) <= _SHOWN else text[:_SHOWN] + " …"


_KEYS = re.compile(r"\b(?:(?:sk|gsk|xai|pplx|hf)[-_]|AIza)[\w*.…-]{8,}|(?<=Bearer )\S+")

_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_OVERFLOW = re.compile(
    r"maximum context length|context length exceeded"  # OpenAI, vLLM, TensorRT-LLM, DeepSeek
    r"|max_(?:completion_)?tokens must be at least 1, got -"  # vLLM: the prompt alone fills the window
    r"|exceeds? the available context size|context size has been exceeded"  # llama.cpp's server, LM Studio
    r"|exceed(?:s|ed)? (?:the )?context (?:window|limit)"  # llama-cpp-python, Anthropic
    r"|longer than the (?:model's context|maximum model) length"  # SGLang, vLLM
    r"|prompt is too long|input token count .{0,40}exceeds"  # Anthropic, Gemini
    r"|context the overflows|input exceeds context length"  # LM Studio, Ollama
    r"|request too large",  # OpenAI, Groq: one request over the tokens of a minute, sent as a 429 that never passes
    re.IGNORECASE,
)

# Gemini says "exceeded your current quota" of a limit per minute too, so that sentence alone is no sign of an empty
# account; OpenAI always adds the code.
_QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance", "billing_error"}
)
_QUOTA = re.compile(
    r"credit balance is too low|insufficient (?:balance|credits?|funds)"
    r"|reached your specified (?:\w+ )?(?:api )?usage limits?",  # Anthropic: a limit that the account set itself
    re.IGNORECASE,
)

_RATE_CODES = frozenset({"rate_limit_exceeded", "rate_limit_error"})
_REFUSAL_CODES = frozenset(
    {
        *("content_filter", "content_policy_violation", "invalid_prompt", "moderation_blocked"),
        *("bio_policy", "misalignment_policy_violation"),
    }
)
_KEY_CODES = frozenset({"invalid_api_key", "api_key_invalid", "authentication_error", "permission_error"})
_KEY = re.compile(r"(?:incorrect|invalid) api key|api key not valid|api_key_invalid", re.IGNORECASE)
_MODEL_CODES = frozenset({"model_not_found", "unknown_model", "deploymentnotfound", "model_not_available"})
_PARAMETER_CODES = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})
_PARAMETER = re.compile(
    r"(?:unsupported|unrecognized|unknown) (?:request )?(?:parameter|argument|field)"
    r"|extra (?:inputs|fields) (?:are )?not|is deprecated for this model|response_format.{0,40}(?:unavailable|must be)",
    re.IGNORECASE,
)

_PASSING = frozenset({408, 409, 425})
# Failures inside the endpoint that were sent with a 200.
_PASSING_CODES = frozenset({"server_error", "api_error", "overloaded_error", "timeout_error", "internal_server_error"})


def classify(error: BaseException, place: Place | None = None) -> ModelError:
    """What an exception raised during a call means. A `ModelError` is returned as it is."""
    if isinstance(error, ModelError):
        return error
    place = place or Place()
    for sdk in (sys.modules.get("openai"), sys.modules.get("anthropic")):
        if sdk is not None and isinstance(error, Exception):
            found = _from_sdk(error, sdk, place)
            if found is not None:
                return found
    if isinstance(error, TimeoutError):
        return Transient(f"{place}: {_LATE}")
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return Malformed(f"{place}: the answer is not a model's reply ({place.quote(str(error))}).")
    if isinstance(error, UnicodeEncodeError):
        return ModelError(f"{place}: the prompt holds half a surrogate pair, which can't be sent.", attempts=0)
    return ModelError(f"{place}: {type(error).__name__}: {place.quote(str(error))}")


_LATE = "no answer in time. Is the endpoint overloaded? Else raise `timeout_s`."


def _from_sdk(error: Exception, sdk: Any, place: Place) -> ModelError | None:
    """What an SDK's exception means; None where it is not this one's. Both SDKs have the same classes. An exception of
    an SDK that nobody has imported can't be, so none is imported for it, which takes half a second.
    """
    if isinstance(error, sdk.APIStatusError):
        return classify_answer(error.status_code, error.body, error.response.headers, place)
    if isinstance(error, sdk.APITimeoutError):
        return Transient(f"{place}: {_LATE}")
    if isinstance(error, sdk.APIConnectionError):
        reason = place.quote(str(error.__cause__ or error)) or type(error.__cause__).__name__
        return Transient(f"{place}: the connection failed ({reason}). Is the endpoint up, the address right?")
    if isinstance(error, sdk.APIResponseValidationError):
        return Malformed(f"{place}: the answer is not a model's reply ({place.quote(str(error))}).")
    return None


def classify_answer(
    status: int, body: object, headers: Mapping[str, str] | None = None, place: Place | None = None
) -> ModelError:
    """What an endpoint's error answer means.

    Some servers send errors with status 200: pass the status that the body itself names, or 200, which without a
    telling body is `Malformed`.
    """
    place = place or Place()
    code, words = _code_and_words(body)
    said = place.quote(words) or "no explanation"
    wait = retry_after(headers or {})
    kind, text = _judge(status, code, words)
    return kind(f"{place}: {text} (HTTP {status}: {said})", status=status, retry_after=wait)


def _judge(status: int, codes: frozenset[str], words: str) -> tuple[type[ModelError], str]:
    """The class of an error answer and what to say of it. The body's codes come before the status: endpoints agree on
    neither (llama.cpp sent overflows as 500, OpenAI sends an empty account as 429).
    """
    if codes & _OVERFLOW_CODES or _OVERFLOW.search(words) or status == 413:
        return ContextOverflow, "the request doesn't fit the context window; lower the budget or `max_tokens`"
    if codes & _QUOTA_CODES or _QUOTA.search(words) or status == 402:
        return QuotaExhausted, "the account has no credit left; add credit, then run the same command again"
    if codes & _REFUSAL_CODES:
        return Refused, "the content filter rejected the prompt"
    if status == 429 or codes & _RATE_CODES:
        return RateLimited, "rate limited; lower the number of concurrent calls if this lasts"
    if codes & _MODEL_CODES or status == 404:
        return ModelConfigurationError, "unknown model or address; check `model`, and that `base_url` ends as in '…/v1'"
    if status in (401, 403) or codes & _KEY_CODES or _KEY.search(words):
        return ModelConfigurationError, "the key is not accepted for this; check the key, its project and its rights"
    if codes & _PARAMETER_CODES or _PARAMETER.search(words):
        return ModelConfigurationError, "the model doesn't take a parameter; set `family` to the row that fits it"
    if status in _PASSING or status >= 500 or (status < 400 and codes & _PASSING_CODES):
        return Transient, "the endpoint failed"
    if status < 400:
        return Malformed, "the answer is not a model's reply"
    return ModelError, "the request was rejected"


def _code_and_words(body: object) -> tuple[frozenset[str], str]:
    """All codes and types that an error body names, lower case, and its message: OpenAI nests both under ``error``
    (which the SDK takes off), Gemini sends that in a list, FastAPI says ``detail``, gateways send HTML.
    """
    codes: set[str] = set()
    words: list[str] = []
    for part in _objects(body):
        codes.update(str(part[key]).lower() for key in ("code", "type", "status") if part.get(key))
        words.extend(str(part[key]) for key in ("message", "detail", "error") if isinstance(part.get(key), str))
    if not words:
        words.append(body if isinstance(body, str) else json.dumps(body, default=str) if body else "")
    return frozenset(codes), " ".join(words)


def _objects(body: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(body, Mapping):
        yield body
        yield from _objects(body.get("error"))
    elif isinstance(body, list):
        for item in body:
            yield from _objects(item)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as ``Retry-After-Ms`` or ``Retry-After`` (seconds, or a date) say; None where they don't.

    A date is compared with the answer's own ``Date``, so that the two clocks need not agree.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds < float("inf") else None
    try:
        until = parsedate_to_datetime(headers["retry-after"]).timestamp()
        now = parsedate_to_datetime(headers["date"]).timestamp() if "date" in headers else time.time()
    except (KeyError, ValueError, TypeError):
        return None
    return max(0.0, until - now)
