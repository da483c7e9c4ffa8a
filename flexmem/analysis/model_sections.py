"""What models cost and what judges said, as sections of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from flexmem.analysis.costs import Costs, costs, spent
from flexmem.analysis.frames import Run
from flexmem.analysis.judged import JudgeScore, agreements, judge_scores
from flexmem.analysis.manifest import CellKey
from flexmem.analysis.matrices import INCOMPLETE, Matrix, MatrixRow, Section
from flexmem.analysis.wording import budget_label, count, percent

T = TypeVar("T")
_UNKNOWN = "unknown"


def model_sections(run: Run) -> Iterator[Section]:
    """Scores by judge, where there is more than one, and costs by role, where a model was called.

    Raises:
        RunError: a table can't be read.
    """
    if len(run.manifest.judges) > 1:
        yield from _judge_sections(judge_scores(run))
    place = {planned.key: number for number, planned in enumerate(run.manifest.planned)}
    found = sorted(costs(run), key=lambda cell: place.get(cell.key, len(place)))  # as all other tables have them
    for (benchmark, reader), cells in _by_place({cell.key: cell for cell in found}).items():
        title = benchmark if reader is None else f"{benchmark}, read by {reader}"
        matrices = tuple(_cost_matrices(cells))
        if matrices:
            yield Section(f"{title}: what it took", matrices)


def model_lines(run: Run) -> Iterator[str]:
    """How far judges agree, and what was really sent, in sentences.

    Raises:
        RunError: a table can't be read.
    """
    for pair in agreements(run):
        if pair.raw is None:
            continue
        kappa = "undefined" if pair.kappa is None else f"{pair.kappa:.2f}"
        signs = ""
        if pair.same_sign is not None:
            compared = count(pair.comparisons, "comparison")
            signs = f"; {100 * pair.same_sign:.0f} % of {compared} between arms have the same sign by both"
        yield (
            f"Judges {pair.first} and {pair.second}, {pair.n:,} replies: they agree on {100 * pair.raw:.1f} %, Cohen's "
            f"kappa {kappa}{signs}."
        )
    for role in spent(run):
        price = "USD unknown" if role.usd is None else f"{role.usd:.4f} USD"
        failed = f", {role.failed:,} of them without a reply" if role.failed else ""
        unknown = (
            f"; of {count(role.unknown, 'call')} nobody knows the outcome, their sender was killed"
            if role.unknown
            else ""
        )
        yield (
            f"Sent for the {role.role}: {count(role.attempts, 'request')}{failed}, {role.input_tokens:,} tokens in "
            f"({role.cached_tokens:,} from a cache), {role.output_tokens:,} out, {price}{unknown}."
        )


def _judge_sections(scores: Iterable[JudgeScore]) -> Iterator[Section]:
    by_judge: dict[str, dict[CellKey, JudgeScore]] = {}
    for score in scores:
        by_judge.setdefault(score.judge, {})[score.key] = score
    places = _by_place({key: key for cells in by_judge.values() for key in cells})
    for (benchmark, reader), keys in places.items():
        matrices = tuple(
            _matrix(
                f"Score by judge {judge}, %",
                "all replies that judges score",
                {key: _word(cells[key]) for key in keys if key in cells},
            )
            for judge, cells in by_judge.items()
        )
        yield Section(f"{benchmark}, read by {reader}: judges", matrices)


def _word(score: JudgeScore) -> str:
    return INCOMPLETE if score.score is None else percent(score.score)


def _cost_matrices(cells: Mapping[CellKey, Costs]) -> Iterator[Matrix]:
    reads = any(key.reader is not None for key in cells)
    writes = any(cell.build_tokens != 0 for cell in cells.values())
    if reads:
        tokens = {key: _whole(cell.read_tokens) for key, cell in cells.items()}
        yield _matrix("Reader tokens, in and out", "mean per question", tokens)
    if writes:
        tokens = {key: _whole(cell.build_tokens) for key, cell in cells.items()}
        yield _matrix("Memory-model tokens, in and out: writing a memory and merging in it", "mean per build", tokens)
    asks = any(cell.ask_tokens != 0 for cell in cells.values())
    if asks:
        tokens = {key: _whole(cell.ask_tokens) for key, cell in cells.items()}
        yield _matrix("Memory-model tokens, in and out: asked anew for each question", "mean per question", tokens)
    if writes or asks:
        served = "a build's tokens shared by the questions of the cell that it served"
        yield _matrix("Tokens per question, reader and memory", served, {k: _whole(c.tokens) for k, c in cells.items()})
    if writes:
        alone = {key: _whole(cell.tokens_alone) for key, cell in cells.items()}
        yield _matrix("Tokens per question if each build had served one", "reader and memory", alone)
    if any(cell.usd is not None for cell in cells.values()):
        shared = {key: _usd(cell.usd) for key, cell in cells.items()}
        yield _matrix("USD per question, reader and memory", "builds shared by the questions that they served", shared)
    if writes and any(cell.usd_alone is not None for cell in cells.values()):
        alone = {key: _usd(cell.usd_alone) for key, cell in cells.items()}
        yield _matrix("USD per question if each build had served one", "reader and memory", alone)
    if any(cell.judge_tokens != 0 for cell in cells.values()):
        judged = {key: _whole(cell.judge_tokens) for key, cell in cells.items()}
        yield _matrix("Judges' tokens, in and out", "mean per question, in no other figure", judged)
        if any(cell.judge_usd is not None for cell in cells.values()):
            judged = {key: _usd(cell.judge_usd) for key, cell in cells.items()}
            yield _matrix("Judges' USD", "mean per question, in no other figure", judged)


def _matrix(title: str, population: str, values: Mapping[CellKey, str]) -> Matrix:
    budgets = sorted({key.budget for key in values if key.budget is not None})
    arms: dict[tuple[str, bool], dict[int | None, str]] = {}
    for key, value in values.items():
        arms.setdefault((key.arm, key.budget is None), {})[key.budget] = value
    rows = []
    for (arm, spans), found in arms.items():
        wanted: list[int | None] = [None] if spans else [*budgets]
        rows.append(MatrixRow(arm, tuple(found.get(budget, "") for budget in wanted), spans))
    return Matrix(title, population, tuple(map(budget_label, budgets)), tuple(rows))


def _by_place(cells: Mapping[CellKey, T]) -> dict[tuple[str, str | None], dict[CellKey, T]]:
    found: dict[tuple[str, str | None], dict[CellKey, T]] = {}
    for key, cell in cells.items():
        found.setdefault((key.benchmark, key.reader), {})[key] = cell
    return found


def _whole(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:,.0f}"


def _usd(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.5f}"
