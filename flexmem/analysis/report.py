"""Reports of a run: rows for machines, tables for people."""

from __future__ import annotations

from rich.console import Console

from flexmem.analysis.cells import cells
from flexmem.analysis.console import print_sections
from flexmem.analysis.footer import footer
from flexmem.analysis.formats import csv_text, latex_text, markdown_text
from flexmem.analysis.frames import Run
from flexmem.analysis.manifest import RunError
from flexmem.analysis.matrices import Section, sections, type_sections
from flexmem.analysis.model_sections import model_lines, model_sections
from flexmem.analysis.rows import COLUMNS, report_rows

__all__ = ["COLUMNS", "print_report", "report_rows", "to_csv", "to_latex", "to_markdown"]


def print_report(run: Run, console: Console, *, by_type: bool = False) -> None:
    """Prints the run's tables and what must be said beside them; four budgets fit 100 columns. ``by_type``: scores and
    what was shown for each question type, in place of all tables.

    Raises:
        RunError: a table can't be read, or no question has a type.
    """
    print_sections(console, *_document(run, by_type))


def to_markdown(run: Run, *, by_type: bool = False) -> str:
    """The tables of `print_report` as Markdown.

    Raises:
        RunError: as `print_report`.
    """
    return markdown_text(*_document(run, by_type))


def to_latex(run: Run, *, by_type: bool = False) -> str:
    """The tables of `print_report` as LaTeX, to be included in a document; no package is needed.

    Raises:
        RunError: as `print_report`.
    """
    return latex_text(*_document(run, by_type))


def to_csv(run: Run) -> str:
    """`report_rows` as CSV with a header; null is an empty field.

    Raises:
        RunError: a table can't be read.
    """
    return csv_text(report_rows(run))


def _document(run: Run, by_type: bool) -> tuple[list[Section], list[str]]:
    found = cells(run)
    if by_type:
        parts = list(type_sections(found))
        if not parts:
            raise RunError(f"{run.folder}: no finished question has a type; leave `--by type` out")
        return parts, list(footer(run, found))
    return [*sections(found), *model_sections(run)], [*footer(run, found), *model_lines(run)]
