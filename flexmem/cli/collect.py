"""``flexmem collect``: several runs in one folder of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flexmem.cli.output import console, expected_errors, notes, print_json
from flexmem.cli.status import missing


def collect(
    folder: Annotated[Path, typer.Argument(help="The collection: a folder of tables for analysis across runs.")],
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders to take in; one that is there is brought up to date.")
    ],
    label: Annotated[str | None, typer.Option(help="What to call the run; default its folder's name.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Copy runs into one folder of Parquet tables, partitioned by run, benchmark, arm and budget."""
    from flexmem.sweep.collection import CollectionError, collect
    from flexmem.sweep.status import read_status

    with expected_errors():
        if label is not None and len(runs) > 1:
            raise CollectionError("--label names one run; give the runs one by one")
        taken = []
        for run in runs:
            status = read_status(run)
            taken.append(collect(run, folder, label))
            if not status["complete"]:
                notes().print(f"note: {run} is incomplete: {missing(status)}")
    if as_json:
        print_json([{"label": one.label, "replaced": one.replaced, "rows": one.rows} for one in taken])
        return
    for one in taken:
        again = "brought up to date" if one.replaced else "added"
        console().print(f"{one.label}: {again}, {one.rows['episodes']:,} episodes", markup=False, highlight=False)
