"""The ledger: every request that a run sent, as the Parquet table ``calls``, made from the reply store."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from flexmem.dataset import Merge, live_files
from flexmem.llm.committer import ReplyStoreError
from flexmem.llm.reply_tables import LOST, LedgerRow, ledger
from flexmem.sweep.merging import finish_merges, new_merge, record_merge, write_merged
from flexmem.sweep.results import make_table
from flexmem.sweep.tables import TABLES

REPLIES = "replies.sqlite"
CALLS = "calls"
UNKNOWN = "unknown"
"""Outcome of a call whose sender was killed: it may have been answered, and paid."""
_ROWS = 50_000


def export_calls(out: Path) -> int:
    """Bring ``calls`` up to date with the run's reply store; returns its rows. A reader sees the older table until the
    new one is complete. Only while nobody else writes.

    Raises:
        ReplyStoreError: the reply store can't be read.
    """
    store, folder = out / REPLIES, out / CALLS
    if not store.exists():
        return 0
    finish_merges(out, CALLS)
    older = tuple(str(path.relative_to(folder)) for path in live_files(folder))
    merge = new_merge()
    files: list[str] = []
    rows = 0
    sent = ledger(store)
    try:
        while batch := [_row(row) for row in islice(sent, _ROWS)]:
            table = make_table(CALLS, batch)
            files += write_merged(folder, TABLES[CALLS], table, merge, len(files), {}, ())
            rows += table.num_rows
    except sqlite3.Error as error:
        raise ReplyStoreError(
            f"{store}: can't be read ({error}); move it away and what it holds is paid again"
        ) from error
    if files or older:
        record_merge(folder, Merge(merge, tuple(files), older))
        finish_merges(out, CALLS)
    return rows


def _row(row: LedgerRow) -> dict[str, Any]:
    kind, _, subject = row.call.subject.rpartition(":")
    attempt = row.attempt
    sent = {
        "call": row.call.call,
        "key": row.call.key,
        "subject_kind": kind or None,
        "subject": subject or None,
        "role": row.call.role,
        "model": row.call.model,
        "repeat": row.call.repeat,
        "most_usd": row.call.most_usd,
        "started_at": datetime.fromtimestamp(row.begun_at, UTC),
        "outcome": UNKNOWN,
    }
    if attempt is None:
        # Given up before anything was sent (no key, a context that is too long), or nobody knows.
        return sent | ({"outcome": row.ended} if row.ended not in (None, LOST, "reply") else {})
    return sent | {
        "attempt": attempt.number,
        "started_at": datetime.fromtimestamp(attempt.started_at, UTC),
        "latency_s": attempt.latency_s,
        "outcome": attempt.outcome,
        "status": attempt.status,
        "input_tokens": attempt.usage.input,
        "cached_tokens": attempt.usage.cached,
        "cache_written_tokens": attempt.usage.cache_written,
        "output_tokens": attempt.usage.output,
        "reasoning_tokens": attempt.usage.reasoning,
        "usd": attempt.usd,
        "dropped": list(row.dropped),
    }
