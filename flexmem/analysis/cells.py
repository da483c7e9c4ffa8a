"""What a run says of each cell: benchmark, arm, budget and reader, repeats averaged (docs/methods.md E.4, E.6, E.6b).

An outcome that failed scores 0 and stays in the denominator. A cell that is not complete has no scores; what its
headline may still become is given as worst and best case. Costs are means over the episodes that are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from flexmem.analysis.attempts import open_failures
from flexmem.analysis.columns import EpisodeColumns, populations
from flexmem.analysis.coverage import VERBATIM_EVIDENCE, Coverage
from flexmem.analysis.frames import Codes, Numbers, Run
from flexmem.analysis.intervals import Estimate, estimate
from flexmem.analysis.manifest import CellKey

__all__ = ["VERBATIM_EVIDENCE", "Cell", "CellKey", "cells"]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell, or one question type of it.

    Scores are in [0, 1], with 95 % intervals (`intervals`). They are None where they are withheld, don't apply, or
    have no population. Counts are of episodes, over all repeats, unless their name says questions.
    """

    key: CellKey
    question_type: str | None
    """None: all of the cell."""
    repeats: int
    planned: int | None
    """None: outside the plan, or a question type whose share of the plan the run doesn't show."""
    present: int
    questions: int
    conversations: int
    problems: tuple[str, ...]
    """Why scores of the cell are withheld, all of them or just the headline; a question type has those of its cell."""

    metric: str | None
    """Headline metric: the reader's, or `VERBATIM_EVIDENCE` without a reader."""
    score: Estimate | None
    worst: float | None
    best: float | None
    """The score if all that is missing got 0, and 1; None where that can't be told."""

    rewrites_text: bool
    """Evidence visibility doesn't apply (docs/methods.md E.6b)."""
    n_evidence: int
    """Population of the verbatim-evidence score."""
    evidence_questions: int
    evidence_turns_total: int | None
    """Evidence turns of these questions."""
    verbatim_evidence: Estimate | None
    evidence_all: Estimate | None
    """Share of questions with all their turns visible verbatim, from the counts of turns."""
    evidence_any: Estimate | None
    evidence_turns: Estimate | None
    """Share of all evidence turns together."""
    evidence_mean_share: Estimate | None
    """Mean of the questions' shares."""
    extractive_questions: int
    answer_recall: Estimate | None

    utilisation: float | None
    """Mean of memory tokens / room."""
    tokens: float | None
    """Mean memory tokens shown in an episode."""
    usd: float | None
    """Mean cost of an episode; None as soon as one is unknown."""
    render_ms: float | None
    """Median time of a rendering."""
    render_ms_mean: float | None
    failures: Mapping[str, int]
    """Failed episodes by class. Those of infrastructure and configuration are still to be run; the table of failures
    has no question types, so only a whole cell shows them.
    """
    violations: int
    """Episodes whose rendering was over budget."""

    @property
    def complete(self) -> bool:
        return not self.problems


def cells(run: Run) -> list[Cell]:
    """All cells in the plan's order, each followed by its question types; cells outside the plan come last.

    Raises:
        RunError: a table can't be read.
    """
    columns = EpisodeColumns(run.episodes)
    known = populations(columns)
    plan = {planned.key: planned for planned in run.manifest.planned}
    outside = sorted(set(columns.by_cell) - set(plan), key=lambda key: [(part is not None, part) for part in key])
    still_open = open_failures(run, [*plan, *outside]).by_cell
    found: list[Cell] = []
    for key, failures in still_open.items():
        arm = run.manifest.arms.get(key.arm)
        rewrites = arm is None or arm.rewrites_text
        applies = key.reader is not None or not rewrites
        coverage = Coverage(columns, key, plan.get(key), known.get(key.benchmark), applies)
        at = columns.by_cell.get(key, np.empty(0, dtype=np.int64))
        maker = _Maker(columns, coverage, rewrites, coverage.gaps(at), coverage.unscored(at))
        found.extend(_cell_and_types(maker, at, failures))
    return found


def _cell_and_types(maker: _Maker, at: Codes, failures: Counter[str]) -> Iterator[Cell]:
    yield maker.make(at, None, failures)
    for name, part in maker.columns.by_type(at).items():
        yield maker.make(part, name, Counter())


@dataclass(frozen=True)
class _Maker:
    """Makes one cell's `Cell`s: the whole, and each question type, under the whole's ``gaps`` and ``unscored``."""

    columns: EpisodeColumns
    coverage: Coverage
    rewrites_text: bool
    gaps: tuple[str, ...]
    unscored: tuple[str, ...]

    def make(self, at: Codes, question_type: str | None, still_open: Counter[str]) -> Cell:
        """The cell, or its question type, over the episodes at ``at`` (positions); ``still_open`` are failed attempts
        that no later one made good, by class.
        """
        columns, planned = self.columns, self.coverage.planned
        metrics = self.coverage.metrics(at)
        worst, best = self.coverage.bounds(at, question_type) or (None, None)
        population, extractive = at[columns.scored_by_evidence[at]], at[columns.extractive[at]]
        _, first = np.unique(columns.question[population], return_index=True)
        turns = columns.n_evidence[population[first]].sum()
        # Withheld scores are taken over no episodes at all, so that none slips through.
        nothing = at[:0]
        evident = nothing if self.gaps or self.rewrites_text else population
        verbatim = self._mean(columns.verbatim_evidence, evident)
        score = (
            verbatim if self.coverage.key.reader is None else self._mean(columns.score, nothing if self.gaps else at)
        )
        return Cell(
            key=self.coverage.key,
            question_type=question_type,
            repeats=planned.repeats if planned else np.unique(columns.repeat[at]).size,
            planned=self.coverage.planned_of(at, question_type),
            present=at.size,
            questions=np.unique(columns.question[at]).size,
            conversations=np.unique(columns.instance[at]).size,
            problems=(*self.gaps, *self.unscored),
            metric=metrics[0] if len(metrics) == 1 else None,
            score=None if self.unscored else score,
            worst=worst,
            best=best,
            rewrites_text=self.rewrites_text,
            n_evidence=population.size,
            evidence_questions=first.size,
            evidence_turns_total=None if np.isnan(turns) else int(turns),
            verbatim_evidence=verbatim,
            evidence_all=self._mean(columns.evidence_all, evident),
            evidence_any=self._mean(columns.evidence_any, evident),
            evidence_turns=self._mean(columns.evidence_visible, evident, columns.n_evidence),
            evidence_mean_share=self._mean(columns.evidence_share, evident),
            extractive_questions=np.unique(columns.question[extractive]).size,
            answer_recall=self._mean(columns.answer_recall, nothing if self.gaps else extractive),
            utilisation=_known_mean(columns.utilisation[at]),
            tokens=_known_mean(columns.memory_tokens[at]),
            usd=None if np.isnan(columns.usd[at]).any() else _known_mean(columns.usd[at]),
            render_ms=_known_median(columns.render_ms[at]),
            render_ms_mean=_known_mean(columns.render_ms[at]),
            failures=dict(sorted((self._failures(at) + still_open).items())),
            violations=int(columns.violations[at].sum()),
        )

    def _mean(self, values: Numbers, at: Codes, weights: Numbers | None = None) -> Estimate | None:
        """None as soon as one value is unknown: a mean over the rest would be of another population."""
        denominators = np.ones(at.size) if weights is None else weights[at]
        if np.isnan(values[at]).any() or np.isnan(denominators).any():
            return None
        return estimate(values[at], self.columns.question[at], self.columns.instance[at], denominators)

    def _failures(self, at: Codes) -> Counter[str]:
        labels = self.columns.error_class
        return Counter(labels.name(row) or "unknown" for row in at[self.columns.failed[at]])


def _known_mean(values: Numbers) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def _known_median(values: Numbers) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else None
