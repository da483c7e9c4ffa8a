"""Whether a cell is complete, and what its score may still become."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexmem.analysis.columns import EpisodeColumns, Population
from flexmem.analysis.frames import Codes, Flags, Numbers
from flexmem.analysis.manifest import CellKey, PlannedCell
from flexmem.analysis.wording import count

VERBATIM_EVIDENCE = "verbatim_evidence"
"""The headline metric of cells without a reader."""


@dataclass(frozen=True)
class Coverage:
    """One cell against its plan. ``planned`` is None for a cell outside the plan; ``known`` holds the benchmark's
    questions as far as the run's episodes show them; ``applies`` is False where the headline metric doesn't apply.
    """

    columns: EpisodeColumns
    key: CellKey
    planned: PlannedCell | None
    known: Population | None
    applies: bool

    def metrics(self, at: Codes) -> list[str]:
        """The headline metrics that the episodes ``at`` name, or stand for; one, unless something is wrong."""
        if self.key.reader is None:
            return [VERBATIM_EVIDENCE]
        _, first = np.unique(self.columns.metric.codes[at], return_index=True)
        return sorted(name for row in at[first] if (name := self.columns.metric.name(row)) is not None)

    def gaps(self, at: Codes) -> tuple[str, ...]:
        """In what the cell's episodes ``at`` differ from the plan: why all its scores are withheld."""
        if self.planned is None:
            return (f"{count(at.size, 'episode')} outside the plan",)
        found = []
        if at.size < self.planned.n:
            found.append(f"{at.size:,} of {count(self.planned.n, 'episode')}")
        elif at.size > self.planned.n:
            found.append(f"{count(at.size, 'episode')}, {self.planned.n:,} planned")
        if again := self._asked_again(at):
            found.append(f"{count(again, 'episode')} more than questions in a repeat: configurations are mixed")
        return tuple(found)

    def unscored(self, at: Codes) -> tuple[str, ...]:
        """Why the headline score of the episodes ``at`` is withheld though they are all there."""
        found = []
        if len(metrics := self.metrics(at)) > 1:
            found.append(f"scores of several metrics: {', '.join(metrics)}")
        values, counted = self._headline(at)
        if self.applies and (unscored := int(np.isnan(values[counted]).sum())):
            found.append(f"{count(unscored, 'finished episode')} without a score")
        return tuple(found)

    def planned_of(self, at: Codes, question_type: str | None) -> int | None:
        """Planned episodes of a question type; None where neither this cell nor the run shows all questions."""
        if self.planned is None:
            return None
        if question_type is None:
            return self.planned.n
        if (known := self._all_questions()) is None:
            return None
        return int(known.of_type(question_type).sum()) * self.planned.repeats

    def bounds(self, at: Codes, question_type: str | None) -> tuple[float, float] | None:
        """The score if every episode that is missing or has no score got 0, and if it got 1."""
        planned = self.planned_of(at, question_type)
        if not self.applies or planned is None or at.size > planned or self._asked_again(at):
            return None
        values, counted = self._headline(at)
        missing = planned - at.size
        known = self._all_questions()
        if self.key.reader is None and known is not None and self.planned is not None:
            # Not every missing episode is of the score's population, and other cells tell which questions are.
            population = int((known.of_type(question_type) & known.scored_by_evidence).sum()) * self.planned.repeats
            missing = max(0, population - int(counted.sum()))
        total = int(counted.sum()) + missing
        if not total:
            return None
        sure = float(np.nansum(values[counted]))
        return sure / total, (sure + missing + int(np.isnan(values[counted]).sum())) / total

    def _headline(self, at: Codes) -> tuple[Numbers, Flags]:
        """Scores of the episodes, and which of them count."""
        if self.key.reader is None:
            return self.columns.verbatim_evidence[at], self.columns.scored_by_evidence[at]
        return self.columns.score[at], np.ones(at.size, dtype=np.bool_)

    def _asked_again(self, at: Codes) -> int:
        """An episode's fingerprint differs where an arm's options do, so one folder can hold two of them."""
        asked = np.column_stack([self.columns.question[at], self.columns.repeat[at]])
        return int(at.size) - len(np.unique(asked, axis=0))

    def _all_questions(self) -> Population | None:
        """The benchmark's questions, if the run's cells together show every planned one."""
        if self.planned is None or self.known is None:
            return None
        return self.known if len(self.known) * self.planned.repeats == self.planned.n else None
