"""Where a run stands, read from its folder alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from flexmem.sweep.manifest import read_manifest
from flexmem.sweep.results import read_columns


def read_status(out: Path) -> dict[str, Any]:
    """Planned, done and failed episodes of a run, in all and by cell, and its failed attempts by class.

    Raises:
        RunFolderError: not a run folder, or of another schema version. TornPartError: a part can't be read.
    """
    manifest = read_manifest(out)
    done: Counter[tuple[Any, ...]] = Counter()
    failed: Counter[tuple[Any, ...]] = Counter()
    seen: set[str] = set()
    for table in read_columns(out, "episodes", ["episode", "benchmark", "arm", "budget", "reader", "outcome"]):
        for row in table.to_pylist():
            if row["episode"] in seen:
                continue
            seen.add(row["episode"])
            cell = (row["benchmark"], row["arm"], row["budget"])
            done[cell] += 1
            failed[cell] += row["outcome"] == "failed"
    failures: Counter[str] = Counter()
    for table in read_columns(out, "failures", ["error_class"]):
        failures.update(table["error_class"].to_pylist())
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
        "cells": cells,
    }
