"""Replies on disk: no call is paid twice, and no paid reply is lost.

An *intent* goes to disk before a call is sent, the reply before it is used. So at most the calls in flight when a
process is killed are sent again, and each of those has an intent that says so. Equal calls at the same time are one
call: the others wait for its reply. What was sent is kept attempt by attempt: the file is the run's ledger.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from flexmem.llm import reply_tables as tables
from flexmem.llm.committer import BALLAST_BYTES, Committer, ReplyStoreError
from flexmem.llm.errors import ModelError
from flexmem.llm.spending import Spending, trail_usd
from flexmem.ports import Attempt, Call, ChatReply

__all__ = [
    "BALLAST_BYTES",
    "ReplayMissing",
    "ReplayStore",
    "ReplyStoreError",
    "SqliteReplyStore",
    "check_replay",
    "check_store",
]


class SqliteReplyStore:
    """A `flexmem.ports.ReplyStore` in one SQLite file, for one process; others reach it through that process.

    Args:
        path: the file; its folder is made.
        session: name of the run that writes. Open intents of the same session are calls that may still be in flight
            when this process has been restarted; those of others are calls whose outcome nobody knows.
        cap_usd: no call is begun that may take what was ever spent over it.

    Writes of many callers are committed together, each durable (fsync) when its method returns.
    """

    def __init__(self, path: Path, session: str, cap_usd: float | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._session = session
        self._committer = Committer(path, tables.prepare)
        self._spending = Spending(cap_usd, self._committer.read(lambda db: tables.spent_usd(db, session)))
        self._claims: dict[str, tuple[Call, asyncio.Event]] = {}
        for call in self._committer.read(lambda db: tables.open_calls(db, session)):
            self._claims[call.key] = (call, asyncio.Event())
            self._spending.expect(call.call, call.most_usd)

    async def begin(self, call: Call) -> ChatReply | None:
        """The stored reply; None once the caller may send: the intent is on disk then. Waits while another sends the
        same, and while calls in flight might take the run over its cap.

        Raises:
            CostCapReached: the cap leaves no room for the call.
        """
        while True:
            reply = await self._committer.submit(lambda db: tables.find(db, call.key))
            if reply is not None:
                return reply
            held = self._claims.get(call.key)
            if held is not None and held[0].call != call.call:
                await held[1].wait()
                continue
            if held is None:
                self._claims[call.key] = (call, asyncio.Event())
                try:
                    await self._spending.reserve(call.call, call.most_usd)
                    await self._committer.submit(lambda db: tables.write_intent(db, call, self._session))
                except BaseException:
                    self._let_go(call, 0.0)
                    raise
            return None

    async def finish(self, call: Call, reply: ChatReply) -> None:
        """Keep the reply; it is on disk when this returns."""
        await self._committer.submit(lambda db: tables.write_reply(db, call, reply))
        self._let_go(call, trail_usd(reply.trail, call.most_usd))

    async def give_up(self, call: Call, reason: str, trail: tuple[Attempt, ...] = ()) -> None:
        """The call brought no reply; whoever waits for the same may send. ``trail``: what was sent all the same."""
        await self._committer.submit(lambda db: tables.end_intent(db, call.call, reason, trail))
        self._let_go(call, None if reason == tables.LOST else trail_usd(trail, call.most_usd))

    async def release(self, owner: str) -> int:
        """Give up all calls of an owner that is gone; returns how many there were."""
        calls = [call for call, _ in self._claims.values() if call.owner == owner]
        for call in calls:
            await self.give_up(call, tables.LOST)
        return len(calls)

    async def counts(self) -> dict[str, int]:
        """Replies kept; intents in all, and those without an outcome."""
        return await self._committer.submit(tables.count)

    @property
    def spent_usd(self) -> float:
        """USD spent so far, as far as prices are known."""
        return self._spending.spent_usd

    def close(self) -> None:
        """Commit what is waiting and close the file."""
        self._committer.close()

    def _let_go(self, call: Call, usd: float | None) -> None:
        self._spending.settle(call.call, usd)
        held = self._claims.get(call.key)
        if held is not None and held[0].call == call.call:
            del self._claims[call.key]
            held[1].set()


def check_store(path: Path) -> None:
    """Open a store's file for writing and close it again.

    Raises:
        ReplyStoreError: it can't be read or written, or is no reply store.
    """
    Committer(path, tables.prepare).close()


def check_replay(path: Path) -> None:
    """Open a finished run's replies and close them again.

    Raises:
        ReplyStoreError: there is no such file, or it is no reply store.
    """
    ReplayStore(path).close()


class ReplayMissing(ModelError):
    """A replay was asked for a reply that the finished run does not hold."""

    stops_run = True


class ReplayStore:
    """A `flexmem.ports.ReplyStore` that answers from a finished run's replies and lets nothing be sent.

    Raises:
        ReplyStoreError: there is no such file, or it is no reply store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
            self._db.execute("SELECT count(*) FROM replies").fetchone()
        except sqlite3.Error as error:
            raise ReplyStoreError(f"{path}: holds no replies to replay ({error})") from error

    async def begin(self, call: Call) -> ChatReply | None:
        """The kept reply.

        Raises:
            ReplayMissing: there is none.
        """
        reply = tables.find(self._db, call.key)
        if reply is None:
            raise ReplayMissing(
                f"{self._path}: has no reply to this {call.role} call of {call.model}; a replay sends nothing. Model, "
                "address, prompts, data and repeat must be those of the run that is replayed.",
                attempts=0,
            )
        return reply

    async def finish(self, call: Call, reply: ChatReply) -> None:
        """Never needed: nothing is sent."""
        raise AssertionError("a replay sends nothing")

    async def give_up(self, call: Call, reason: str, trail: tuple[Attempt, ...] = ()) -> None:
        """Never needed: nothing is sent."""
        raise AssertionError("a replay sends nothing")

    async def release(self, owner: str) -> int:
        """Nothing is in flight."""
        return 0

    def close(self) -> None:
        """Close the file."""
        self._db.close()
