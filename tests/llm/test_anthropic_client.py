"""The client of Anthropic's own API against a real endpoint; faults stand in test_faults.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flexmem.llm.anthropic_client import AnthropicChat
from flexmem.llm.config import ModelConfig, make_model
from flexmem.llm.errors import ModelConfigurationError
from flexmem.ports import ChatModel, ChatRequest, Message, Usage

from .endpoint import Behaviour, answer, error, listing, message, ok, raw, status
from .session import HELLO, Open, run

CLAUDE = {"provider": "anthropic", "model": "claude-sonnet-4-6"}


def test_a_reply(opened: Open) -> None:
    counts = {
        "input_tokens": 10,
        "output_tokens": 9,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 50,
    }
    session = opened([answer(message("Paris", usage=counts))], **CLAUDE)
    reply = session.call()
    assert (reply.text, reply.model, reply.finish) == ("Paris", "claude-2026-01-01", "stop")
    assert reply.usage == Usage(input=160, output=9, cached=100, cache_written=50)
    (call,) = session.endpoint.chats
    assert call.path == "/v1/messages"
    assert call.body == {
        "model": "claude-sonnet-4-6",
        "system": "be brief",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 50 + 4_096,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "medium"},
    }
    assert isinstance(session.model, ChatModel)


def test_temperature_is_sent_where_the_model_takes_it(opened: Open) -> None:
    session = opened([ok()], **CLAUDE)
    asked = ChatRequest(HELLO.messages, "judge", 50, temperature=0.0, effort="none")
    assert session.call(asked).dropped == ()
    assert session.endpoint.chats[0].body["temperature"] == 0.0
    thinking = opened([ok()], **CLAUDE)
    assert thinking.call(ChatRequest(HELLO.messages, "judge", 50, temperature=0.0)).dropped == ("temperature",)
    assert "temperature" not in thinking.endpoint.chats[0].body


def test_the_key_is_read_from_anthropics_variable_and_shown_nowhere(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "open-sesame")
    session = opened([status(401, error("invalid x-api-key: open-sesame"))], **CLAUDE)
    raised = session.fail(ModelConfigurationError)
    assert session.endpoint.chats[0].headers["authorization"] == "Bearer open-sesame"
    assert "sesame" not in str(raised)
    assert "sesame" not in json.dumps(session.model.describe())


def test_a_missing_key_fails_before_anything_is_sent() -> None:
    model = AnthropicChat(ModelConfig(provider="anthropic", model="claude-sonnet-4-6"))
    assert model.describe()["base_url"] == "https://api.anthropic.com"
    for call in (model.preflight(), model.complete(HELLO)):
        with pytest.raises(ModelConfigurationError, match=r"claude-sonnet-4-6 at https://.*Set ANTHROPIC_API_KEY"):
            run(model, call)


@pytest.mark.parametrize("ending", ["/v1", "/v1/", ""])
def test_the_address_may_end_in_v1_or_not(opened: Open, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    session = opened([ok()], **CLAUDE)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", session.endpoint.url.removesuffix("/v1") + ending)
    model = AnthropicChat(ModelConfig(**CLAUDE))
    assert run(model, model.complete(HELLO)).text == "fine"
    assert session.endpoint.chats[0].path == "/v1/messages"


@pytest.mark.parametrize("answered", [listing(), listing("other"), status(404), status(429)])
def test_preflight_passes(opened: Open, answered: Behaviour) -> None:
    session = opened([ok()], answered, **CLAUDE)
    session.preflight()
    assert [(call.method, call.path) for call in session.endpoint.log] == [("GET", "/v1/models")]


@pytest.mark.parametrize(("answered", "words"), [(status(401), "key"), (raw("<html>", "text/html"), "base_url")])
def test_preflight_refuses(opened: Open, answered: Behaviour, words: str) -> None:
    with pytest.raises(ModelConfigurationError, match=words):
        opened([ok()], answered, **CLAUDE).preflight()


def test_other_servers_that_speak_messages(opened: Open) -> None:
    session = opened([ok()], provider="anthropic", model="qwen3")
    asked = ChatRequest((Message("user", "hello"),), "reader", 50, temperature=0.5, effort="low")
    assert session.call(asked).dropped == ("effort",)
    assert session.endpoint.chats[0].body == {
        "model": "qwen3",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 50,
        "temperature": 0.5,
    }


def test_without_its_package_the_provider_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "hidden.py").write_text(
        "import sys\n"
        "sys.modules['anthropic'] = None\n"
        "from flexmem.llm.config import ModelConfig, make_model\n"
        "make_model(ModelConfig(provider='anthropic', model='claude-sonnet-4-6'))\n"
    )
    ran = subprocess.run([sys.executable, tmp_path / "hidden.py"], capture_output=True, text=True, check=False)
    assert "ModelConfigurationError: claude-sonnet-4-6: " in ran.stderr
    assert "pip install 'flexmem[anthropic]'" in ran.stderr


def test_make_model() -> None:
    assert isinstance(make_model(ModelConfig(**CLAUDE)), AnthropicChat)
