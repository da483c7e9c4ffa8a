"""The client of OpenAI-compatible endpoints against a real one: what is sent, keys, addresses, preflight."""

from __future__ import annotations

import asyncio
import json
import socket
import traceback

import pytest

from flexmem.llm.config import ModelConfig
from flexmem.llm.errors import ModelConfigurationError, ModelError, QuotaExhausted
from flexmem.llm.openai_client import OpenAIChat
from flexmem.ports import Attempt, ChatModel, ChatReply, ChatRequest, Usage

from .endpoint import Behaviour, ChatEndpoint, answer, completion, error, listing, ok, raw, status
from .session import HELLO, Open, Ticking, run

QUOTA = error("You exceeded your current quota, please check your plan.", "insufficient_quota", "insufficient_quota")

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
        options={"clock": Ticking(1.0), "wall": lambda: 1_000.0},
    )
    reply = session.call()
    usage = Usage(input=20, output=9, cached=16, reasoning=5)
    assert reply == ChatReply(
        "Paris",
        model="local-2026-01-01",
        usage=usage,
        finish="stop",
        latency_s=1.0,
        attempts=1,
        dropped=(),
        trail=(Attempt(1, 1_000.0, 1.0, "reply", 200, usage, None),),
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


def test_responses_by_configuration_and_by_row(opened: Open) -> None:
    session = opened([ok("Paris")], api="responses")
    assert session.call().text == "Paris"
    assert opened([ok("Paris")], model="gpt-5-pro").call().text == "Paris"
    assert session.endpoint.chats[0].path == "/v1/responses"
    assert session.endpoint.chats[0].body["store"] is False
    chat = opened([ok("Paris")], model="gpt-5-pro", api="chat")
    assert chat.call().text == "Paris"
    assert chat.endpoint.chats[0].path == "/v1/chat/completions"


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
    limited = OpenAIChat(ModelConfig(**config, requests_per_minute=5, account="mine", price={"input": 1, "output": 2}))
    assert one.describe() == other.describe() == limited.describe()
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


def test_describe_tells_the_api_and_the_efforts_that_are_sent() -> None:
    plain, local = ({"model": name, "base_url": "http://localhost:1/v1"} for name in ("gpt-5.4", "local"))
    assert OpenAIChat(ModelConfig(**local, api="responses")).describe()["api"] == "responses"
    efforts = {"agent": "medium", "reader": "medium", "memory": "low", "judge": "low"}
    assert OpenAIChat(ModelConfig(**plain)).describe()["effort"] == efforts
    assert OpenAIChat(ModelConfig(**plain, effort="high")).describe()["effort"] == "high"


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
