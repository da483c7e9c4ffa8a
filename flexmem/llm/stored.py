"""A chat model whose replies are kept."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from flexmem.llm.errors import ModelError
from flexmem.ports import Call, ChatModel, ChatReply, ChatRequest, ReplyStore


def reply_key(model: Mapping[str, Any], request: ChatRequest, repeat: int) -> str:
    """Digest of all that shapes a reply: the model as it describes itself, the request, and the repeat's index.

    Without the repeat, the repeats of a variance study would share one reply and show no variance.
    """
    content = [
        dict(model),
        [[message.role, message.content] for message in request.messages],
        request.role,
        request.max_tokens,
        request.temperature,
        request.effort,
        request.schema,
        request.sample,
        repeat,
    ]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class StoredModel:
    """Asks the store first, the model only for what nobody has asked before; the reply is on disk before it is used.

    Args:
        model: the model.
        store: where replies are kept.
        repeat: the repeat's index, part of every key.
        owner: who sends; the store gives up its calls when told that it is gone.
        subject: what calls are made for: the key of an episode, a build or a judgement. No part of a reply's key.
        most_usd: the most that a request can cost, in USD; None where no price is known.
    """

    def __init__(
        self,
        model: ChatModel,
        store: ReplyStore,
        repeat: int,
        owner: str,
        *,
        subject: str = "",
        most_usd: Callable[[ChatRequest], float | None] | None = None,
    ) -> None:
        self._model = model
        self._store = store
        self._repeat = repeat
        self._owner = owner
        self._subject = subject
        self._most_usd = most_usd or _no_price
        self._description = model.describe()
        self.name = model.name

    def for_subject(self, subject: str) -> StoredModel:
        """The same model, its calls made for another subject."""
        return StoredModel(
            self._model, self._store, self._repeat, self._owner, subject=subject, most_usd=self._most_usd
        )

    def describe(self) -> Mapping[str, Any]:
        """The model's own."""
        return self._description

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The kept reply, or the model's. A caller that is cancelled waits for the call that it has sent: it is paid,
        so its reply is kept.

        Raises:
            ModelError: as the model. ReplyStoreError: nothing can be kept, so nothing is sent. CostCapReached: the call
                might take the run over its cap.
        """
        key = reply_key(self._description, request, self._repeat)
        call = Call(
            key,
            uuid.uuid4().hex,
            self._owner,
            self.name,
            request.role,
            self._repeat,
            self._subject,
            self._most_usd(request),
        )
        beginning = asyncio.ensure_future(self._store.begin(call))
        try:
            kept = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            await self._take_back(call, beginning)
            raise
        if kept is not None:
            return kept
        sending = asyncio.ensure_future(self._send(call, request))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            await asyncio.wait([sending])
            if not sending.cancelled():
                sending.exception()  # looked at; the caller is told that it was cancelled
            raise

    async def _take_back(self, call: Call, beginning: asyncio.Future[ChatReply | None]) -> None:
        """Give up a call whose caller was cancelled before it was sent: others wait for its leave, and its money."""
        await asyncio.wait([beginning])
        if not beginning.cancelled() and beginning.exception() is None and beginning.result() is None:
            await self._store.give_up(call, "cancelled before it was sent")

    async def _send(self, call: Call, request: ChatRequest) -> ChatReply:
        try:
            reply = await self._model.complete(request)
        except BaseException as error:
            trail = error.trail if isinstance(error, ModelError) else ()
            await self._store.give_up(call, type(error).__name__, trail)
            raise
        await self._store.finish(call, reply)
        return reply


def for_subject(model: ChatModel, subject: str) -> ChatModel:
    """The model with its calls made for a subject, where they are kept."""
    return model.for_subject(subject) if isinstance(model, StoredModel) else model


def _no_price(request: ChatRequest) -> float | None:
    return None
