"""The tables of a reply store's file: intents, what was sent, and replies."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from flexmem.llm.errors import ModelConfigurationError
from flexmem.ports import Attempt, Call, ChatReply, Usage

VERSION = 2
LOST = "its sender was lost"
"""How the intent of a call ends whose worker died: nobody knows what became of it."""

_TABLES = """
CREATE TABLE IF NOT EXISTS intents (
    call TEXT PRIMARY KEY, key TEXT NOT NULL, owner TEXT NOT NULL, session TEXT NOT NULL, model TEXT NOT NULL,
    role TEXT NOT NULL, begun_at REAL NOT NULL, ended TEXT, repeat INTEGER NOT NULL DEFAULT 0,
    subject TEXT NOT NULL DEFAULT '', most_usd REAL
);
CREATE INDEX IF NOT EXISTS open_intents ON intents (session) WHERE ended IS NULL;
CREATE TABLE IF NOT EXISTS attempts (
    call TEXT NOT NULL, number INTEGER NOT NULL, started_at REAL NOT NULL, latency_s REAL NOT NULL,
    outcome TEXT NOT NULL, status INTEGER, input INTEGER, output INTEGER, cached INTEGER, reasoning INTEGER,
    cache_written INTEGER, usd REAL, PRIMARY KEY (call, number)
);
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, call TEXT NOT NULL, reply TEXT NOT NULL, finished_at REAL NOT NULL
);
"""
# Version 1 had no table of attempts, and no repeat, subject and price in an intent.
_ADDED = (
    "ALTER TABLE intents ADD COLUMN repeat INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE intents ADD COLUMN subject TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE intents ADD COLUMN most_usd REAL",
)


def prepare(db: sqlite3.Connection) -> None:
    """Make the tables, or bring an older version's into shape.

    Raises:
        ModelConfigurationError: a later version's file.
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise ModelConfigurationError(
            f"the reply store is of version {version}, this flexmem reads up to {VERSION}; use the one that made it",
            attempts=0,
        )
    columns = {row[1] for row in db.execute("PRAGMA table_info(intents)")}
    if columns and "subject" not in columns:
        for statement in _ADDED:
            db.execute(statement)
    db.executescript(_TABLES)
    db.execute(f"PRAGMA user_version = {VERSION}")


def open_calls(db: sqlite3.Connection, session: str) -> list[Call]:
    """Calls of a session that have no outcome yet."""
    rows = db.execute(
        "SELECT key, call, owner, model, role, repeat, subject, most_usd FROM intents "
        "WHERE session = ? AND ended IS NULL",
        (session,),
    )
    return [Call(*row) for row in rows]


def find(db: sqlite3.Connection, key: str) -> ChatReply | None:
    """The kept reply."""
    row = db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
    return decode_reply(row[0]) if row else None


def write_intent(db: sqlite3.Connection, call: Call, session: str) -> None:
    """Say that a call is about to be sent."""
    db.execute(
        "INSERT OR REPLACE INTO intents (call, key, owner, session, model, role, begun_at, repeat, subject, most_usd) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            call.call,
            call.key,
            call.owner,
            session,
            call.model,
            call.role,
            time.time(),
            call.repeat,
            call.subject,
            call.most_usd,
        ),
    )


def write_reply(db: sqlite3.Connection, call: Call, reply: ChatReply) -> None:
    """Keep a reply with what was sent for it. The first reply stays: it may have been used already."""
    db.execute(
        "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", (call.key, call.call, encode_reply(reply), time.time())
    )
    end_intent(db, call.call, "reply", reply.trail)


def end_intent(db: sqlite3.Connection, call: str, reason: str, trail: Sequence[Attempt] = ()) -> None:
    """Say what became of a call."""
    db.execute("UPDATE intents SET ended = ? WHERE call = ?", (reason, call))
    db.executemany(
        "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                call,
                attempt.number,
                attempt.started_at,
                attempt.latency_s,
                attempt.outcome,
                attempt.status,
                attempt.usage.input,
                attempt.usage.output,
                attempt.usage.cached,
                attempt.usage.reasoning,
                attempt.usage.cache_written,
                attempt.usd,
            )
            for attempt in trail
        ],
    )


def count(db: sqlite3.Connection) -> dict[str, int]:
    """Replies kept; intents in all, and those without an outcome."""
    (replies,) = db.execute("SELECT count(*) FROM replies").fetchone()
    intents, ended = db.execute("SELECT count(*), count(ended) FROM intents").fetchone()
    return {"replies": replies, "intents": intents, "open": intents - ended}


def spent_usd(db: sqlite3.Connection, session: str) -> float:
    """USD of all that was sent, as far as prices are known; attempts count as in `flexmem.llm.spending.trail_usd`. A
    call whose outcome nobody knows counts with the most that it can have cost; those of ``session`` that are open are
    still in flight and don't.
    """
    (known,) = db.execute(
        "SELECT coalesce(sum(CASE WHEN a.usd IS NOT NULL THEN a.usd WHEN a.status IS NULL OR a.status < 400 "
        "THEN coalesce(i.most_usd, 0) ELSE 0 END), 0) FROM attempts a LEFT JOIN intents i ON i.call = a.call"
    ).fetchone()
    (unknown,) = db.execute(
        "SELECT coalesce(sum(most_usd), 0) FROM intents WHERE ended = ? OR (ended IS NULL AND session != ?)",
        (LOST, session),
    ).fetchone()
    return float(known + unknown)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One attempt of one call; ``attempt`` is None for a call that nobody knows the outcome of."""

    call: Call
    session: str
    begun_at: float
    ended: str | None
    attempt: Attempt | None
    dropped: tuple[str, ...]


def ledger(path: Path) -> Iterator[LedgerRow]:
    """All that was ever sent, in order of its beginning; reads the file without changing it."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        rows = db.execute(
            "SELECT i.key, i.call, i.owner, i.model, i.role, i.repeat, i.subject, i.most_usd, i.session, i.begun_at, "
            "i.ended, a.number, a.started_at, a.latency_s, a.outcome, a.status, a.input, a.output, a.cached, "
            "a.reasoning, a.cache_written, a.usd, CASE WHEN r.call = i.call THEN r.reply END "
            "FROM intents i LEFT JOIN attempts a ON a.call = i.call LEFT JOIN replies r ON r.key = i.key "
            "ORDER BY i.begun_at, i.call, a.number"
        )
        for row in rows:
            number, started_at, latency_s, outcome, status = row[11:16]
            usage = Usage(*row[16:21])
            attempt = (
                None if number is None else Attempt(number, started_at, latency_s, outcome, status, usage, row[21])
            )
            dropped = decode_reply(row[22]).dropped if row[22] else ()
            yield LedgerRow(Call(*row[:8]), row[8], row[9], row[10], attempt, dropped)
    finally:
        db.close()


def encode_reply(reply: ChatReply) -> str:
    """A reply as JSON."""
    return json.dumps(asdict(reply))


def decode_reply(text: str) -> ChatReply:
    """A reply from `encode_reply`'s JSON."""
    fields = json.loads(text)
    trail = tuple(Attempt(**{**sent, "usage": Usage(**sent["usage"])}) for sent in fields.get("trail", ()))
    return ChatReply(
        **{**fields, "usage": Usage(**fields["usage"]), "dropped": tuple(fields["dropped"]), "trail": trail}
    )
