"""A run's figures for people: matrices of arms and budgets, each headed with what it is and whom it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from flexmem.analysis.cells import VERBATIM_EVIDENCE, Cell
from flexmem.analysis.intervals import Estimate
from flexmem.analysis.wording import budget_label, count, percent

UNKNOWN = "–"
NOT_APPLICABLE = "n/a"
INCOMPLETE = "*"


@dataclass(frozen=True)
class MatrixRow:
    """One arm. ``values`` has one text a budget, or a single one if the arm has no budget (``spans``)."""

    arm: str
    values: tuple[str, ...]
    spans: bool


@dataclass(frozen=True)
class Matrix:
    title: str
    population: str
    budgets: tuple[str, ...]
    rows: tuple[MatrixRow, ...]


@dataclass(frozen=True)
class Section:
    """All matrices of one benchmark and reader."""

    title: str
    matrices: tuple[Matrix, ...]


@dataclass(frozen=True)
class _Measure:
    title: str
    population: Callable[[Sequence[Cell]], str]
    show: Callable[[Cell], str]


def sections(cells: Iterable[Cell]) -> Iterator[Section]:
    """Sections in the order of the whole cells among ``cells``; what no cell of a section knows is left out of it."""
    groups: dict[tuple[str, str | None], list[Cell]] = {}
    for cell in cells:
        if cell.question_type is None:
            groups.setdefault((cell.key.benchmark, cell.key.reader), []).append(cell)
    for (benchmark, reader), group in groups.items():
        yield _section(_title(benchmark, reader, group), group, [*_shown_measures(group), *_cost_measures(group)])


def type_sections(cells: Iterable[Cell]) -> Iterator[Section]:
    """As `sections`, one for each question type, without costs; types in alphabetical order within a benchmark and
    reader.
    """
    groups: dict[tuple[str, str | None], dict[str, list[Cell]]] = {}
    for cell in cells:
        if cell.question_type is not None:
            by_type = groups.setdefault((cell.key.benchmark, cell.key.reader), {})
            by_type.setdefault(cell.question_type, []).append(cell)
    for (benchmark, reader), by_type in groups.items():
        for name, group in sorted(by_type.items()):
            title = f"{_title(benchmark, reader, group)}: questions of type {name}"
            yield _section(title, group, _shown_measures(group))


def _title(benchmark: str, reader: str | None, cells: Sequence[Cell]) -> str:
    repeats = _span(cell.repeats for cell in cells)
    title = benchmark if reader is None else f"{benchmark}, read by {reader}"
    return title if repeats == "1" else f"{title}, means of {repeats} repeats"


def _section(title: str, cells: Sequence[Cell], measures: Iterable[_Measure]) -> Section:
    matrices = (_matrix(measure, cells) for measure in measures)
    return Section(title, tuple(matrix for matrix in matrices if _says_something(matrix)))


def _matrix(measure: _Measure, cells: Sequence[Cell]) -> Matrix:
    budgets = sorted({cell.key.budget for cell in cells if cell.key.budget is not None})
    arms: dict[tuple[str, bool], dict[int | None, Cell]] = {}
    for cell in cells:
        arms.setdefault((cell.key.arm, cell.key.budget is None), {})[cell.key.budget] = cell
    rows = []
    for (arm, spans), found in arms.items():
        wanted: list[int | None] = [None] if spans else [*budgets]
        values = tuple(measure.show(found[budget]) if budget in found else "" for budget in wanted)
        rows.append(MatrixRow(arm, values, spans))
    population = measure.population(cells) + ("" if any(cell.complete for cell in cells) else ", so far")
    return Matrix(measure.title, population, tuple(map(budget_label, budgets)), tuple(rows))


def _says_something(matrix: Matrix) -> bool:
    return any(value not in ("", UNKNOWN) for row in matrix.rows for value in row.values)


def _shown_measures(cells: Sequence[Cell]) -> Iterator[_Measure]:
    """Scores, and what the memory showed."""
    if cells[0].key.reader is not None:
        metrics = sorted({cell.metric for cell in cells if cell.metric is not None})
        title = f"Score ({', '.join(metrics) or 'none yet'}), %, with 95 % interval"
        yield _Measure(title, _all_questions, _headline)
    yield _Measure(
        "Verbatim-evidence score: % of questions with all evidence turns shown verbatim, 95 % interval",
        _with_evidence,
        _verbatim_evidence,
    )
    yield _Measure(
        "Evidence turns shown verbatim: % of all turns together, 95 % interval",
        _turns,
        lambda cell: _share(cell, cell.evidence_turns, evidence=True),
    )
    yield _Measure(
        "Answer recall: % of the gold answer's content words in the memory, 95 % interval",
        _extractive,
        lambda cell: _share(cell, cell.answer_recall),
    )


def _cost_measures(cells: Sequence[Cell]) -> Iterator[_Measure]:
    yield _Measure(
        "Utilisation: memory tokens / room, mean in %",
        _all_episodes,
        lambda cell: _cost(cell, cell.utilisation, percent),
    )
    yield _Measure(
        "Time per rendering: median, ms", _all_episodes, lambda cell: _cost(cell, cell.render_ms, _milliseconds)
    )
    if any(cell.usd for cell in cells):
        yield _Measure("USD per episode: mean", _all_episodes, lambda cell: _cost(cell, cell.usd, "{:.4f}".format))


def _headline(cell: Cell) -> str:
    if cell.problems and cell.worst is not None and cell.best is not None:
        return f"{percent(cell.worst)} to {percent(cell.best)} {INCOMPLETE}"
    return INCOMPLETE if cell.problems else _share(cell, cell.score)


def _verbatim_evidence(cell: Cell) -> str:
    if cell.metric == VERBATIM_EVIDENCE and not cell.rewrites_text:
        return _headline(cell)
    return _share(cell, cell.verbatim_evidence, evidence=True)


def _share(cell: Cell, estimate: Estimate | None, *, evidence: bool = False) -> str:
    if evidence and cell.rewrites_text:
        return NOT_APPLICABLE
    if estimate is None:
        return INCOMPLETE if cell.problems else UNKNOWN
    if estimate.low is None or estimate.high is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} [{percent(estimate.low)}, {percent(estimate.high)}]"


def _cost(cell: Cell, mean: float | None, show: Callable[[float], str]) -> str:
    if mean is None:
        return UNKNOWN
    return f"{show(mean)} {INCOMPLETE}" if cell.problems else show(mean)


def _milliseconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _all_questions(cells: Sequence[Cell]) -> str:
    return f"{_questions(cells, lambda cell: cell.questions)} in {_conversations(cells)}"


def _with_evidence(cells: Sequence[Cell]) -> str:
    left_out = _span(cell.questions - cell.evidence_questions for cell in _fullest(cells))
    text = f"{_questions(cells, lambda cell: cell.evidence_questions)} in {_conversations(cells)}"
    return text if left_out == "0" else f"{text}; {left_out} left out (no valid evidence, adversarial or abstention)"


def _turns(cells: Sequence[Cell]) -> str:
    turns = _span(cell.evidence_turns_total for cell in _fullest(cells) if cell.evidence_turns_total is not None)
    return f"{count(turns or 'unknown', 'evidence turn')} of {_questions(cells, lambda cell: cell.evidence_questions)}"


def _extractive(cells: Sequence[Cell]) -> str:
    left_out = _span(cell.questions - cell.extractive_questions for cell in _fullest(cells))
    text = f"{_questions(cells, lambda cell: cell.extractive_questions)} whose answer's words are all in the history"
    return text if left_out == "0" else f"{text}; {left_out} more left out"


def _all_episodes(cells: Sequence[Cell]) -> str:
    return f"{count(_span(cell.present for cell in _fullest(cells)), 'episode')} per cell"


def _questions(cells: Sequence[Cell], number: Callable[[Cell], int]) -> str:
    return count(_span(map(number, _fullest(cells))), "question")


def _conversations(cells: Sequence[Cell]) -> str:
    return count(_span(cell.conversations for cell in _fullest(cells)), "conversation")


def _fullest(cells: Sequence[Cell]) -> list[Cell]:
    """The complete cells, which a matrix's head speaks of; without any, those with the most episodes."""
    most = max(cell.present for cell in cells)
    return [cell for cell in cells if cell.complete] or [cell for cell in cells if cell.present == most]


def _span(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    if not found:
        return ""
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,}–{found[-1]:,}"
