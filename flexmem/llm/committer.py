"""Durable writes of many callers to one SQLite file, committed together."""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from flexmem.errors import FlexmemError

BALLAST_BYTES = 8 << 20  # freed when the disk is full: room for the replies of calls in flight

T = TypeVar("T")


class ReplyStoreError(FlexmemError, OSError):
    """The store can't write (a full disk, no rights): nothing may be paid until it can."""


class Committer:
    """One thread, one connection: takes what is waiting, runs it in one transaction, and reports once it is on disk.

    Args:
        path: the file; its folder exists.
        prepare: brings the tables into shape, once.

    Raises:
        ReplyStoreError: the file can't be opened or written, is no SQLite file, or there is no room for the ballast.
    """

    def __init__(self, path: Path, prepare: Callable[[sqlite3.Connection], None]) -> None:
        self._path = path
        self._ballast = path.with_name(path.name + ".ballast")
        self._waiting: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._database = _opened(path)
        try:
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            prepare(self._database)
            self._keep_ballast()
        except sqlite3.Error as error:
            self._database.close()
            raise _unusable(path, error) from error
        except BaseException:
            self._database.close()
            raise
        self._thread = threading.Thread(target=self._work, name="reply-store", daemon=True)
        self._thread.start()

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Look at the database before anything is submitted."""
        return work(self._database)

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
        """Commit what is waiting and close the file."""
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


def _opened(path: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    except sqlite3.Error as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: sqlite3.Error) -> ReplyStoreError:
    return ReplyStoreError(
        f"{path}: can't be used as the store of replies ({error}); if it is damaged, move it away and what it holds is "
        "paid again"
    )


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
