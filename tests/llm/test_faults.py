"""Every fault of an endpoint, over each API: what is raised, how often it was sent, how long it waited, and what the
record of attempts says. Waits are recorded, not slept.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
from typing import Any

import pytest
from aiohttp import web

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
from flexmem.ports import ChatRequest, Message, Usage

from .endpoint import (
    Behaviour,
    Call,
    after,
    answer,
    anthropic_error,
    completion,
    cut_short,
    error,
    hang,
    message,
    ok,
    raw,
    reset,
    response,
    status,
)
from .session import APIS, HELLO, Open, Ticking

PRICE = {"input": 1_000.0, "output": 10_000.0}  # a prompt token costs 0.001 $, a token of the reply 0.01 $

QUOTA = error("You exceeded your current quota, please check your plan.", "insufficient_quota", "insufficient_quota")
OVERFLOW = error("This model's maximum context length is 8 tokens.", "context_length_exceeded")

# What all APIs meet alike; the value at the end is the HTTP status that the record tells.
RETRIED: dict[str, tuple[Behaviour, type[ModelError], int | None]] = {
    "429": (status(429), RateLimited, 429),
    "500": (status(500), Transient, 500),
    "503 with HTML": (status(503, "<html>busy</html>"), Transient, 503),
    "408": (status(408), Transient, 408),
    "529": (status(529, anthropic_error("overloaded_error")), Transient, 529),
    "reset connection": (reset, Transient, None),
    "body cut short": (cut_short, Transient, None),
    "broken JSON": (raw('{"id": "x", "choices": [ {"mess'), Malformed, 200),
    "HTML with 200": (raw("<html>gateway</html>", "text/html"), Malformed, 200),
    "empty body": (raw(""), Malformed, 200),
    "JSON that is no object": (raw("[1, 2]"), Malformed, 200),
    "nothing of a reply": (answer({"id": "x"}), Malformed, 200),
    "error with 200": (answer(error("Provider returned error", 502)), Transient, 502),
    "error with 200 and no code": (answer({"error": "odd"}), Malformed, 200),
}
AT_ONCE: dict[str, tuple[Behaviour, type[ModelError]]] = {
    "empty account": (status(429, QUOTA), QuotaExhausted),
    "empty account, Anthropic": (
        status(400, anthropic_error("invalid_request_error", "Your credit balance is too low")),
        QuotaExhausted,
    ),
    "own limit, Anthropic": (
        status(400, anthropic_error("invalid_request_error", "You have reached your specified API usage limits.")),
        QuotaExhausted,
    ),
    "overflow, OpenAI": (status(400, OVERFLOW), ContextOverflow),
    "overflow, vLLM": (
        status(400, {"object": "error", "message": "maximum context length is 4096 tokens", "code": 400}),
        ContextOverflow,
    ),
    "overflow, llama.cpp": (
        status(500, error("too many", 500, "exceed_context_size_error", n_prompt_tokens=9, n_ctx=8)),
        ContextOverflow,
    ),
    "overflow, Anthropic": (
        status(400, anthropic_error("invalid_request_error", "prompt is too long: 202609 tokens > 200000 maximum")),
        ContextOverflow,
    ),
    "overflow with 200": (answer(error("too many", 400, "exceed_context_size_error")), ContextOverflow),
    "unknown model": (status(404, error("no such model", "model_not_found")), ModelConfigurationError),
    "unknown model, Anthropic": (status(404, anthropic_error("not_found_error")), ModelConfigurationError),
    "wrong key": (status(401, error("Incorrect API key", "invalid_api_key")), ModelConfigurationError),
    "parameter": (status(400, error("Unsupported parameter", "unsupported_parameter")), ModelConfigurationError),
    "bad request": (status(400, error("messages is empty")), ModelError),
    "filtered prompt": (status(400, error("filtered", "content_filter")), Refused),
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", RETRIED)
def test_a_passing_fault_is_retried(opened: Open, fault: str, api: str) -> None:
    behaviour, kind, code = RETRIED[fault]
    session = opened([behaviour, ok("after all")], **APIS[api], price=PRICE)
    reply = session.call()
    assert (reply.text, reply.attempts) == ("after all", 2)
    assert session.waits == [0.5]
    failed, answered = reply.trail
    assert (failed.number, failed.outcome, failed.status) == (1, kind.__name__, code)
    assert (answered.number, answered.outcome, answered.status) == (2, "reply", 200)
    assert answered.usage == reply.usage == Usage(7, 3)
    assert answered.usd == pytest.approx(0.007 + 0.03)
    # Nothing is paid for what was turned away; what broke off may have been paid.
    assert failed.usd == (0.0 if fault == "429" else None)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", RETRIED)
def test_a_lasting_fault_is_raised_after_all_attempts(opened: Open, fault: str, api: str) -> None:
    behaviour, kind, code = RETRIED[fault]
    session = opened([behaviour], **APIS[api], attempts=4)
    raised = session.fail(kind)
    assert raised.attempts == len(session.endpoint.chats) == 4
    assert session.waits == [0.5, 1.0, 2.0]
    assert f"local at {session.endpoint.url}: " in str(raised)
    assert "(sent 4 times)" in str(raised)
    assert [(one.number, one.outcome, one.status) for one in raised.trail] == [
        (number, kind.__name__, code) for number in (1, 2, 3, 4)
    ]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", AT_ONCE)
def test_a_lasting_fault_is_raised_at_once(opened: Open, fault: str, api: str) -> None:
    behaviour, kind = AT_ONCE[fault]
    session = opened([behaviour, ok()], **APIS[api])
    raised = session.fail(kind)
    assert raised.attempts == len(raised.trail) == len(session.endpoint.chats) == 1
    assert session.waits == []


REFUSALS: dict[str, list[dict[str, Any]]] = {
    "chat": [completion(None, refusal="I can't help with that."), completion("", finish="content_filter")],
    "responses": [
        response(refusal="I can't help with that."),
        response("", status="incomplete", reason="content_filter"),
    ],
    "messages": [message(None, stop="refusal")],
}


@pytest.mark.parametrize(("api", "refusal"), [(api, refusal) for api in APIS for refusal in REFUSALS[api]])
def test_a_refusal_is_raised_at_once_and_tells_what_it_cost(opened: Open, api: str, refusal: dict[str, Any]) -> None:
    raised = opened([answer(refusal), ok()], **APIS[api], price=PRICE).fail(Refused)
    assert raised.usage == Usage(input=7, output=3)
    (attempt,) = raised.trail
    assert (attempt.outcome, attempt.status, attempt.usage) == ("Refused", 200, raised.usage)
    assert attempt.usd == pytest.approx(0.037)


EMPTY: dict[str, dict[str, Any]] = {
    "chat": {**completion(), "choices": []},
    "responses": response(None),
    "messages": {**message(), "content": None},
}
CUT: dict[str, dict[str, Any]] = {
    "chat": completion("half", finish="length"),
    "responses": response("half", status="incomplete", reason="max_output_tokens"),
    "messages": message("half", stop="max_tokens"),
}


@pytest.mark.parametrize("api", APIS)
def test_an_answer_without_a_reply_is_retried_and_what_it_cost_is_known(opened: Open, api: str) -> None:
    reply = opened([answer(EMPTY[api]), ok()], **APIS[api], price=PRICE).call()
    assert [attempt.outcome for attempt in reply.trail] == ["Malformed", "reply"]
    paid = None if api == "chat" else pytest.approx(0.037)  # usage of an answer without choices is not looked for
    assert reply.trail[0].usd == paid


@pytest.mark.parametrize("api", APIS)
def test_a_truncated_reply_says_so_and_is_not_an_error(opened: Open, api: str) -> None:
    reply = opened([answer(CUT[api])], **APIS[api]).call()
    assert (reply.text, reply.finish, reply.attempts) == ("half", "length", 1)


@pytest.mark.parametrize("api", APIS)
def test_the_sdk_does_not_retry_on_top(opened: Open, api: str) -> None:
    session = opened([status(500)], **APIS[api], attempts=1)
    session.fail(Transient)
    assert len(session.endpoint.chats) == 1
    assert session.waits == []


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("slow", [hang, after(30.0, ok())])
def test_no_first_byte_in_time_is_a_time_out(opened: Open, slow: Behaviour, api: str) -> None:
    session = opened([slow], **APIS[api], attempts=2, timeout_s=0.05)
    assert session.fail(Transient).attempts == 2
    assert session.waits == [0.5]


@pytest.mark.parametrize("api", APIS)
def test_a_first_byte_that_comes_late_but_in_time(opened: Open, api: str) -> None:
    assert opened([after(0.2, ok("late"))], **APIS[api], timeout_s=30).call().text == "late"


# ---------------------------------------------------------------- waits


@pytest.mark.parametrize("api", APIS)
def test_retry_after_is_honoured_and_spread(opened: Open, api: str) -> None:
    session = opened(
        [status(429, retry_after="7"), status(503, retry_after="2"), status(429, retry_after_ms="250"), ok()],
        **APIS[api],
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


def test_an_attempt_ends_with_the_deadline(opened: Open) -> None:
    session = opened([hang], deadline_s=0.05, timeout_s=600)
    assert session.fail(Transient).attempts == 1


# ---------------------------------------------------------------- the record


def test_the_record_tells_when_and_how_long(opened: Open) -> None:
    options = {"clock": Ticking(1.0), "wall": Ticking(100.0)}
    reply = opened([status(500), ok()], options=options).call()
    assert [(one.started_at, one.latency_s) for one in reply.trail] == [(100.0, 1.0), (200.0, 1.0)]


def test_without_a_price_no_cost_is_known_and_none_is_zero(opened: Open) -> None:
    reply = opened([status(429), ok()]).call()
    assert [attempt.usd for attempt in reply.trail] == [None, None]
    free = opened([status(429), ok()], price={"input": 0, "output": 0}).call()
    assert [attempt.usd for attempt in free.trail] == [0.0, 0.0]


def test_a_failure_crosses_processes_with_its_record(opened: Open) -> None:
    raised = opened([status(500)], attempts=2).fail(Transient)
    copy = pickle.loads(pickle.dumps(raised))
    assert type(copy) is Transient
    assert (copy.trail, copy.attempts, str(copy)) == (raised.trail, 2, str(raised))
    assert len(copy.trail) == 2


# ---------------------------------------------------------------- nothing sent, nothing failed


def test_a_prompt_over_the_configured_window_is_not_sent(opened: Open) -> None:
    session = opened([ok()], context_tokens=20)
    raised = session.fail(ContextOverflow)
    assert (raised.attempts, raised.trail) == (0, ())
    assert session.endpoint.log == []
    assert session.call(ChatRequest(HELLO.messages, "reader", 5)).text == "fine"


@pytest.mark.parametrize("api", APIS)
def test_text_that_can_t_be_sent(opened: Open, api: str) -> None:
    session = opened([ok()], **APIS[api])
    raised = session.fail(ModelError, ChatRequest((Message("user", "half \ud83d"),), "reader", 5))
    assert "surrogate" in str(raised)
    assert session.endpoint.log == []


@pytest.mark.parametrize("api", APIS)
def test_cancelling_is_not_a_failure(opened: Open, api: str) -> None:
    arrived = threading.Event()

    async def arrive_and_hang(request: web.Request, call: Call) -> web.StreamResponse:
        arrived.set()
        return await hang(request, call)

    session = opened([arrive_and_hang], **APIS[api])

    async def cancelled() -> None:
        call = asyncio.create_task(session.model.complete(HELLO))
        await asyncio.to_thread(arrived.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await session.model.aclose()

    asyncio.run(cancelled())
