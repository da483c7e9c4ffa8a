"""One classifier for all dialects of failure."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import anthropic
import openai
import pytest

from flexmem.llm import errors
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
    Truncated,
    classify,
    classify_answer,
    retry_after,
)
from flexmem.ports import Attempt, Usage

PLACE = Place("gpt-x", "http://here/v1", "sesame-0123")

OVERFLOWS = {
    "openai": (
        400,
        {
            "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        },
    ),
    "openai, one request over a minute's tokens": (
        429,
        {
            "message": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
            "type": "tokens",
            "code": "rate_limit_exceeded",
        },
    ),
    "vllm": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4900 "
            "in the messages, 100 in the completion). Please reduce the length of the messages or completion.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    "vllm, nothing left for the reply": (
        400,
        {"object": "error", "message": "max_tokens must be at least 1, got -186.", "type": "BadRequestError"},
    ),
    "llama.cpp": (
        400,
        {
            "code": 400,
            "message": "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 9412,
            "n_ctx": 8192,
        },
    ),
    "llama.cpp, older": (500, {"code": 500, "message": "context size has been exceeded", "type": "server_error"}),
    "llama-cpp-python": (500, {"message": "Requested tokens (2138) exceed context window of 2048", "code": None}),
    "sglang": (400, {"message": "The input (61709 tokens) is longer than the model's context length (40960 tokens)."}),
    "anthropic": (400, {"type": "invalid_request_error", "message": "prompt is too long: 202609 tokens > 200000"}),
    "gemini": (
        400,
        [{"error": {"code": 400, "message": "The input token count (218152) exceeds the maximum number (65536)."}}],
    ),
    "proxy": (413, "<html>413 Request Entity Too Large</html>"),
}

ANSWERS = [
    (429, {"message": "Rate limit reached for gpt-x.", "type": "requests", "code": "rate_limit_exceeded"}, RateLimited),
    (429, [{"error": {"code": 429, "message": "exceeded your current quota", "status": "R_EXHAUSTED"}}], RateLimited),
    (429, "slow down", RateLimited),
    (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}, QuotaExhausted),
    (402, {"message": "Insufficient Balance"}, QuotaExhausted),
    (400, {"message": "Your credit balance is too low to access the API."}, QuotaExhausted),
    (401, {"message": "Incorrect API key provided", "code": "invalid_api_key"}, ModelConfigurationError),
    (403, {"message": "Country not supported"}, ModelConfigurationError),
    (400, [{"error": {"message": "API key not valid. Please pass a valid API key."}}], ModelConfigurationError),
    (404, {"message": "The model `gpt-x` does not exist", "code": "model_not_found"}, ModelConfigurationError),
    (404, "<html>not found</html>", ModelConfigurationError),
    (
        400,
        {"message": "Unsupported parameter: 'temperature'", "code": "unsupported_parameter"},
        ModelConfigurationError,
    ),
    (400, {"message": "`temperature` is deprecated for this model."}, ModelConfigurationError),
    (422, {"detail": "Extra inputs are not permitted"}, ModelConfigurationError),
    (400, {"message": "Invalid prompt: usage policy", "code": "invalid_prompt"}, Refused),
    (400, {"message": "filtered", "code": "content_filter"}, Refused),
    (408, None, Transient),
    (409, None, Transient),
    (500, {"message": "The server had an error"}, Transient),
    (503, {"error": "Loading model"}, Transient),
    (529, {"type": "overloaded_error"}, Transient),
    (400, {"message": "'messages' is empty"}, ModelError),
    (200, {"message": "?"}, Malformed),
    (429, {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, RateLimited),
    (402, {"type": "error", "error": {"type": "billing_error", "message": "pay"}}, QuotaExhausted),
    (400, {"error": {"message": "You have reached your specified workspace API usage limits."}}, QuotaExhausted),
    (403, {"type": "error", "error": {"type": "permission_error", "message": "no"}}, ModelConfigurationError),
    (504, {"type": "error", "error": {"type": "timeout_error", "message": "late"}}, Transient),
    (200, {"error": {"code": "server_error", "message": "oh"}}, Transient),
    (400, {"error": {"type": "api_error", "message": "what a gateway calls any error"}}, ModelError),
    (400, {"error": {"code": "bio_policy", "message": "no"}}, Refused),
]


@pytest.mark.parametrize("dialect", OVERFLOWS)
def test_context_overflow_in_every_dialect(dialect: str) -> None:
    error = classify_answer(*OVERFLOWS[dialect], place=PLACE)
    assert type(error) is ContextOverflow
    assert not error.retry
    assert not error.stops_run


@pytest.mark.parametrize(("status", "body", "kind"), ANSWERS)
def test_answers(status: int, body: object, kind: type[ModelError]) -> None:
    error = classify_answer(status, body, place=PLACE)
    assert type(error) is kind
    assert error.status == status
    assert str(error).startswith("gpt-x at http://here/v1: ")


def test_what_is_done_about_each_kind() -> None:
    kinds = {name: getattr(errors, name) for name in errors.__all__ if name[0].isupper() and name != "Place"}
    assert {name for name, kind in kinds.items() if kind.retry} == {"RateLimited", "Transient", "Malformed"}
    assert {name for name, kind in kinds.items() if kind.stops_run} == {"QuotaExhausted", "ModelConfigurationError"}
    assert all(issubclass(kind, ModelError) for kind in kinds.values())


def test_exceptions_without_an_answer() -> None:
    request = openai.AsyncOpenAI(api_key="k")._client.build_request("POST", "http://here/v1")
    assert type(classify(openai.APITimeoutError(request), PLACE)) is Transient
    assert type(classify(TimeoutError(), PLACE)) is Transient
    assert "raise `timeout_s`" in str(classify(TimeoutError(), PLACE))
    assert type(classify(openai.APIConnectionError(request=request), PLACE)) is Transient
    assert type(classify(json.JSONDecodeError("Expecting value", "", 0), PLACE)) is Malformed
    assert type(classify(openai.OpenAIError("odd"))) is ModelError
    assert str(classify(openai.OpenAIError("odd"))) == "the model: OpenAIError: odd"


def test_exceptions_of_the_other_sdk() -> None:
    request = anthropic.AsyncAnthropic(api_key="k")._client.build_request("POST", "http://here/v1")
    assert type(classify(anthropic.APITimeoutError(request), PLACE)) is Transient
    assert type(classify(anthropic.APIConnectionError(request=request), PLACE)) is Transient
    assert type(classify(anthropic.AnthropicError("odd"))) is ModelError


def test_classifying_imports_no_sdk() -> None:
    code = (
        "import sys; from flexmem.llm.errors import classify; classify(TimeoutError()); classify(ValueError('x')); "
        "sys.exit(bool({'openai', 'anthropic'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_model_error_passes_unchanged() -> None:
    error = Truncated("cut")
    assert classify(error, PLACE) is error


def test_keys_are_never_quoted() -> None:
    said = "Incorrect API key provided: sk-proj-ABCDEFGH1234. Sent 'Bearer abcdefg', sesame-0123, AIzaSyA12345678."
    message = str(classify_answer(401, {"message": said}, place=PLACE))
    for secret in ("ABCDEFGH", "abcdefg", "sesame", "SyA12345678"):
        assert secret not in message
    assert "task-oriented skyscrapers" in PLACE.quote("task-oriented skyscrapers")


def test_long_answers_are_cut() -> None:
    assert len(str(classify_answer(500, "x" * 10_000, place=PLACE))) < 500


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "20", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00 GMT", "date": "Thu, 01 Jan 2026 00:00:00 GMT"}, 60.0),
        ({"retry-after": "Thu, 01 Jan 1998 00:00:00 GMT"}, 0.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_errors_cross_processes() -> None:
    trail = (Attempt(1, 5.0, 0.5, "RateLimited", 429, Usage(), 0.0),)
    error = RateLimited("slow", status=429, retry_after=2.5, usage=Usage(1, 2), attempts=3, trail=trail)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is RateLimited
    assert (copy.status, copy.retry_after, copy.usage, copy.attempts) == (429, 2.5, Usage(1, 2), 3)
    assert copy.trail == trail
    assert str(copy) == "slow (sent 3 times)"
