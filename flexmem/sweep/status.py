"""Where a run stands, read from its folder alone."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flexmem.sweep.manifest import read_manifest
from flexmem.sweep.results import is_written, read_columns

ERRORS_SHOWN = 10
RATE_OVER_S = 60.0
TOKENS = ("reader_input_tokens", "reader_output_tokens")


def read_status(out: Path, now: datetime | None = None) -> dict[str, Any]:
    """Planned, done and failed episodes of a run, in all and by cell; failed attempts that no later one made good, by
    class; and the most frequent errors. A failed episode is done: it has its row and scores 0.

    ``running``: some process writes into the folder. ``rate``: episodes a second over the last minute of a run that
    goes on, ``eta_s`` the seconds to go at that rate. ``tokens``: the readers', None where an endpoint does not say.

    Raises:
        RunFolderError: not a run folder, or of another schema version. TornPartError: a part can't be read.
    """
    manifest = read_manifest(out)
    done: Counter[tuple[Any, ...]] = Counter()
    failed: Counter[tuple[Any, ...]] = Counter()
    errors: Counter[tuple[str, str]] = Counter()
    seen: set[str] = set()
    now = now or datetime.now(UTC)
    recent = 0
    tokens: dict[str, int | None] = dict.fromkeys(TOKENS, 0)
    columns = ["episode", "benchmark", "arm", "budget", "outcome", "error_class", "error", "reader", "finished_at"]
    for table in read_columns(out, "episodes", [*columns, *TOKENS]):
        for row in table.to_pylist():
            if row["episode"] in seen:
                continue
            seen.add(row["episode"])
            cell = (row["benchmark"], row["arm"], row["budget"])
            done[cell] += 1
            ended = row["finished_at"]
            recent += ended is not None and (now - ended).total_seconds() <= RATE_OVER_S
            if row["reader"] is not None:
                for name in TOKENS:
                    tokens[name] = _sum(tokens[name], row[name])
            if row["outcome"] == "failed":
                failed[cell] += 1
                errors[row["error_class"], row["error"]] += 1
    failures: Counter[str] = Counter()
    for table in read_columns(out, "failures", ["episode", "error_class", "error"]):
        for row in table.to_pylist():
            if row["episode"] not in seen:  # a later attempt made the others good
                failures[row["error_class"]] += 1
                errors[row["error_class"], row["error"]] += 1
    cells = [
        {
            "benchmark": cell["benchmark"],
            "arm": cell["arm"],
            "budget": cell["budget"],
            "planned": cell["n"],
            "done": done[cell["benchmark"], cell["arm"], cell["budget"]],
            "failed": failed[cell["benchmark"], cell["arm"], cell["budget"]],
        }
        for cell in manifest["planned"]
    ]
    planned = sum(cell["planned"] for cell in cells)
    running = is_written(out)
    rate = recent / RATE_OVER_S if running else None
    left = planned - sum(done.values())
    return {
        "run": str(out),
        "name": manifest["name"],
        "planned": planned,
        "done": sum(done.values()),
        "failed": sum(failed.values()),
        "complete": all(cell["done"] >= cell["planned"] for cell in cells),
        "running": running,
        "rate": rate,
        "eta_s": left / rate if rate else None,
        "tokens": tokens,
        "failures": dict(failures),
        "errors": [
            {"class": error_class, "error": error, "times": times}
            for (error_class, error), times in errors.most_common(ERRORS_SHOWN)
        ],
        "cells": cells,
    }


def _sum(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
