"""``flexmem report``: what a run found."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from flexmem.cli.output import USAGE, console, notes, print_json


class Format(StrEnum):
    """How tables are printed."""

    TERMINAL = "terminal"
    MARKDOWN = "md"
    LATEX = "latex"
    CSV = "csv"


def report(
    run: Annotated[Path, typer.Argument(help="A run's output folder.")],
    table_format: Annotated[Format, typer.Option("--format", help="Form of the tables.")] = Format.TERMINAL,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="An array, one object a cell.")] = False,
) -> None:
    """Print a run's tables."""
    from flexmem.analysis import frames, report

    try:
        loaded = frames.load(run)
    except frames.RunError as error:
        notes().print(f"error: {error}")
        raise typer.Exit(USAGE) from None
    rows = report.report_rows(loaded)
    if as_json:
        print_json(rows)
    elif table_format is Format.TERMINAL:
        report.print_report(loaded, console())
    else:
        forms = {Format.MARKDOWN: report.to_markdown, Format.LATEX: report.to_latex, Format.CSV: report.to_csv}
        print(forms[table_format](rows), end="")


def show_report(run: Path) -> None:
    """Print a run's tables to the terminal."""
    from flexmem.analysis import frames, report

    report.print_report(frames.load(run), console())
