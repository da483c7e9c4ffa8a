"""Which parameters each family is sent, and what is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from flexmem.llm.capabilities import FAMILIES, capabilities
from flexmem.ports import ChatRequest, Message

SCHEMA = {
    "title": "record",
    "type": "object",
    "properties": {"record": {"type": "string"}},
    "required": ["record"],
    "additionalProperties": False,
}


def request(text: str = "hello", **options: Any) -> ChatRequest:
    return ChatRequest((Message("user", text),), "memory", 100, **options)


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-5.4-mini", "gpt-5.2"),
        ("gpt-5.4", "gpt-5.2"),
        ("openai/gpt-5.4-mini", "gpt-5.2"),
        ("gpt-5.1", "gpt-5.1"),
        ("gpt-5-mini", "gpt-5"),
        ("gpt-5-pro", "gpt-5-pro"),
        ("gpt-5-chat-latest", "gpt-5-chat"),
        ("gpt-5.5", "gpt-next"),
        ("gpt-6", "gpt-next"),
        ("o3-mini", "o-series"),
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


def test_a_row_may_be_named() -> None:
    assert capabilities("my-deployment", "gpt-5.2").efforts[0] == "none"
    with pytest.raises(ValueError, match="known: gpt-4"):
        capabilities("x", "gpt-17")
    assert len({row.family for row in FAMILIES}) == len(FAMILIES)


def test_a_local_model_takes_plain_parameters_and_no_effort() -> None:
    fields, dropped = capabilities("local").parameters(request(temperature=0.0, effort="low"), reasoning_tokens=4_096)
    assert fields == {"max_tokens": 100, "temperature": 0.0}
    assert dropped == ("effort",)


def test_a_reasoning_model_takes_temperature_only_without_effort() -> None:
    row = capabilities("gpt-5.4-mini")
    fields, dropped = row.parameters(request(temperature=0.0, effort="medium"), reasoning_tokens=4_096)
    assert fields == {"max_completion_tokens": 4_196, "reasoning_effort": "medium"}
    assert dropped == ("temperature",)
    fields, dropped = row.parameters(request(temperature=0.0, effort="none"), reasoning_tokens=4_096)
    assert fields == {"max_completion_tokens": 100, "reasoning_effort": "none", "temperature": 0.0}
    assert dropped == ()
    assert row.parameters(request(temperature=0.0))[1] == ()  # reasons only when told to


def test_an_effort_that_the_model_lacks_is_dropped() -> None:
    fields, dropped = capabilities("gpt-5-mini").parameters(
        request(effort="none", temperature=0.5), reasoning_tokens=50
    )
    assert fields == {"max_completion_tokens": 150}  # it still reasons, as by default
    assert dropped == ("effort", "temperature")


def test_schema_is_strict_only_where_strict_mode_takes_it() -> None:
    fields, dropped = capabilities("local").parameters(request(schema=SCHEMA))
    assert dropped == ()
    assert fields["response_format"]["json_schema"] == {"name": "record", "schema": SCHEMA, "strict": True}
    nested = {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}}
    fields, _ = capabilities("local").parameters(request(schema=nested))
    assert fields["response_format"]["json_schema"]["strict"] is False
    assert fields["response_format"]["json_schema"]["name"] == "reply"


def test_json_mode_needs_the_word_in_the_prompt_and_counts_as_dropped() -> None:
    row = capabilities("deepseek-chat")
    fields, dropped = row.parameters(request("answer in JSON", schema=SCHEMA))
    assert fields["response_format"] == {"type": "json_object"}
    assert dropped == ("schema",)
    fields, dropped = row.parameters(request("answer", schema=SCHEMA))
    assert "response_format" not in fields
    assert dropped == ("schema",)


def test_schema_is_left_out_where_it_would_be_ignored() -> None:
    fields, dropped = capabilities("claude-sonnet-4-6").parameters(
        request(schema=SCHEMA, temperature=0.0, effort="low")
    )
    assert fields == {"max_tokens": 100, "temperature": 0.0}
    assert dropped == ("effort", "schema")
