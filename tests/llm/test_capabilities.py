"""Which row a model's name finds, and what becomes of a request that asks for more than a model takes."""

from __future__ import annotations

from typing import Any

import pytest

from flexmem.llm.capabilities import ROLE_EFFORTS, Parameters
from flexmem.llm.families import FAMILIES, capabilities
from flexmem.ports import ChatRequest, Message, Role

SCHEMA = {
    "title": "record",
    "type": "object",
    "properties": {"record": {"type": "string"}},
    "required": ["record"],
    "additionalProperties": False,
}
OPEN_SCHEMA = {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}}


def request(text: str = "hello", role: Role = "memory", **options: Any) -> ChatRequest:
    return ChatRequest((Message("user", text),), role, 100, **options)


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-5.4-mini", "gpt-5.2"),
        ("gpt-5.4", "gpt-5.2"),
        ("openai/gpt-5.4-mini", "gpt-5.2"),
        ("gpt-5.5", "gpt-5.2"),
        ("gpt-5.1", "gpt-5.1"),
        ("gpt-5-mini", "gpt-5"),
        ("gpt-5-pro", "gpt-5-pro"),
        ("gpt-5.2-pro-2025-12-11", "gpt-pro"),
        ("gpt-5.1-codex", "codex"),
        ("codex-mini-latest", "codex"),
        ("gpt-5-chat-latest", "gpt-5-chat"),
        ("gpt-5.6-sol", "gpt-next"),
        ("gpt-6", "gpt-next"),
        ("o3-mini", "o-series"),
        ("o3-pro", "o-pro"),
        ("gpt-4.1", "gpt-4"),
        ("ft:gpt-4o-mini-2024-07-18:us::x", "gpt-4"),
        ("gpt-4-turbo", "gpt-3.5"),
        ("gpt-oss-20b", "gpt-oss"),
        ("claude-sonnet-4-6", "claude"),
        ("claude-sonnet-4-20250514", "claude"),
        ("claude-3-7-sonnet-latest", "claude"),
        ("claude-opus-4-7", "claude-next"),
        ("gemini-2.5-flash", "gemini"),
        ("deepseek-chat", "deepseek"),
        ("Qwen/Qwen2.5-Coder-1.5B", "local"),
        ("qwen3:8b", "local"),
        ("olmo", "local"),
        ("local", "local"),
    ],
)
def test_rows_by_name(model: str, family: str) -> None:
    assert capabilities(model).family == family


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-3-5-haiku-latest", "claude-3"),
        ("claude-3-7-sonnet-latest", "claude-4"),
        ("claude-sonnet-4-20250514", "claude-4"),
        ("claude-opus-4-0", "claude-4"),
        ("claude-opus-4-1-20250805", "claude-4.5"),
        ("claude-haiku-4-5", "claude-4.5"),
        ("claude-opus-4-5-20251101", "claude-opus-4.5"),
        ("claude-sonnet-4-6", "claude-4.6"),
        ("claude-opus-4-8", "claude-4.7"),
        ("claude-sonnet-5-5", "claude-4.7"),
        ("claude-fable-5-1", "claude-fable"),
        ("claude-mythos-preview", "claude-fable"),
        ("some-model", "messages"),
    ],
)
def test_rows_of_anthropics_own_api(model: str, family: str) -> None:
    row = capabilities(model, messages=True)
    assert (row.family, row.api) == (family, "messages")


def test_a_row_may_be_named() -> None:
    assert capabilities("my-deployment", "gpt-5.2").efforts[0] == "none"
    assert capabilities("my-deployment", "claude-4.6", messages=True).thinking == "adaptive"
    with pytest.raises(ValueError, match="known: gpt-4"):
        capabilities("x", "gpt-17")
    with pytest.raises(ValueError, match=r"unknown model family 'claude-4\.6'"):  # known, but not at such an address
        capabilities("x", "claude-4.6")
    assert len({row.family for row in FAMILIES}) == len(FAMILIES)


def test_a_local_model_takes_plain_parameters_and_no_effort() -> None:
    sent = capabilities("local").parameters(request(temperature=0.0, effort="low"), reasoning_tokens=4_096)
    assert sent == Parameters(100, None, 0.0, None, ("effort",))
    assert not sent.reasons


def test_a_reasoning_model_takes_temperature_only_without_effort() -> None:
    row = capabilities("gpt-5.4-mini")
    sent = row.parameters(request(temperature=0.0, effort="medium"), reasoning_tokens=4_096)
    assert sent == Parameters(4_196, "medium", None, None, ("temperature",))
    sent = row.parameters(request(temperature=0.0, effort="none"), reasoning_tokens=4_096)
    assert sent == Parameters(100, "none", 0.0, None, ())


@pytest.mark.parametrize("role", ROLE_EFFORTS)
def test_an_effort_is_sent_even_if_nobody_names_one(role: Role) -> None:
    expected = {"agent": "medium", "reader": "medium", "memory": "low", "judge": "low"}[role]
    assert capabilities("gpt-5.4-mini").parameters(request(role=role)).effort == expected
    # A model without that parameter is sent none, and nobody asked for one that could be dropped.
    assert capabilities("local").parameters(request(role=role)) == Parameters(100, None, None, None, ())


@pytest.mark.parametrize(
    ("model", "asked", "sent"),
    [
        ("gpt-5-mini", "none", "minimal"),
        ("gpt-5.4", "max", "xhigh"),
        ("gpt-5-pro", "low", "high"),
        ("gpt-5.1", "minimal", "none"),  # as near as low; the weaker counts
        ("gpt-5.4", "as you like", "low"),  # no effort at all: the role's
    ],
)
def test_an_effort_that_the_model_lacks_is_the_nearest_and_counts_as_dropped(model: str, asked: str, sent: str) -> None:
    found = capabilities(model).parameters(request(effort=asked))
    assert (found.effort, found.dropped) == (sent, ("effort",))


def test_a_role_s_effort_that_the_model_lacks_is_no_loss() -> None:
    assert capabilities("gpt-5-pro").parameters(request(role="reader")) == Parameters(100, "high", None, None, ())


def test_json_mode_needs_the_word_in_the_prompt_and_counts_as_dropped() -> None:
    row = capabilities("deepseek-chat")
    sent = row.parameters(request("answer in JSON", schema=SCHEMA))
    assert (sent.schema, sent.dropped) == ("json_object", ("schema",))
    sent = row.parameters(request("answer", schema=SCHEMA))
    assert (sent.schema, sent.dropped) == (None, ("schema",))


def test_schema_is_left_out_where_it_would_be_ignored() -> None:
    sent = capabilities("claude-sonnet-4-6").parameters(request(schema=SCHEMA, temperature=0.0, effort="low"))
    assert sent == Parameters(100, None, 0.0, None, ("effort", "schema"))


def test_an_open_schema_is_left_out_where_only_closed_ones_are_taken() -> None:
    row = capabilities("claude-sonnet-4-6", messages=True)
    assert row.parameters(request(schema=SCHEMA)).schema == "json_schema"
    sent = row.parameters(request(schema=OPEN_SCHEMA))
    assert (sent.schema, sent.dropped) == (None, ("schema",))
    assert capabilities("local").parameters(request(schema=OPEN_SCHEMA)).schema == "json_schema"
