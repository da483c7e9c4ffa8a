"""The reply store as a service: one process keeps the replies of all workers, so equal calls are one call."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from flexmem.llm.reply_store import ReplayStore, SqliteReplyStore
from flexmem.ports import Attempt, Call, ChatReply


class ReplyActor:
    """A `SqliteReplyStore`; after a restart in the same session it knows again which calls are in flight. With
    ``replay``, a finished run's file, nothing may be sent.
    """

    def __init__(self, path: str, session: str, cap_usd: float | None = None, replay: str | None = None) -> None:
        self._store: SqliteReplyStore | ReplayStore
        self._store = ReplayStore(Path(replay)) if replay else SqliteReplyStore(Path(path), session, cap_usd)

    async def begin(self, call: Call) -> ChatReply | None:
        """See `flexmem.ports.ReplyStore.begin`."""
        return await self._store.begin(call)

    async def finish(self, call: Call, reply: ChatReply) -> None:
        """See `flexmem.ports.ReplyStore.finish`."""
        await self._store.finish(call, reply)

    async def give_up(self, call: Call, reason: str, trail: tuple[Attempt, ...] = ()) -> None:
        """See `flexmem.ports.ReplyStore.give_up`."""
        await self._store.give_up(call, reason, trail)

    async def release(self, owner: str) -> int:
        """Give up the calls of a worker that died."""
        return await self._store.release(owner)

    async def close(self) -> None:
        """Write what waits and leave a plain file behind; nothing may be asked any more."""
        self._store.close()

    async def pid(self) -> int:
        """Process id, for tests that kill it."""
        return os.getpid()


class ReplyClient:
    """A `flexmem.ports.ReplyStore` over the actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def begin(self, call: Call) -> ChatReply | None:
        """See `flexmem.ports.ReplyStore.begin`."""
        reply: ChatReply | None = await self._actor.begin.remote(call)
        return reply

    async def finish(self, call: Call, reply: ChatReply) -> None:
        """See `flexmem.ports.ReplyStore.finish`."""
        await self._actor.finish.remote(call, reply)

    async def give_up(self, call: Call, reason: str, trail: tuple[Attempt, ...] = ()) -> None:
        """See `flexmem.ports.ReplyStore.give_up`."""
        await self._actor.give_up.remote(call, reason, trail)
