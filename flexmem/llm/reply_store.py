"""Replies on disk: no call is paid twice, and no paid reply is lost.

An *intent* goes to disk before a call is sent, the reply before it is used. So at most the calls in flight when a
process is killed are sent again, and each of those has an intent that says so. Equal calls at the same time are one
call: the others wait for its reply.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from flexmem.ports import Call, ChatReply, Usage

BALLAST_BYTES = 8 << 20  # freed when the disk is full: room for the replies of calls in flight

T = TypeVar("T")

_TABLES = """
CREATE TABLE IF NOT EXISTS intents (
    call TEXT PRIMARY KEY, key TEXT NOT NULL, owner TEXT NOT NULL, session TEXT NOT NULL, model TEXT NOT NULL,
    role TEXT NOT NULL, begun_at REAL NOT NULL, ended TEXT
);
CREATE INDEX IF NOT EXISTS open_intents ON intents (session) WHERE ended IS NULL;
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, call TEXT NOT NULL, reply TEXT NOT NULL, finished_at REAL NOT NULL
);
"""


class ReplyStoreError(OSError):
    """The store can't write (a full disk, no rights): nothing may be paid until it can."""


class SqliteReplyStore:
    """A `flexmem.ports.ReplyStore` in one SQLite file, for one process; others reach it through that process.

    Args:
        path: the file; its folder is made.
        session: name of the run that writes. Open intents of the same session are calls that may still be in flight
            when this process has been restarted; those of others are calls whose outcome nobody knows.

    Writes of many callers are committed together, each durable (fsync) when its method returns.
    """

    def __init__(self, path: Path, session: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._session = session
        self._committer = _Committer(path)
        self._claims: dict[str, tuple[Call, asyncio.Event]] = {}
        for call in self._committer.open_calls(session):
            self._claims[call.key] = (call, asyncio.Event())

    async def begin(self, call: Call) -> ChatReply | None:
        """The stored reply; None once the caller may send: the intent is on disk then. Waits while another sends the
        same.
        """
        while True:
            reply = await self._committer.submit(lambda db: _find(db, call.key))
            if reply is not None:
                return reply
            held = self._claims.get(call.key)
            if held is not None and held[0].call != call.call:
                await held[1].wait()
                continue
            if held is None:
                self._claims[call.key] = (call, asyncio.Event())
                try:
                    await self._committer.submit(lambda db: _write_intent(db, call, self._session))
                except BaseException:
                    self._let_go(call)
                    raise
            return None

    async def finish(self, call: Call, reply: ChatReply) -> None:
        """Keep the reply; it is on disk when this returns."""
        await self._committer.submit(lambda db: _write_reply(db, call, reply))
        self._let_go(call)

    async def give_up(self, call: Call, reason: str) -> None:
        """The call brought no reply; whoever waits for the same may send."""
        await self._committer.submit(lambda db: _end_intent(db, call.call, reason))
        self._let_go(call)

    async def release(self, owner: str) -> int:
        """Give up all calls of an owner that is gone; returns how many there were."""
        calls = [call for call, _ in self._claims.values() if call.owner == owner]
        for call in calls:
            await self.give_up(call, "its sender was lost")
        return len(calls)

    async def counts(self) -> dict[str, int]:
        """Replies kept; intents in all, and those without an outcome."""
        return await self._committer.submit(_count)

    def close(self) -> None:
        """Commit what is waiting and close the file."""
        self._committer.close()

    def _let_go(self, call: Call) -> None:
        held = self._claims.get(call.key)
        if held is not None and held[0].call == call.call:
            del self._claims[call.key]
            held[1].set()


class _Committer:
    """One thread, one connection: takes what is waiting, runs it in one transaction, and reports once it is on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ballast = path.with_name(path.name + ".ballast")
        self._waiting: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        try:
            self._database.executescript(_TABLES)
            self._keep_ballast()
        except BaseException:
            self._database.close()
            raise
        self._thread = threading.Thread(target=self._work, name="reply-store", daemon=True)
        self._thread.start()

    def open_calls(self, session: str) -> list[Call]:
        """Calls of a session that have no outcome yet."""
        rows = self._database.execute(
            "SELECT key, call, owner, model, role FROM intents WHERE session = ? AND ended IS NULL", (session,)
        )
        return [Call(*row) for row in rows]

    async def submit(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` in the next transaction; returns when that is durable.

        Raises:
            ReplyStoreError: the database can't be written.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._waiting.put(_Job(work, loop, done))
        return await done

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join()
        self._database.close()
        self._ballast.unlink(missing_ok=True)

    def _work(self) -> None:
        ending = False
        while not ending:
            jobs = [self._waiting.get()]
            while not self._waiting.empty():
                jobs.append(self._waiting.get())
            ending = None in jobs
            batch = [job for job in jobs if job is not None]
            if batch:
                self._commit(batch)

    def _commit(self, batch: list[_Job[Any]]) -> None:
        try:
            try:
                results = self._transact(batch)
            except sqlite3.OperationalError:
                if not self._ballast.exists():
                    raise
                self._ballast.unlink()  # the disk may be full: make room for what is in flight, once
                results = self._transact(batch)
        except sqlite3.Error as error:
            problem = ReplyStoreError(
                f"{self._path}: replies can't be kept ({error}); make room or rights, then resume"
            )
            for job in batch:
                job.fail(problem)
            return
        for job, result in zip(batch, results, strict=True):
            job.finish(result)

    def _transact(self, batch: list[_Job[Any]]) -> list[Any]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            results = [job.work(self._database) for job in batch]
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        return results

    def _keep_ballast(self) -> None:
        if self._ballast.exists() and self._ballast.stat().st_size == BALLAST_BYTES:
            return
        try:
            with self._ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, BALLAST_BYTES)
        except OSError as error:
            self._ballast.unlink(missing_ok=True)
            raise ReplyStoreError(
                f"{self._path.parent}: has no {BALLAST_BYTES >> 20} MB left for replies ({error.strerror}); make room"
            ) from error


@dataclass(frozen=True)
class _Job(Generic[T]):
    work: Callable[[sqlite3.Connection], T]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[T]

    def finish(self, result: T) -> None:
        self._tell(self.done.set_result, result)

    def fail(self, error: Exception) -> None:
        self._tell(self.done.set_exception, error)

    def _tell(self, settle: Callable[[Any], None], value: Any) -> None:
        if not self.loop.is_closed():  # whoever asked may be gone
            self.loop.call_soon_threadsafe(lambda: None if self.done.done() else settle(value))


def _find(db: sqlite3.Connection, key: str) -> ChatReply | None:
    row = db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
    return decode_reply(row[0]) if row else None


def _write_intent(db: sqlite3.Connection, call: Call, session: str) -> None:
    db.execute(
        "INSERT OR REPLACE INTO intents VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
        (call.call, call.key, call.owner, session, call.model, call.role, time.time()),
    )


def _write_reply(db: sqlite3.Connection, call: Call, reply: ChatReply) -> None:
    # The first reply stays: it may have been used already.
    db.execute(
        "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", (call.key, call.call, encode_reply(reply), time.time())
    )
    _end_intent(db, call.call, "reply")


def _end_intent(db: sqlite3.Connection, call: str, reason: str) -> None:
    db.execute("UPDATE intents SET ended = ? WHERE call = ?", (reason, call))


def _count(db: sqlite3.Connection) -> dict[str, int]:
    replies = db.execute("SELECT count(*) FROM replies").fetchone()[0]
    intents, ended = db.execute("SELECT count(*), count(ended) FROM intents").fetchone()
    return {"replies": replies, "intents": intents, "open": intents - ended}


def encode_reply(reply: ChatReply) -> str:
    """A reply as JSON."""
    return json.dumps(asdict(reply))


def decode_reply(text: str) -> ChatReply:
    """A reply from `encode_reply`'s JSON."""
    fields = json.loads(text)
    return ChatReply(**{**fields, "usage": Usage(**fields["usage"]), "dropped": tuple(fields["dropped"])})
