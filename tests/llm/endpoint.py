"""A real HTTP endpoint on this machine that speaks Chat Completions, Responses and Anthropic's Messages, and fails on
request.

with ChatEndpoint([status(429, retry_after="3"), ok("hello")]) as endpoint:
    ...                       # call endpoint.url; the last behaviour repeats
endpoint.log                  # one row a request: number, time, path, what became of it

`FaultScript` is a behaviour that draws a fault for each time that a prompt is asked, from a seed: the same prompts meet
the same faults, in whatever order they come.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from aiohttp import web


@dataclass
class Call:
    """One request as it arrived. ``number`` counts from 1 and is sent back as ``x-request-id``; ``at`` is in Unix
    seconds; ``outcome`` is ``reply``, a status such as ``429``, or the fault's name, and empty while it is served.
    """

    number: int
    at: float
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    outcome: str = ""

    @property
    def prompt(self) -> str:
        """All that the model is shown."""
        shown = self.body.get("messages", self.body.get("input", []))
        texts = [str(self.body.get("system", "")), *(str(message["content"]) for message in shown)]
        return "\n".join(filter(None, texts))


STOP = web.AppKey("stop", asyncio.Event)

Behaviour = Callable[[web.Request, Call], Awaitable[web.StreamResponse]]


class ChatEndpoint:
    """Serves from a thread of its own. ``script``: what the first, second … call of a model meets; its last one
    repeats. ``models``: the answer to GET /models, as a behaviour.
    """

    def __init__(self, script: Sequence[Behaviour], models: Behaviour | None = None) -> None:
        self.script = list(script)
        self.models = models or listing("local")
        self.log: list[Call] = []
        self.url = ""
        self._chats = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def chats(self) -> list[Call]:
        """The calls of a model, whatever the API."""
        return [call for call in self.log if call.path.endswith(("/chat/completions", "/responses", "/messages"))]

    def __enter__(self) -> ChatEndpoint:
        self._thread.start()
        assert self._ready.wait(30), "the endpoint did not start"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive(), "the endpoint did not stop"

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=2**26)
        app[STOP] = self._stop
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        at = time.time()
        body = json.loads(await request.text() or "{}")
        headers = {name.lower(): value for name, value in request.headers.items()}
        call = Call(len(self.log) + 1, at, request.method, request.path, headers, body)
        self.log.append(call)
        if "/models" in call.path:
            behaviour = self.models
        else:
            behaviour = self.script[min(self._chats, len(self.script) - 1)]
            self._chats += 1
        answered = await behaviour(request, call)
        call.outcome = call.outcome or ("reply" if answered.status == 200 else str(answered.status))
        if not answered.prepared:
            answered.headers["x-request-id"] = str(call.number)
        return answered


# ---------------------------------------------------------------- replies


def completion(
    text: object = "fine", *, finish: str | None = "stop", refusal: str | None = None, **usage: Any
) -> dict[str, Any]:
    """A chat completion as OpenAI sends it."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "local-2026-01-01",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": usage or {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def response(
    text: object = "fine",
    *,
    status: str = "completed",
    reason: str | None = None,
    refusal: str | None = None,
    **usage: Any,
) -> dict[str, Any]:
    """A response as OpenAI's Responses API sends it: reasoning first, then the message."""
    part = {"type": "output_text", "text": text, "annotations": []}
    if refusal is not None:
        part = {"type": "refusal", "refusal": refusal}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": [part]}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "local-2026-01-01",
        "status": status,
        "error": None,
        "incomplete_details": None if reason is None else {"reason": reason},
        "output": [{"id": "rs_1", "type": "reasoning", "summary": []}, *([] if text is None else [message])],
        "usage": usage or {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
    }


def message(text: object = "fine", *, stop: str | None = "end_turn", **more: Any) -> dict[str, Any]:
    """A message as Anthropic sends it: thinking first, then the text."""
    blocks = [{"type": "thinking", "thinking": "", "signature": "x"}]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-2026-01-01",
        "content": [*blocks, *([] if text is None else [{"type": "text", "text": text}])],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 3},
        **more,
    }


def answer(payload: object) -> Behaviour:
    """200 with any JSON."""

    async def respond(request: web.Request, call: Call) -> web.StreamResponse:
        return web.json_response(payload)

    return respond


def ok(text: object = "fine", **options: Any) -> Behaviour:
    """A reply in the form of the API that is asked; ``options`` are those of its form."""
    return replying(lambda call: text, **options)


def replying(reply: Callable[[Call], object], **options: Any) -> Behaviour:
    """Replies that depend on the call, in the form of the API that is asked."""

    async def respond(request: web.Request, call: Call) -> web.StreamResponse:
        form: Callable[..., dict[str, Any]] = completion
        if call.path.endswith("/responses"):
            form = response
        elif call.path.endswith("/messages"):
            form = message
        return web.json_response(form(reply(call), **options))

    return respond


def listing(*models: str) -> Behaviour:
    """The answer to GET /models."""
    return answer({"object": "list", "data": [{"id": model, "object": "model"} for model in models]})


# ---------------------------------------------------------------- faults


def status(code: int, error: object = None, **headers: str) -> Behaviour:
    """An error answer; ``error`` is the body, by default one as OpenAI's. Headers: retry_after="3"."""
    body = {"error": {"message": "scripted", "type": "scripted", "code": None}} if error is None else error

    async def respond(request: web.Request, call: Call) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, str):
            return web.Response(status=code, text=body, content_type="text/html", headers=named)
        return web.json_response(body, status=code, headers=named)

    return respond


def error(message: str, code: object = None, kind: str | None = None, **more: Any) -> dict[str, Any]:
    """An error body as OpenAI's."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def anthropic_error(kind: str, message: str = "scripted") -> dict[str, Any]:
    """An error body as Anthropic's."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def raw(text: str, content_type: str = "application/json") -> Behaviour:
    """200 with any text."""

    async def respond(request: web.Request, call: Call) -> web.StreamResponse:
        call.outcome = "garbage"
        return web.Response(text=text, content_type=content_type)

    return respond


async def reset(request: web.Request, call: Call) -> web.StreamResponse:
    """Cut the connection with a TCP reset before any answer."""
    call.outcome = "reset"
    transport = request.transport
    assert transport is not None
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
    return web.Response()


async def hang(request: web.Request, call: Call) -> web.StreamResponse:
    """Never answer."""
    call.outcome = "hang"
    await request.app[STOP].wait()
    return web.Response()


async def cut_short(request: web.Request, call: Call) -> web.StreamResponse:
    """Promise more than is sent, then close the connection."""
    call.outcome = "cut short"
    stream = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "5000"})
    await stream.prepare(request)
    await stream.write(b'{"id": "x", "choices": [')
    assert request.transport is not None
    request.transport.close()
    return stream


def after(seconds: float, behaviour: Behaviour) -> Behaviour:
    """Let the first byte wait."""

    async def respond(request: web.Request, call: Call) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await behaviour(request, call)

    return respond


class Limited:
    """Keeps to a limit of requests and tells who comes too soon when to come again, as providers do.

    The bucket refills evenly and holds what a second allows, so 600 a minute are 10 a second.
    """

    def __init__(self, per_minute: float, then: Behaviour) -> None:
        self._rate = per_minute / 60
        self._size = max(1.0, per_minute / 60)
        self._level, self._at = self._size, time.monotonic()
        self._then = then

    async def __call__(self, request: web.Request, call: Call) -> web.StreamResponse:
        now = time.monotonic()
        self._level = min(self._size, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < 1.0:
            wait = (1.0 - self._level) / self._rate
            headers = {"retry-after-ms": f"{wait * 1e3:.0f}", "retry-after": f"{wait:.0f}"}
            return web.json_response(error("slow down", "rate_limit_exceeded"), status=429, headers=headers)
        self._level -= 1.0
        return await self._then(request, call)


class FaultScript:
    """Draws what becomes of a prompt each time it is asked.

    Args:
        seed: of all draws; a draw depends on the seed, the prompt and how often it was asked, on nothing else.
        faults: what may go wrong, with its probability; together at most 1.
        reply: what is answered when nothing goes wrong.
        most: how often a prompt meets a fault; after that it is answered.
    """

    def __init__(
        self, seed: int, faults: Mapping[str, tuple[float, Behaviour]], reply: Behaviour, *, most: int = 3
    ) -> None:
        assert sum(share for share, _ in faults.values()) <= 1.0
        self._seed, self._faults, self._reply, self._most = seed, dict(faults), reply, most
        self._asked: Counter[str] = Counter()
        self._met: Counter[str] = Counter()
        self.drawn: Counter[str] = Counter()

    async def __call__(self, request: web.Request, call: Call) -> web.StreamResponse:
        prompt = hashlib.blake2b(call.prompt.encode(), digest_size=16).hexdigest()
        self._asked[prompt] += 1
        name = self._draw(prompt, self._asked[prompt])
        self.drawn[name or "reply"] += 1
        if name is None:
            return await self._reply(request, call)
        self._met[prompt] += 1
        call.outcome = name
        answered = await self._faults[name][1](request, call)
        call.outcome = name
        return answered

    def _draw(self, prompt: str, time_asked: int) -> str | None:
        if self._met[prompt] >= self._most:
            return None
        left = random.Random(f"{self._seed}|{prompt}|{time_asked}").random()
        for name, (share, _) in self._faults.items():
            left -= share
            if left < 0:
                return name
        return None
