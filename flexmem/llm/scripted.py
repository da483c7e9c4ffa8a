"""A chat model without a model: replies by rule or by script, deterministic, free of cost. For tests, for trying a
configuration out, and for measuring the harness alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from flexmem import tokens
from flexmem.llm.errors import ModelConfigurationError, ModelError, Refused
from flexmem.llm.form_filler import stated_length
from flexmem.llm.prices import StatedPrice, TokenPrice
from flexmem.ports import Attempt, ChatReply, ChatRequest, Role, Usage

__all__ = ["RULES", "Rule", "ScriptedModel"]

Rule = Callable[[ChatRequest], str]

_LATENCY_SPREAD = 0.5  # sigma of the log-normal latency
_RECORD_WORDS, _KEYWORDS, _ENTITIES = 80, 8, 12  # docs/methods.md A.8
_FREE = TokenPrice(input=0, output=0)
_RECORD_TEXT = re.compile(r"^New (?:steps|stretch):\n", re.MULTILINE)


class ScriptedModel:
    """A `ChatModel` that answers by ``replies``: the name of a rule (`RULES`), a function of the request, or a list
    that is used up in order of the calls, whose exceptions are raised.

    Replies by rule or function depend on the request alone, so concurrency and order don't change them; a list fits
    calls that come one after the other. A reply longer than the request's ``max_tokens`` is cut and finishes with
    ``length``. Usage counts T() of messages and reply.

    ``latency_s``: median in seconds of a log-normal latency, drawn from ``seed`` and the request. ``price``: what
    replies are said to have cost, to try out what a run would; nothing without it. ``calls`` counts by role, refused
    and failed ones too; ``requests`` holds them in order unless ``keep_requests`` is off.
    """

    def __init__(
        self,
        replies: str | Rule | Sequence[str | ModelError] = "echo",
        *,
        name: str | None = None,
        latency_s: float = 0.0,
        seed: int = 0,
        price: TokenPrice | None = None,
        keep_requests: bool = True,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Raises:
        ModelConfigurationError: no rule has that name.
        """
        if isinstance(replies, str) and replies not in RULES:
            known = ", ".join(sorted(RULES))
            raise ModelConfigurationError(f"no scripted rule is called {replies!r}; known: {known}.", attempts=0)
        self._source = replies if callable(replies) or isinstance(replies, str) else tuple(replies)
        self.name = name or (replies if isinstance(replies, str) else "scripted")
        self.calls: Counter[Role] = Counter()
        self.requests: list[ChatRequest] = []
        self._latency_s, self._seed, self._sleep, self._wall = latency_s, seed, sleep, wall
        self._price = StatedPrice(price or _FREE)
        self._keep_requests = keep_requests

    def describe(self) -> Mapping[str, Any]:
        """The rule's name, the function's, or a digest of the list. Latency shapes no reply."""
        source = self._source
        if isinstance(source, tuple):
            script = json.dumps([reply if isinstance(reply, str) else repr(reply) for reply in source])
            return {"provider": "scripted", "model": self.name, "replies": _digest(script).hex()}
        rule = source if isinstance(source, str) else f"{source.__module__}.{source.__qualname__}"
        return {"provider": "scripted", "model": self.name, "rule": rule}

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer by rule or script.

        Raises:
            ModelError: the script says so.
            ModelConfigurationError: the script is used up.
        """
        number = self.calls.total()
        self.calls[request.role] += 1
        if self._keep_requests:
            self.requests.append(request)
        begun_at = self._wall()
        text = self._reply(request, number)
        latency = self._latency(request)
        if latency > 0:
            await self._sleep(latency)
        whole = tokens.count(text) <= request.max_tokens
        if not whole:
            text = text[: tokens.longest_prefix(text, request.max_tokens)]
        usage = Usage(input=_prompt_tokens(request), output=tokens.count(text), cached=0, reasoning=0)
        sent = Attempt(1, begun_at, latency, "reply", None, usage, self._price.usd(usage))
        return ChatReply(text, self.name, usage, "stop" if whole else "length", latency_s=latency, trail=(sent,))

    def most_usd(self, request: ChatRequest) -> float:
        """The most that a reply to ``request`` can be said to cost."""
        return self._price.most_usd(_prompt_tokens(request), request.max_tokens)

    def _reply(self, request: ChatRequest, number: int) -> str:
        source = self._source
        if isinstance(source, str):
            return RULES[source](request)
        if not isinstance(source, tuple):
            return source(request)
        if number >= len(source):
            raise ModelConfigurationError(f"the script of {self.name!r} has {len(source)} replies and none is left.")
        reply = source[number]
        if isinstance(reply, ModelError):
            raise reply
        return reply

    def _latency(self, request: ChatRequest) -> float:
        if self._latency_s <= 0:
            return 0.0
        drawn = random.Random(_digest(f"{self._seed}\n{request!r}"))
        return self._latency_s * math.exp(drawn.gauss(0.0, _LATENCY_SPREAD))


# ---------------------------------------------------------------- rules


def echo(request: ChatRequest) -> str:
    """The last user message."""
    return next((message.content for message in reversed(request.messages) if message.role == "user"), "")


def first_sentence(request: ChatRequest) -> str:
    """The last user message up to the first full stop, exclamation or question mark, or line break."""
    return re.split(r"(?<=[.!?])\s|\n", echo(request).strip(), maxsplit=1)[0]


def json_record(request: ChatRequest) -> str:
    """A record writer's reply (docs/methods.md A.8): JSON of ``record`` (the text's first 80 words), ``keywords`` (its
    8 most frequent words of five letters or more) and ``entities`` (its first 12 numbers, paths and capitalised names).

    The text is what follows the prompt's line ``New steps:`` or ``New stretch:``, else all of the last user message. A
    request without a schema, as for a merged record, gets the first 80 words of its last paragraph.
    """
    prompt = echo(request)
    if request.schema is None:
        return " ".join(prompt.rsplit("\n\n", 1)[-1].split()[:_RECORD_WORDS])
    text = _RECORD_TEXT.split(prompt, maxsplit=1)[-1]
    words = Counter(re.findall(r"[^\W\d_]{5,}", text.lower()))
    entities = re.findall(r"[\w.-]*/[\w./-]+|\d[\d:.,-]{2,}\b|\b[A-Z]\w+(?: [A-Z]\w+)*", text)
    record = {
        "record": " ".join(text.split()[:_RECORD_WORDS]),
        "keywords": [word for word, _ in words.most_common(_KEYWORDS)],
        "entities": list(dict.fromkeys(entities))[:_ENTITIES],
    }
    return json.dumps(record, ensure_ascii=False)


def garbage(request: ChatRequest) -> str:
    """Text that follows no instruction and parses as nothing, another for every request."""
    return "}{ <<" + _digest(repr(request)).hex()


def refuse(request: ChatRequest) -> str:
    """Raises `Refused`."""
    raise Refused(f"the scripted model refuses every call (this one for the role {request.role}).")


_ALL = (echo, first_sentence, json_record, stated_length, garbage, refuse)
RULES: dict[str, Rule] = {rule.__name__: rule for rule in _ALL}


def _prompt_tokens(request: ChatRequest) -> int:
    return sum(tokens.count(message.content) for message in request.messages)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
