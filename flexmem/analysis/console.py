"""Reports on a terminal. Columns are laid out here, since rich's tables have no cell that spans the budgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from flexmem.analysis.matrices import Matrix, MatrixRow, Section

_GAP = 2


def print_sections(console: Console, sections: Iterable[Section], footer: Iterable[str]) -> None:
    """Prints matrices and footer. Budgets that don't fit side by side continue in a block below."""
    for section in sections:
        console.print(Text(section.title, style="bold underline"))
        for matrix in section.matrices:
            console.print()
            console.print(Text(matrix.title, style="bold"))
            console.print(Text(matrix.population, style="dim"))
            for line in _layout(matrix, console.width):
                console.print(line, no_wrap=True, overflow="ignore", crop=False)
        console.print()
    for sentence in footer:
        console.print(Text(sentence))


def _layout(matrix: Matrix, width: int) -> Iterator[Text]:
    arm_width = max(cell_len(row.arm) for row in matrix.rows)
    texts = [value for row in matrix.rows if not row.spans for value in row.values]
    column = max(map(cell_len, [*matrix.budgets, *texts]), default=0) + _GAP
    fitting = max(1, (width - arm_width) // column)
    blocks = max(1, -(-len(matrix.budgets) // fitting))
    size = -(-len(matrix.budgets) // blocks)
    for block in range(blocks):
        part = slice(block * size, (block + 1) * size)
        budgets = matrix.budgets[part]
        if budgets:
            head = " " * arm_width + "".join(_right(label, column) for label in budgets)
            yield Text(head, style="bold")
        for row in matrix.rows:
            yield Text(_left(row.arm, arm_width) + _values(row, part, column, column * len(budgets)))


def _values(row: MatrixRow, part: slice, column: int, width: int) -> str:
    if not row.spans:
        return "".join(_right(value, column) for value in row.values[part])
    inner = max(0, width - _GAP - cell_len(row.values[0]))
    return " " * (_GAP + inner // 2) + row.values[0]


def _left(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text
