"""A chat model whose replies are kept."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any

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
    """

    def __init__(self, model: ChatModel, store: ReplyStore, repeat: int, owner: str) -> None:
        self._model = model
        self._store = store
        self._repeat = repeat
        self._owner = owner
        self._description = model.describe()
        self.name = model.name

    def describe(self) -> Mapping[str, Any]:
        """The model's own."""
        return self._description

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The kept reply, or the model's.

        Raises:
            ModelError: as the model. ReplyStoreError: nothing can be kept, so nothing is sent.
        """
        key = reply_key(self._description, request, self._repeat)
        call = Call(key, uuid.uuid4().hex, self._owner, self.name, request.role)
        kept = await self._store.begin(call)
        if kept is not None:
            return kept
        try:
            reply = await self._model.complete(request)
        except BaseException as error:
            await self._store.give_up(call, type(error).__name__)
            raise
        await self._store.finish(call, reply)
        return reply
