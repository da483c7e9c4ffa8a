"""A run's figures for machines: one flat object a cell, and one for each of its question types."""

from __future__ import annotations

from typing import Any

from flexmem.analysis.cells import Cell, cells
from flexmem.analysis.frames import Run
from flexmem.analysis.intervals import Estimate

COLUMNS = (
    "benchmark",
    "question_type",
    "arm",
    "budget",
    "reader",
    "repeats",
    "n",
    "metric",
    "score",
    "score_low",
    "score_high",
    "n_evidence",
    "evidence_all",
    "evidence_turns",
    "answer_recall",
    "utilisation",
    "tokens",
    "usd",
    "render_ms",
)
"""Keys of `report_rows`, a published contract."""


def report_rows(run: Run) -> list[dict[str, Any]]:
    """``report RUN --json``: cells in the plan's order, each followed by its question types. Keys are `COLUMNS`.

    None is unknown, withheld or not applicable; ``question_type`` None stands for all questions. ``n`` counts the
    episodes that are there, over all repeats, and ``n_evidence`` those of the verbatim-evidence score's population.
    ``score`` is None in an incomplete cell, ``score_low`` and ``score_high`` are the ends of its 95 % interval. Scores
    and shares are in [0, 1]. ``tokens`` (memory tokens shown) and ``usd`` are means per episode, ``render_ms`` is the
    median time of a rendering.

    Raises:
        RunError: a table can't be read.
    """
    return [_row(cell) for cell in cells(run)]


def _row(cell: Cell) -> dict[str, Any]:
    return {
        "benchmark": cell.key.benchmark,
        "question_type": cell.question_type,
        "arm": cell.key.arm,
        "budget": cell.key.budget,
        "reader": cell.key.reader,
        "repeats": cell.repeats,
        "n": cell.present,
        "metric": cell.metric,
        "score": _value(cell.score),
        "score_low": cell.score.low if cell.score else None,
        "score_high": cell.score.high if cell.score else None,
        "n_evidence": cell.n_evidence,
        "evidence_all": _value(cell.evidence_all),
        "evidence_turns": _value(cell.evidence_turns),
        "answer_recall": _value(cell.answer_recall),
        "utilisation": cell.utilisation,
        "tokens": cell.tokens,
        "usd": cell.usd,
        "render_ms": cell.render_ms,
    }


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value
