"""``flexmem report``: what a run found."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from flexmem.cli.output import console, expected_errors, print_json


class Format(StrEnum):
    """How tables are printed."""

    TERMINAL = "terminal"
    MARKDOWN = "md"
    LATEX = "latex"
    CSV = "csv"


class By(StrEnum):
    """What tables are split by."""

    TYPE = "type"


def report(
    run: Annotated[Path, typer.Argument(help="A run's output folder.")],
    table_format: Annotated[Format, typer.Option("--format", help="Form of the tables.")] = Format.TERMINAL,
    *,
    by: Annotated[
        By | None, typer.Option(help="Scores and evidence by question type; csv and --json always have them.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="An array, one object a cell.")] = False,
) -> None:
    """Print a run's tables."""
    from flexmem.analysis import report as tables
    from flexmem.analysis.frames import load

    with expected_errors():
        loaded = load(run)
        if as_json:
            print_json(tables.report_rows(loaded))
        elif table_format is Format.TERMINAL:
            tables.print_report(loaded, console(), by_type=by is By.TYPE)
        elif table_format is Format.CSV:
            print(tables.to_csv(loaded), end="")
        else:
            text = tables.to_markdown if table_format is Format.MARKDOWN else tables.to_latex
            print(text(loaded, by_type=by is By.TYPE), end="")


def show_report(run: Path) -> None:
    """Print a run's tables to the terminal."""
    from flexmem.analysis.frames import load
    from flexmem.analysis.report import print_report

    print_report(load(run), console())
