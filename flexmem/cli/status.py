"""``flexmem status``: where a run stands, told from its folder, whoever runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from flexmem.cli.output import COMPLETE, INCOMPLETE, console, expected_errors, print_json


def status(
    run: Annotated[Path, typer.Argument(help="A run's output folder.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Show planned, done and failed episodes by cell, and errors; exit 1 if incomplete or if a method broke."""
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
        for line in error_lines(found):
            console().print(line, markup=False, highlight=False)
        if found["running"]:
            to_go = f", {found['eta_s']:.0f} s to go" if found["eta_s"] else ""
            console().print(f"running: {found['rate']:.1f} episodes/s over the last minute{to_go}")
        console().print(f"{found['done']:,} of {found['planned']:,} episodes done, {found['failed']:,} of them failed")
    raise typer.Exit(exit_code(found))


def error_lines(found: dict[str, Any]) -> list[str]:
    """What went wrong, most frequent first."""
    return [f"{error['times']:,} x {error['class']}: {error['error']}" for error in found["errors"]]


def exit_code(found: dict[str, Any]) -> int:
    """0 only for a run that is complete and in which no method broke: its own code is then what must be looked at."""
    broken = any(error["class"] == "method" for error in found["errors"])
    return COMPLETE if found["complete"] and not broken else INCOMPLETE
