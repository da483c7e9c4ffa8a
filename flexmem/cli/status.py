"""``flexmem status``: where a run stands, told from its folder, whoever runs it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from flexmem.cli.output import COMPLETE, INCOMPLETE, console, expected_errors, print_json


def status(
    run: Annotated[Path, typer.Argument(help="A run's output folder.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Show planned, done and failed episodes of a run by cell; exit 1 while it is incomplete."""
    from flexmem.sweep.status import read_status

    with expected_errors():
        found = read_status(run)
    if as_json:
        print_json(found)
    else:
        table = Table("benchmark", "arm", "budget", "planned", "done", "failed")
        for cell in found["cells"]:
            budget = "-" if cell["budget"] is None else f"{cell['budget']:,}"
            numbers = (f"{cell[key]:,}" for key in ("planned", "done", "failed"))
            table.add_row(cell["benchmark"], cell["arm"], budget, *numbers)
        console().print(table)
        for error_class, count in Counter(found["failures"]).items():
            console().print(f"{count:,} attempts failed: {error_class}", markup=False)
        console().print(f"{found['done']:,} of {found['planned']:,} episodes done")
    raise typer.Exit(COMPLETE if found["complete"] else INCOMPLETE)
