"""A real HTTP endpoint on this machine that speaks Chat Completions and fails on request.

with ChatEndpoint([status(429, retry_after="3"), ok("hello")]) as endpoint:
    ...                       # call endpoint.url; the last behaviour repeats
endpoint.log                  # one row a request
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Call:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


STOP = web.AppKey("stop", asyncio.Event)

Behaviour = Callable[[web.Request, Call], Awaitable[web.StreamResponse]]


class ChatEndpoint:
    """Serves from a thread of its own. ``script``: what the first, second … chat call meets; its last one repeats.
    ``models``: the answer to GET /models, as a behaviour.
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
        return [call for call in self.log if call.path.endswith("/chat/completions")]

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
        body = json.loads(await request.text() or "{}")
        call = Call(
            request.method, request.path, {name.lower(): value for name, value in request.headers.items()}, body
        )
        self.log.append(call)
        if call.path.endswith("/models"):
            return await self.models(request, call)
        behaviour = self.script[min(self._chats, len(self.script) - 1)]
        self._chats += 1
        return await behaviour(request, call)


# ---------------------------------------------------------------- behaviours


def answer(payload: object) -> Behaviour:
    """200 with any JSON."""

    async def respond(request: web.Request, call: Call) -> web.StreamResponse:
        return web.json_response(payload)

    return respond


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


def ok(text: object = "fine", **options: Any) -> Behaviour:
    return answer(completion(text, **options))


def listing(*models: str) -> Behaviour:
    """The answer to GET /models."""
    return answer({"object": "list", "data": [{"id": model, "object": "model"} for model in models]})


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


def raw(text: str, content_type: str = "application/json") -> Behaviour:
    """200 with any text."""

    async def respond(request: web.Request, call: Call) -> web.StreamResponse:
        return web.Response(text=text, content_type=content_type)

    return respond


async def reset(request: web.Request, call: Call) -> web.StreamResponse:
    """Cut the connection with a TCP reset before any answer."""
    transport = request.transport
    assert transport is not None
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
    return web.Response()


async def hang(request: web.Request, call: Call) -> web.StreamResponse:
    """Never answer."""
    await request.app[STOP].wait()
    return web.Response()
