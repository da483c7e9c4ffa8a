"""Reports as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flexmem.analysis.matrices import Matrix, Section
from flexmem.analysis.rows import COLUMNS

WITHOUT_BUDGET = "no budget"

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "*": r"{*}",  # after \\ a star or a bracket would be read as its argument
        "[": "{[}",
        "]": "{]}",
    }
)


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows of `report_rows` under a header; null is an empty field."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def markdown_text(sections: Iterable[Section], footer: Iterable[str]) -> str:
    """One heading a section, one pipe table a matrix, the footer as a list."""
    parts = []
    for section in sections:
        parts.append(f"## {_markdown(section.title)}")
        for matrix in section.matrices:
            parts.append(f"**{_markdown(matrix.title)}**  \n{_markdown(matrix.population)}")
            parts.append(_pipe_table(matrix))
    parts.append("\n".join(f"- {_markdown(line)}" for line in footer))
    return "\n\n".join(parts) + "\n"


def latex_text(sections: Iterable[Section], footer: Iterable[str]) -> str:
    """One ``table`` a matrix, needing no packages, and the footer as a list."""
    parts = [_latex_table(section, matrix) for section in sections for matrix in section.matrices]
    items = "\n".join(rf"\item {escape_latex(line)}" for line in footer)
    parts.append(f"{{\\footnotesize\n\\begin{{itemize}}\n{items}\n\\end{{itemize}}}}")
    return "\n\n".join(parts) + "\n"


def escape_latex(text: str) -> str:
    """``text`` as LaTeX sets it literally, anywhere in a paragraph, an item or a table cell."""
    return text.translate(_LATEX)


def _pipe_table(matrix: Matrix) -> str:
    budgets = matrix.budgets or (WITHOUT_BUDGET,)
    lines = [_pipe_row("arm", budgets), _pipe_row("---", ["---:"] * len(budgets))]
    for row in matrix.rows:
        arm = _markdown(row.arm)
        if row.spans and matrix.budgets:  # Markdown has no cells that span columns
            arm += f" ({WITHOUT_BUDGET})"
        values = [*map(_markdown, row.values), *[""] * (len(budgets) - len(row.values))]
        lines.append(_pipe_row(arm, values))
    return "\n".join(lines)


def _pipe_row(first: str, rest: Sequence[str]) -> str:
    return f"| {first} | {' | '.join(rest)} |"


def _markdown(text: str) -> str:
    for mark in ("\\", "|", "*", "_", "`", "<", "["):
        text = text.replace(mark, f"\\{mark}")
    return text


def _latex_table(section: Section, matrix: Matrix) -> str:
    budgets = matrix.budgets or (WITHOUT_BUDGET,)
    caption = f"{section.title}. {matrix.title}. {matrix.population}."
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * len(budgets)}}}",
        r"\hline",
        _latex_row(["arm", *budgets]),
        r"\hline",
    ]
    for row in matrix.rows:
        if row.spans:
            value = escape_latex(row.values[0])
            lines.append(rf"{escape_latex(row.arm)} & \multicolumn{{{len(budgets)}}}{{c}}{{{value}}} \\")
        else:
            lines.append(_latex_row([row.arm, *row.values]))
    return "\n".join([*lines, r"\hline", r"\end{tabular}", r"\end{table}"])


def _latex_row(texts: Sequence[str]) -> str:
    return " & ".join(map(escape_latex, texts)) + r" \\"
