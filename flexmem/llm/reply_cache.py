"""What a reply store keeps, and deleting some of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from flexmem.llm.committer import ReplyStoreError
from flexmem.llm.reply_tables import decode_reply


@dataclass(frozen=True)
class KeptReplies:
    """The kept replies of one role and model; ``usd`` is None where one's price is unknown, times are in Unix
    seconds.
    """

    role: str
    model: str
    replies: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    oldest: float
    newest: float


def kept_replies(path: Path) -> list[KeptReplies]:
    """Kept replies by role and model.

    Raises:
        ReplyStoreError: there is no such file, or it is no reply store.
    """
    _check_file(path)
    groups: dict[tuple[str, str], list[tuple[str, float]]] = {}
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            rows = db.execute(
                "SELECT i.role, i.model, r.reply, r.finished_at FROM replies r JOIN intents i ON i.call = r.call"
            )
            for role, model, reply, finished in rows:
                groups.setdefault((role, model), []).append((reply, finished))
        return [_summary(role, model, rows) for (role, model), rows in sorted(groups.items())]
    except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
        raise ReplyStoreError(f"{path}: can't be read as a store of replies ({error})") from error


def prune(path: Path, *, role: str | None = None, model: str | None = None, dry: bool = False) -> int:
    """Delete kept replies, all or those of a role or model; the ledger of what was sent stays. Returns how many; with
    ``dry`` nothing is deleted. Only while nobody writes.

    Raises:
        ReplyStoreError: there is no such file, or it can't be written.
    """
    _check_file(path)
    chosen = (
        "SELECT r.key FROM replies r JOIN intents i ON i.call = r.call "
        "WHERE (:role IS NULL OR i.role = :role) AND (:model IS NULL OR i.model = :model)"
    )
    values = {"role": role, "model": model}
    try:
        with closing(sqlite3.connect(path)) as db:
            (found,) = db.execute(f"SELECT count(*) FROM ({chosen})", values).fetchone()
            if not dry and found:
                with db:
                    db.execute(f"DELETE FROM replies WHERE key IN ({chosen})", values)
                db.execute("VACUUM")
            return int(found)
    except sqlite3.Error as error:
        raise ReplyStoreError(f"{path}: can't be pruned ({error})") from error


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise ReplyStoreError(f"{path}: there is no such file: the run has called no model, or it was moved away")


def _summary(role: str, model: str, rows: list[tuple[str, float]]) -> KeptReplies:
    replies = [decode_reply(reply) for reply, _ in rows]
    prices = [reply.trail[-1].usd if reply.trail else None for reply in replies]
    times = [finished for _, finished in rows]
    return KeptReplies(
        role,
        model,
        len(rows),
        sum(reply.usage.input or 0 for reply in replies),
        sum(reply.usage.output or 0 for reply in replies),
        None if None in prices else sum(price or 0.0 for price in prices),
        min(times),
        max(times),
    )
