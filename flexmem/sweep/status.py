"""Where a run stands, read from its folder alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from flexmem.sweep.manifest import read_manifest
from flexmem.sweep.results import read_columns

ERRORS_SHOWN = 10


def read_status(out: Path) -> dict[str, Any]:
    """Planned, done and failed episodes of a run, in all and by cell; failed attempts that no later one made good, by
    class; and the most frequent errors. A failed episode is done: it has its row and scores 0.

    Raises:
        RunFolderError: not a run folder, or of another schema version. TornPartError: a part can't be read.
    """
    manifest = read_manifest(out)
    done: Counter[tuple[Any, ...]] = Counter()
    failed: Counter[tuple[Any, ...]] = Counter()
    errors: Counter[tuple[str, str]] = Counter()
    seen: set[str] = set()
    columns = ["episode", "benchmark", "arm", "budget", "outcome", "error_class", "error"]
    for table in read_columns(out, "episodes", columns):
        for row in table.to_pylist():
            if row["episode"] in seen:
                continue
            seen.add(row["episode"])
            cell = (row["benchmark"], row["arm"], row["budget"])
            done[cell] += 1
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
    return {
        "run": str(out),
        "name": manifest["name"],
        "planned": planned,
        "done": sum(done.values()),
        "failed": sum(failed.values()),
        "complete": all(cell["done"] >= cell["planned"] for cell in cells),
        "failures": dict(failures),
        "errors": [
            {"class": error_class, "error": error, "times": times}
            for (error_class, error), times in errors.most_common(ERRORS_SHOWN)
        ],
        "cells": cells,
    }
