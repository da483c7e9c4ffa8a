"""`Memory`: FlexA-Mem, or any other method, for a plain chat loop. Messages in, messages out."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir

from flexmem import tokens
from flexmem.history import AGENT_UNIT_TOKENS, ChatPacker
from flexmem.memory.background import BackgroundLoop
from flexmem.memory.chat import ChatMessage, Item, cut_to_fit, message_turn, newest_words, split_messages
from flexmem.memory.protocol import Budget, BudgetError, MemoryBuild, MethodError, Query, Rendering, StateError
from flexmem.memory.registry import find_method
from flexmem.memory.window import newest_unit_limit, window_units
from flexmem.ports import ChatModel, Embedder, IndexConfig, Services
from flexmem.retrieval.embedding import CachedEmbedder, SentenceTransformerEmbedder
from flexmem.retrieval.index import LocalIndex

PREFACE = "Memory of the earlier conversation, oldest first:\n"
_STATE_FORMAT = 1


class HistoryChangedError(MethodError, ValueError):
    """Messages that the memory was made from are gone or differ."""


class Memory:
    """A memory for one chat history.

    The history is cut into units as it grows. The newest, within a quarter of the budget and at least the newest one,
    stay as they are; the others are written to the method once and shown through its rendering (docs/methods.md 0.6).
    A method that writes for a budget writes for the first call's. One call at a time.

    Args:
        method: a method's name (``flexmem methods``).
        options: changes to its configuration.
        model: the memory model, for methods that need one.
        embedder: None: all-MiniLM-L6-v2 on this machine, its vectors cached on disk.
        unit_tokens: size of a unit; None: a quarter of the first call's budget, 1,000 at most, so that the newest unit
            always leaves room for memory.
        role: role of the message that carries the memory.

    Raises:
        UnknownMethodError: no such method or option.
        MethodError: the method is for agents' steps only, or needs a model.
    """

    def __init__(
        self,
        method: str = "flexa_piece",
        *,
        options: Mapping[str, Any] | None = None,
        model: ChatModel | None = None,
        embedder: Embedder | None = None,
        unit_tokens: int | None = None,
        role: str = "system",
    ) -> None:
        configured = find_method(method).configured(options)
        if "reader" not in configured.info.tasks:
            raise MethodError(f"method {method!r} is for agents' steps, not for chat messages")
        self._embedder = embedder or _default_embedder()
        self._method, self._model = configured, model
        self._room: int | None = None
        self._build = self._new_build(None)  # refuses what is missing now, not at the first call
        self._role = role
        self._unit_tokens = unit_tokens
        self._packer: ChatPacker | None = None
        self._items: list[Item] = []
        self._restored: list[str] = []
        self._written = 0
        self._turns = 0
        self._busy = threading.Lock()
        self._background = BackgroundLoop()
        self.rendering: Rendering | None = None
        """What the last call showed of the past, with provenance; None where nothing had left the recent window."""

    def context(self, messages: Sequence[ChatMessage], budget: int) -> list[dict[str, Any]]:
        """The messages to send in place of ``messages``: opening system messages, the memory, the recent messages.

        Works in a notebook as well.

        Args:
            messages: the whole history, newest last; it must go on from the last call's.
            budget: tokens that memory and recent messages may take together; opening system messages are outside it.

        Raises:
            HistoryChangedError: ``messages`` does not go on from what was seen before.
            BudgetError: the budget can't hold the newest messages and the method's frame.
        """
        return self._background.run(self.acontext(messages, budget))

    async def acontext(self, messages: Sequence[ChatMessage], budget: int) -> list[dict[str, Any]]:
        """As `context`, for a caller in an event loop."""
        if not self._busy.acquire(blocking=False):
            raise MethodError("this memory is answering another call; calls on one history come one after the other")
        try:
            return await self._context(messages, budget)
        finally:
            self._busy.release()

    def save(self) -> bytes:
        """The memory's state; `restore` goes on from it."""
        state = {
            "format": _STATE_FORMAT,
            "unit_tokens": self._unit_tokens,
            "items": [_digest(item) for item in self._items] or self._restored,
            "written": self._written,
            "room": self._room,
            "build": b64encode(self._build.state()).decode(),
        }
        return zlib.compress(json.dumps(state).encode())

    def restore(self, state: bytes) -> None:
        """Become the memory that was saved; this one must be new and made with the same arguments.

        Raises:
            StateError: the state is damaged, or of another method or configuration.
        """
        if self._items or self._written:
            raise StateError("only a new memory can be restored")
        try:
            saved = json.loads(zlib.decompress(state))
            found, items, written = saved["format"], list(saved["items"]), int(saved["written"])
            build, unit_tokens, room = b64decode(saved["build"]), saved["unit_tokens"], saved.get("room")
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise StateError(f"the saved memory is damaged: {error}") from error
        if found != _STATE_FORMAT:
            raise StateError(f"the saved memory is of format {found}, wanted {_STATE_FORMAT}")
        if self._unit_tokens not in (None, unit_tokens):
            raise StateError(f"the saved memory has units of {unit_tokens} tokens, this one of {self._unit_tokens}")
        self._room, self._build = room, self._new_build(room)
        self._background.run(self._build.restore(build))
        self._restored, self._written, self._unit_tokens = items, written, unit_tokens

    async def _context(self, messages: Sequence[ChatMessage], budget: int) -> list[dict[str, Any]]:
        opening, items = split_messages(messages)
        if self._packer is None:
            self._unit_tokens = self._unit_tokens or max(1, min(AGENT_UNIT_TOKENS, budget // 4))
            self._packer = ChatPacker(history="chat", limit=self._unit_tokens)
        self._take(items, self._packer)
        self.rendering = None
        shown = [dict(message) for message in opening]
        units = self._packer.units()
        if not units:
            return shown
        # A unit once written is never recent again, whatever a larger budget would allow.
        first = max(len(units) - window_units([unit.tokens for unit in units], budget), self._written)
        if self._room is None and self._method.info.build_per_budget:
            self._room = budget - budget // 4  # the least that the recent window leaves
            self._build = self._new_build(self._room)
        for unit in units[self._written : first]:
            await self._build.write(unit)
            self._written += 1
        window: Sequence[Item] = self._items[self._packer.first_item(first) :]
        limit = newest_unit_limit(budget) if first else budget
        window, used = cut_to_fit(window, limit)
        if first:
            room = Budget(budget, used + tokens.count(PREFACE))
            if room.room < 0:
                raise BudgetError(f"a budget of {budget} tokens leaves no room beside {used} of recent messages")
            words = newest_words(window)
            query = Query.question(words, (await self._embedder.embed([words]))[0])
            self.rendering = await self._build.view().render(query, room)
            shown.append({"role": self._role, "content": PREFACE + self.rendering.text})
        return shown + [dict(message) for item in window for message in item]

    def _take(self, items: Sequence[Item], packer: ChatPacker) -> None:
        """Pack what is new; refuse a history that does not go on from before."""
        known = len(self._items) or len(self._restored)
        if len(items) < known:
            raise HistoryChangedError(
                f"the history has {len(items)} messages (a tool's results counted with their call), the memory was "
                f"made from {known}; make a new one for a history that was cut or edited"
            )
        for position, (old, new) in enumerate(zip(self._items, items, strict=False)):
            if old != new:
                late = "; give a tool's results together with their call" if len(new) > len(old) else ""
                raise HistoryChangedError(
                    f"message {position} after the opening ones differs from what was seen before; make a new memory "
                    f"for a history that was edited{late}"
                )
        for position in range(len(self._items), len(items)):
            item = tuple(dict(message) for message in items[position])
            if position < len(self._restored) and _digest(item) != self._restored[position]:
                raise HistoryChangedError(f"message {position} after the opening ones differs from the saved memory's")
            packer.append([message_turn(m, f"m{self._turns + n}") for n, m in enumerate(item)])
            self._turns += len(item)
            self._items.append(item)

    def _new_build(self, room: int | None) -> MemoryBuild:
        return self._method.build(Services(self._embedder, self._open_index, self._model, room=room))

    def _open_index(self, config: IndexConfig) -> LocalIndex:
        return LocalIndex(config, self._embedder)


def _digest(item: Item) -> str:
    text = json.dumps([dict(message) for message in item], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _default_embedder() -> Embedder:
    folder = Path(os.environ.get("FLEXMEM_CACHE") or user_cache_dir("flexmem"))
    return CachedEmbedder(SentenceTransformerEmbedder(), folder / "vectors.sqlite")
