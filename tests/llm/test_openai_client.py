"""The client against a real endpoint: every fault, what is raised, how often it was sent, and how long it waited.

Waits are recorded, not slept.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

import pytest
from aiohttp import web

from flexmem.llm.config import ModelConfig
from flexmem.llm.errors import (
    ContextOverflow,
    Malformed,
    ModelConfigurationError,
    ModelError,
    QuotaExhausted,
    RateLimited,
    Refused,
    Transient,
)
from flexmem.llm.openai_client import OpenAIChat
from flexmem.ports import ChatModel, ChatReply, ChatRequest, Message, Usage

from .endpoint import Behaviour, Call, ChatEndpoint, answer, completion, error, hang, listing, ok, raw, reset, status

T = TypeVar("T")

HELLO = ChatRequest((Message("system", "be brief"), Message("user", "hello")), "reader", 50)
QUOTA = error("You exceeded your current quota, please check your plan.", "insufficient_quota", "insufficient_quota")
OVERFLOW = error("This model's maximum context length is 8 tokens.", "context_length_exceeded")


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


def run(model: OpenAIChat, call: Coroutine[Any, Any, T]) -> T:
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
        self.model = OpenAIChat(ModelConfig(**settings), **{"sleep": self.waits, "uniform": lambda: 0.5, **options})

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


@pytest.fixture
def opened() -> Iterator[Open]:
    with contextlib.ExitStack() as stack:

        def open_session(
            script: Sequence[Behaviour], models: Behaviour | None = None, options: Any = None, **config: Any
        ) -> Session:
            return Session(stack.enter_context(ChatEndpoint(script, models)), options or {}, config)

        yield open_session


# ---------------------------------------------------------------- a good answer


def test_a_reply(opened: Open) -> None:
    session = opened(
        [
            ok(
                "Paris",
                prompt_tokens=20,
                completion_tokens=9,
                prompt_tokens_details={"cached_tokens": 16},
                completion_tokens_details={"reasoning_tokens": 5},
            )
        ],
        options={"clock": Ticking(1.0)},
    )
    reply = session.call()
    assert reply == ChatReply(
        "Paris",
        model="local-2026-01-01",
        usage=Usage(input=20, output=9, cached=16, reasoning=5),
        finish="stop",
        latency_s=1.0,
        attempts=1,
        dropped=(),
    )
    (call,) = session.endpoint.chats
    assert call.body == {
        "model": "local",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
        "max_tokens": 50,
    }
    assert isinstance(session.model, ChatModel)


def test_usage_that_is_not_given_is_unknown_not_zero(opened: Open) -> None:
    payload = completion()
    payload["usage"] = None
    assert opened([answer(payload)]).call().usage == Usage()


def test_a_cut_reply_says_so_and_is_not_an_error(opened: Open) -> None:
    assert opened([ok("half an", finish="length")]).call().finish == "length"
    spent_on_reasoning = opened([ok(None, finish="length")]).call()
    assert (spent_on_reasoning.text, spent_on_reasoning.finish) == ("", "length")


def test_defaults_of_the_configuration_and_the_bound_on_replies(opened: Open) -> None:
    session = opened([ok()], temperature=0.25, max_tokens=30)
    session.call()
    session.call(ChatRequest(HELLO.messages, "judge", 10, temperature=1.0))
    first, second = session.endpoint.chats
    assert (first.body["temperature"], first.body["max_tokens"]) == (0.25, 30)
    assert (second.body["temperature"], second.body["max_tokens"]) == (1.0, 10)


def test_dropped_parameters_are_reported(opened: Open) -> None:
    request = ChatRequest(HELLO.messages, "memory", 50, temperature=0.0, effort="low", schema={"type": "object"})
    local = opened([ok()], family="plain")
    assert local.call(request).dropped == ("effort", "schema")
    reasoning = opened([ok()], model="gpt-5.4-mini")
    assert reasoning.call(request).dropped == ("temperature",)
    body = reasoning.endpoint.chats[0].body
    assert body["max_completion_tokens"] == 50 + 4_096
    assert body["reasoning_effort"] == "low"
    assert body["response_format"]["type"] == "json_schema"
    assert "temperature" not in body


def test_one_client_serves_several_event_loops(opened: Open) -> None:
    session = opened([ok("one"), ok("two"), ok("three")])

    async def two() -> list[str]:
        replies = [await session.model.complete(HELLO), await session.model.complete(HELLO)]
        await session.model.aclose()
        return [reply.text for reply in replies]

    assert asyncio.run(two()) == ["one", "two"]
    assert session.call().text == "three"


def test_many_calls_at_once(opened: Open) -> None:
    session = opened([ok()])

    async def many() -> int:
        replies = await asyncio.gather(*(session.model.complete(HELLO) for _ in range(64)))
        await session.model.aclose()
        return len(replies)

    assert asyncio.run(many()) == 64
    assert len(session.endpoint.chats) == 64


# ---------------------------------------------------------------- retried


RETRIED: dict[str, tuple[Behaviour, type[ModelError]]] = {
    "429": (status(429), RateLimited),
    "500": (status(500), Transient),
    "503 with HTML": (status(503, "<html>busy</html>"), Transient),
    "408": (status(408), Transient),
    "reset connection": (reset, Transient),
    "broken JSON": (raw('{"id": "x", "choices": [ {"mess'), Malformed),
    "HTML with 200": (raw("<html>gateway</html>", "text/html"), Malformed),
    "empty body": (raw(""), Malformed),
    "JSON that is no object": (raw("[1, 2]"), Malformed),
    "no choices": (answer({**completion(), "choices": []}), Malformed),
    "choices missing": (answer({"id": "x"}), Malformed),
    "no message": (answer({**completion(), "choices": [{"finish_reason": "stop"}]}), Malformed),
    "no content": (ok(None), Malformed),
    "content of parts": (ok([{"type": "text", "text": "x"}]), Malformed),
    "failed while generating": (ok("half", finish="error"), Transient),
    "error with 200": (answer(error("Provider returned error", 502)), Transient),
    "error with 200 and no code": (answer({"error": "odd"}), Malformed),
}


@pytest.mark.parametrize("fault", RETRIED)
def test_a_passing_fault_is_retried(opened: Open, fault: str) -> None:
    session = opened([RETRIED[fault][0], ok("after all")])
    reply = session.call()
    assert (reply.text, reply.attempts) == ("after all", 2)
    assert session.waits == [0.5]


@pytest.mark.parametrize("fault", RETRIED)
def test_a_lasting_fault_is_raised_after_all_attempts(opened: Open, fault: str) -> None:
    behaviour, kind = RETRIED[fault]
    session = opened([behaviour], attempts=4)
    raised = session.fail(kind)
    assert raised.attempts == len(session.endpoint.chats) == 4
    assert session.waits == [0.5, 1.0, 2.0]
    assert f"local at {session.endpoint.url}: " in str(raised)
    assert "(sent 4 times)" in str(raised)


def test_the_sdk_does_not_retry_on_top(opened: Open) -> None:
    session = opened([status(500)], attempts=1)
    session.fail(Transient)
    assert len(session.endpoint.chats) == 1
    assert session.waits == []


def test_a_hanging_endpoint_is_a_time_out(opened: Open) -> None:
    session = opened([hang], attempts=2, timeout_s=0.05)
    assert "timeout_s" in str(session.fail(Transient))
    assert session.waits == [0.5]


# ---------------------------------------------------------------- waits


def test_retry_after_is_honoured_and_spread(opened: Open) -> None:
    session = opened(
        [status(429, retry_after="7"), status(503, retry_after="2"), status(429, retry_after_ms="250"), ok()]
    )
    assert session.call().attempts == 4
    assert session.waits == [7 + 0.5, 2 + 1.0, 0.25 + 2.0]


@pytest.mark.parametrize(("drawn", "waits"), [(0.0, [0.0, 0.0, 0.0]), (1.0, [1.0, 2.0, 4.0])])
def test_full_jitter(opened: Open, drawn: float, waits: list[float]) -> None:
    session = opened([status(500), status(500), status(500), ok()], options={"uniform": lambda: drawn})
    session.call()
    assert session.waits == waits


def test_back_off_is_capped(opened: Open) -> None:
    session = opened([status(500)], options={"uniform": lambda: 1.0}, attempts=9)
    session.fail(Transient)
    assert session.waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_wait_past_the_deadline_is_not_begun(opened: Open) -> None:
    session = opened([status(429, retry_after="3600")], deadline_s=60)
    raised = session.fail(RateLimited)
    assert raised.retry_after == 3600
    assert raised.attempts == 1
    assert session.waits == []


def test_the_deadline_ends_retries(opened: Open) -> None:
    session = opened([status(500)], options={"clock": Ticking(10.0)}, deadline_s=45, attempts=100)
    assert session.fail(Transient).attempts == 3  # each attempt takes two readings of the clock: 20 s


# ---------------------------------------------------------------- raised at once


AT_ONCE: dict[str, tuple[Behaviour, type[ModelError]]] = {
    "empty account": (status(429, QUOTA), QuotaExhausted),
    "overflow, OpenAI": (status(400, OVERFLOW), ContextOverflow),
    "overflow, vLLM": (
        status(400, {"object": "error", "message": "maximum context length is 4096 tokens", "code": 400}),
        ContextOverflow,
    ),
    "overflow, llama.cpp": (
        status(500, error("too many", 500, "exceed_context_size_error", n_prompt_tokens=9, n_ctx=8)),
        ContextOverflow,
    ),
    "overflow with 200": (answer(error("too many", 400, "exceed_context_size_error")), ContextOverflow),
    "unknown model": (status(404, error("no such model", "model_not_found")), ModelConfigurationError),
    "wrong key": (status(401, error("Incorrect API key", "invalid_api_key")), ModelConfigurationError),
    "parameter": (status(400, error("Unsupported parameter", "unsupported_parameter")), ModelConfigurationError),
    "bad request": (status(400, error("messages is empty")), ModelError),
    "refusal": (ok(None, refusal="I can't help with that."), Refused),
    "content filter": (ok("", finish="content_filter"), Refused),
    "filtered prompt": (status(400, error("filtered", "content_filter")), Refused),
}


@pytest.mark.parametrize("fault", AT_ONCE)
def test_a_lasting_fault_is_raised_at_once(opened: Open, fault: str) -> None:
    behaviour, kind = AT_ONCE[fault]
    session = opened([behaviour, ok()])
    assert session.fail(kind).attempts == 1
    assert len(session.endpoint.chats) == 1
    assert session.waits == []


def test_a_refusal_tells_what_it_cost(opened: Open) -> None:
    raised = opened([ok(None, refusal="no")]).fail(Refused)
    assert raised.usage == Usage(input=7, output=3)


def test_a_prompt_over_the_configured_window_is_not_sent(opened: Open) -> None:
    session = opened([ok()], context_tokens=20)
    raised = session.fail(ContextOverflow)
    assert raised.attempts == 0
    assert session.endpoint.log == []
    assert session.call(ChatRequest(HELLO.messages, "reader", 5)).text == "fine"


def test_cancelling_is_not_a_failure(opened: Open) -> None:
    arrived = threading.Event()

    async def arrive_and_hang(request: web.Request, call: Call) -> web.StreamResponse:
        arrived.set()
        return await hang(request, call)

    session = opened([arrive_and_hang])

    async def cancelled() -> None:
        call = asyncio.create_task(session.model.complete(HELLO))
        await asyncio.to_thread(arrived.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await session.model.aclose()

    asyncio.run(cancelled())


# ---------------------------------------------------------------- keys and addresses


def test_a_local_address_needs_no_key(opened: Open) -> None:
    session = opened([ok()])
    session.call()
    assert session.endpoint.chats[0].headers["authorization"] == "Bearer no-key"


def test_the_key_is_read_from_the_named_variable(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    monkeypatch.setenv("JUDGE_KEY", " sesame \n")
    session = opened([ok()], api_key_env="JUDGE_KEY")
    session.call()
    assert session.endpoint.chats[0].headers["authorization"] == "Bearer sesame"


def test_the_address_is_read_from_the_environment(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatEndpoint([ok()]) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        session = opened([ok()], base_url=None)
        session.call()
        assert len(endpoint.chats) == 1
        assert session.model.describe()["base_url"] == endpoint.url


def test_a_missing_key_fails_before_anything_is_sent() -> None:
    model = OpenAIChat(ModelConfig(model="gpt-5.4-mini", api_key_env="SOME_KEY"))
    assert model.describe()["base_url"] == "https://api.openai.com/v1"
    for call in (model.preflight(), model.complete(HELLO)):
        with pytest.raises(ModelConfigurationError, match=r"gpt-5.4-mini at https://.*no API key. Set SOME_KEY"):
            asyncio.run(call)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("[::1]", True),
        ("10.0.3.4", True),
        ("vllm", True),
        ("gpu.internal", True),
        ("api.openai.com", False),
        ("8.8.8.8", False),
    ],
)
def test_which_addresses_are_local(host: str, local: bool) -> None:
    model = OpenAIChat(ModelConfig(model="m", base_url=f"http://{host}:8000/v1"))
    assert bool(model._key) is local


@pytest.mark.parametrize("address", ["localhost:8000/v1", "ftp://host/v1", "http://"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(ModelConfigurationError, match="base_url"):
        OpenAIChat(ModelConfig(model="m", base_url=address))


def test_the_key_stands_in_no_description_and_no_failure(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "open-sesame")
    session = opened([status(401, error("Incorrect API key provided: open-sesame"))])
    assert "sesame" not in json.dumps(session.model.describe())
    raised = session.fail(ModelConfigurationError)
    assert "sesame" not in "".join(traceback.format_exception(raised))


def test_describe_is_what_shapes_replies() -> None:
    config = {"model": "m", "base_url": "http://user:pass@localhost:1/v1/?key=s", "temperature": 0.0}
    one = OpenAIChat(ModelConfig(**config))
    other = OpenAIChat(ModelConfig(**config, timeout_s=1, attempts=1))
    assert one.describe() == other.describe()
    assert one.describe() == {
        "provider": "openai",
        "base_url": "http://localhost:1/v1",
        "family": "local",
        "model": "m",
        "temperature": 0.0,
        "effort": None,
        "max_tokens": None,
        "reasoning_tokens": 4_096,
        "context_tokens": None,
    }


# ---------------------------------------------------------------- preflight


def test_preflight_sends_no_chat(opened: Open) -> None:
    session = opened([ok()])
    session.preflight()
    assert [(call.method, call.path) for call in session.endpoint.log] == [("GET", "/v1/models")]


def test_preflight_at_an_endpoint_that_is_down() -> None:
    with socket.socket() as taken:  # bound but not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        model = OpenAIChat(ModelConfig(model="local", base_url=url))
        with pytest.raises(ModelConfigurationError, match=r"connection failed .*Is the endpoint up") as raised:
            run(model, model.preflight())
    assert url in str(raised.value)


@pytest.mark.parametrize(
    ("answered", "kind", "words"),
    [
        (status(401), ModelConfigurationError, "key"),
        (status(503, error("Loading model")), ModelConfigurationError, "Loading model"),
        (status(429, QUOTA), QuotaExhausted, "credit"),
        (raw("<html>Open WebUI</html>", "text/html"), ModelConfigurationError, "base_url"),
        (raw("[]"), ModelConfigurationError, "not as an API"),
    ],
)
def test_preflight_refuses(opened: Open, answered: Behaviour, kind: type[ModelError], words: str) -> None:
    with pytest.raises(kind, match=words):
        opened([ok()], answered).preflight()


@pytest.mark.parametrize("answered", [status(404), status(429), listing(), listing("other")])
def test_preflight_passes(opened: Open, answered: Behaviour) -> None:
    opened([ok()], answered).preflight()


def test_preflight_where_the_address_lacks_its_path() -> None:
    with ChatEndpoint([ok()], status(404)) as endpoint:
        model = OpenAIChat(ModelConfig(model="local", base_url=endpoint.url.removesuffix("/v1")))
        with pytest.raises(ModelConfigurationError, match=r"ends as in '…/v1'"):
            run(model, model.preflight())
