"""What each API is sent for a request, and what is read from its answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flexmem.llm.chat_form import ChatForm
from flexmem.llm.errors import Malformed, ModelError, Place, RateLimited, Refused, Transient
from flexmem.llm.families import capabilities
from flexmem.llm.messages_form import MessagesForm
from flexmem.llm.responses_form import ResponsesForm
from flexmem.llm.wire import WireForm
from flexmem.ports import ChatReply, ChatRequest, Message, Role, Usage

from .endpoint import completion, error, message, response
from .test_capabilities import OPEN_SCHEMA, SCHEMA

PLACE = Place("gpt-x", "http://here/v1")
TURNS = (Message("system", "be brief"), Message("user", "hello"))
SENT = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]


def chat(model: str) -> WireForm:
    return ChatForm(capabilities(model), 4_096)


def responses(model: str) -> WireForm:
    return ResponsesForm(capabilities(model), 4_096)


def messages(model: str, reasoning_tokens: int = 4_096) -> WireForm:
    return MessagesForm(capabilities(model, messages=True), reasoning_tokens)


def body(form: WireForm, role: Role = "memory", **options: Any) -> dict[str, Any]:
    return form.body("m", ChatRequest(TURNS, role, 100, **options))[0]


# ---------------------------------------------------------------- Chat Completions


def test_chat_with_a_plain_model() -> None:
    sent, dropped = chat("local").body("m", ChatRequest(TURNS, "memory", 100, temperature=0.0, effort="low"))
    assert sent == {"model": "m", "messages": SENT, "max_tokens": 100, "temperature": 0.0}
    assert dropped == ("effort",)


def test_chat_with_a_reasoning_model() -> None:
    assert body(chat("gpt-5.4-mini"), "reader") == {
        "model": "m",
        "messages": SENT,
        "max_completion_tokens": 4_196,
        "reasoning_effort": "medium",
    }


def test_chat_schema_is_strict_only_where_strict_mode_takes_it() -> None:
    sent = body(chat("local"), schema=SCHEMA)["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "record", "schema": SCHEMA, "strict": True}}
    sent = body(chat("local"), schema=OPEN_SCHEMA)["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"]) == ("reply", False)
    asked = ChatRequest((Message("user", "as JSON"),), "memory", 9, schema=SCHEMA)
    assert chat("deepseek-chat").body("m", asked)[0]["response_format"] == {"type": "json_object"}


def test_a_schema_s_name_has_letters_that_are_allowed() -> None:
    sent = body(chat("local"), schema={**SCHEMA, "title": "Ein Eintrag: größer" + "x" * 99})
    assert sent["response_format"]["json_schema"]["name"] == ("Ein_Eintrag__gr__er" + "x" * 99)[:64]


# ---------------------------------------------------------------- Responses


def test_responses_store_nothing() -> None:
    assert body(responses("gpt-5.4-mini"), "agent") == {
        "model": "m",
        "input": SENT,
        "max_output_tokens": 4_196,
        "store": False,
        "reasoning": {"effort": "medium"},
    }
    assert body(responses("local"), temperature=0.5) == {
        "model": "m",
        "input": SENT,
        "max_output_tokens": 100,
        "store": False,
        "temperature": 0.5,
    }


def test_responses_show_no_reasoning_of_earlier_turns() -> None:
    assert body(responses("gpt-5.6-sol"))["reasoning"] == {"effort": "low", "context": "current_turn"}


def test_responses_schema() -> None:
    sent = body(responses("gpt-5.4"), schema=SCHEMA)["text"]
    assert sent == {"format": {"type": "json_schema", "name": "record", "schema": SCHEMA, "strict": True}}


# ---------------------------------------------------------------- Messages


def test_messages_split_off_the_system_prompt() -> None:
    asked = ChatRequest((*TURNS, Message("system", "and kind"), Message("assistant", "hi")), "memory", 100)
    sent, dropped = messages("claude-3-5-haiku-latest").body("m", asked)
    assert sent == {
        "model": "m",
        "system": "be brief\n\nand kind",
        "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}],
        "max_tokens": 100,
    }
    assert dropped == ()


def test_messages_without_a_system_prompt_send_none() -> None:
    assert "system" not in messages("claude-3-haiku").body("m", ChatRequest(TURNS[1:], "memory", 9))[0]


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "output", "limit"),
    [
        ("claude-sonnet-4-6", "medium", {"type": "adaptive"}, {"effort": "medium"}, 4_196),
        ("claude-sonnet-4-6", "none", {"type": "disabled"}, None, 100),
        ("claude-opus-4-8", "xhigh", {"type": "adaptive"}, {"effort": "xhigh"}, 4_196),
        ("claude-fable-5", "none", {"type": "adaptive"}, {"effort": "low"}, 4_196),  # it can't be kept from thinking
        ("claude-opus-4-5", "low", {"type": "enabled", "budget_tokens": 1_024}, {"effort": "low"}, 4_196),
        ("claude-sonnet-4-5", "medium", {"type": "enabled", "budget_tokens": 2_048}, None, 4_196),
        ("claude-sonnet-4-5", "high", {"type": "enabled", "budget_tokens": 4_096}, None, 4_196),
        ("claude-sonnet-4-5", "none", None, None, 100),
        ("claude-3-5-haiku-latest", "high", None, None, 100),
    ],
)
def test_messages_effort(model: str, effort: str, thinking: object, output: object, limit: int) -> None:
    sent = body(messages(model), effort=effort)
    assert (sent.get("thinking"), sent.get("output_config"), sent["max_tokens"]) == (thinking, output, limit)


def test_messages_think_within_their_limit_however_few_tokens_are_set_apart() -> None:
    sent = body(messages("claude-sonnet-4-5", reasoning_tokens=10), effort="high")
    assert sent["thinking"]["budget_tokens"] == 1_024  # the least that the API takes
    assert sent["max_tokens"] == 1_124


@pytest.mark.parametrize(
    ("model", "effort", "asked", "sent", "dropped"),
    [
        ("claude-sonnet-4-6", "none", 0.5, 0.5, ()),
        ("claude-sonnet-4-6", "none", 1.5, 1.0, ("temperature",)),
        ("claude-sonnet-4-6", "low", 0.5, None, ("temperature",)),
        ("claude-opus-4-8", "none", 0.5, None, ("temperature",)),
        ("claude-3-5-haiku-latest", None, 0.0, 0.0, ()),
    ],
)
def test_messages_temperature(
    model: str, effort: str | None, asked: float, sent: float | None, dropped: tuple[str, ...]
) -> None:
    asked_for = ChatRequest(TURNS, "memory", 100, temperature=asked, effort=effort)
    made, left_out = messages(model).body("m", asked_for)
    assert (made.get("temperature"), left_out) == (sent, dropped)


def test_messages_schema() -> None:
    sent = body(messages("claude-sonnet-4-6"), schema=SCHEMA, effort="none")
    assert sent["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}


def test_only_an_agent_s_prompt_is_cached() -> None:
    assert body(messages("claude-sonnet-4-6"), "agent")["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in body(messages("claude-sonnet-4-6"), "reader")


# ---------------------------------------------------------------- reading

FORMS = {"chat": chat("local"), "responses": responses("local"), "messages": messages("claude-sonnet-4-6")}

CHAT_COUNTS = {
    "prompt_tokens": 20,
    "completion_tokens": 9,
    "prompt_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
RESPONSES_COUNTS = {
    "input_tokens": 20,
    "output_tokens": 9,
    "input_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 2},
    "output_tokens_details": {"reasoning_tokens": 5},
}
MESSAGES_COUNTS = {
    "input_tokens": 2,
    "output_tokens": 9,
    "cache_read_input_tokens": 16,
    "cache_creation_input_tokens": 2,
    "output_tokens_details": {"thinking_tokens": 5},
}

READ: list[tuple[str, object, str, str]] = [
    ("chat", completion("Paris"), "Paris", "stop"),
    ("chat", completion("Par", finish="length"), "Par", "length"),
    ("chat", completion(None, finish="length"), "", "length"),  # all went into hidden reasoning
    ("responses", response("Paris"), "Paris", "stop"),
    ("responses", response("Par", status="incomplete", reason="max_output_tokens"), "Par", "length"),
    ("responses", response(None, status="incomplete", reason="max_output_tokens"), "", "length"),
    ("messages", message("Paris"), "Paris", "stop"),
    ("messages", message("Par", stop="max_tokens"), "Par", "length"),
    ("messages", message(None, stop="max_tokens"), "", "length"),
    ("messages", message("Par", stop="model_context_window_exceeded"), "Par", "length"),
    ("messages", message(None), "", "stop"),
]


@pytest.mark.parametrize(("form", "answer", "text", "finish"), READ)
def test_replies(form: str, answer: object, text: str, finish: str) -> None:
    reply = FORMS[form].read(answer, PLACE)
    assert (reply.text, reply.finish, reply.usage) == (text, finish, Usage(7, 3))


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ("chat", {**completion(), "usage": CHAT_COUNTS}),
        ("responses", {**response(), "usage": RESPONSES_COUNTS}),
        ("messages", {**message(), "usage": MESSAGES_COUNTS}),
    ],
)
def test_usage_means_the_same_everywhere(form: str, answer: object) -> None:
    reply: ChatReply = FORMS[form].read(answer, PLACE)
    assert reply.usage == Usage(input=20, output=9, cached=16, reasoning=5, cache_written=2)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("counts", [None, "many", {"prompt_tokens": "7", "input_tokens": True, "output_tokens": -1}])
def test_counts_that_are_none_are_unknown(form: str, counts: object) -> None:
    good = {"chat": completion(), "responses": response(), "messages": message()}[form]
    assert FORMS[form].read({**good, "usage": counts}, PLACE).usage == Usage()


FAILED: list[tuple[str, object, type[ModelError]]] = [
    ("chat", {**completion(), "choices": []}, Malformed),
    ("chat", {**completion(), "choices": ["x"]}, Malformed),
    ("chat", {**completion(), "choices": [{"finish_reason": "stop"}]}, Malformed),
    ("chat", completion(None), Malformed),
    ("chat", completion([{"type": "text", "text": "x"}]), Malformed),
    ("chat", completion("half", finish="error"), Transient),
    ("chat", completion(None, refusal="I won't."), Refused),
    ("chat", completion("", finish="content_filter"), Refused),
    ("chat", error("Provider returned error", 502), Transient),
    ("chat", {"error": "odd"}, Malformed),
    ("responses", {"id": "x", "status": "completed"}, Malformed),
    ("responses", response(None), Malformed),
    ("responses", {**response(), "output": [{"type": "message", "content": ["x"]}]}, Malformed),
    ("responses", response(["x"]), Malformed),
    ("responses", response(refusal="I won't."), Refused),
    ("responses", response("", status="incomplete", reason="content_filter"), Refused),
    ("responses", {**response(), "status": "failed", "error": {"code": "server_error", "message": "oh"}}, Transient),
    ("responses", {**response(), "status": "failed", "error": {"code": "rate_limit_exceeded"}}, RateLimited),
    ("responses", {**response(), "status": "failed", "error": {"code": "invalid_prompt", "message": "no"}}, Refused),
    ("responses", {**response(), "status": "cancelled"}, Transient),
    ("messages", {"type": "message"}, Malformed),
    ("messages", message(stop=None), Malformed),
    ("messages", message(7), Malformed),
    ("messages", {**message(), "content": ["x"]}, Malformed),
    ("messages", message(None, stop="refusal", stop_details={"type": "refusal", "category": "bio"}), Refused),
    ("messages", message(None, stop="refusal"), Refused),
    ("messages", {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, Transient),
    *((form, answer, Malformed) for form in FORMS for answer in ([1, 2], "text", None, {}, 7)),
]


@pytest.mark.parametrize(("form", "answer", "kind"), FAILED)
def test_what_is_no_reply(form: str, answer: object, kind: type[ModelError]) -> None:
    with pytest.raises(ModelError) as raised:
        FORMS[form].read(answer, PLACE)
    assert type(raised.value) is kind
    assert str(raised.value).startswith("gpt-x at http://here/v1: ")


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ("chat", completion(None, refusal="I won't.")),
        ("responses", response(refusal="I won't.")),
        ("messages", message(None, stop="refusal", stop_details={"type": "refusal", "explanation": "I won't."})),
    ],
)
def test_a_refusal_tells_why_and_what_it_cost(form: str, answer: object) -> None:
    with pytest.raises(Refused, match=r"I won't\.") as raised:
        FORMS[form].read(json.loads(json.dumps(answer)), PLACE)
    assert raised.value.usage == Usage(7, 3)
