"""The episodes of a run as arrays: what cells are computed from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flexmem.analysis.frames import Codes, Flags, Frame, Labels, Numbers
from flexmem.analysis.manifest import CellKey


class EpisodeColumns:
    """Arrays over n episodes. An unknown number is NaN; a failure that shows nothing scores 0 (docs/methods.md E.4,
    E.6b).
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self.benchmark = frame.labels("benchmark")
        self.instance = _joint(self.benchmark.codes, frame.labels("instance").codes)
        self.question = _joint(self.instance, frame.labels("question").codes)
        self.question_type = frame.labels("question_type")
        self.repeat = frame.numbers("repeat")
        self.error_class = frame.labels("error_class")
        self.failed = _equal(frame.labels("outcome"), "failed")
        self.metric = frame.labels("metric")
        self.score = np.where(self.failed, 0.0, frame.numbers("score"))
        self.scored_by_evidence = frame.flags("scored_by_evidence")
        self.verbatim_evidence = self._shown("verbatim_evidence")
        self.n_evidence = frame.numbers("n_evidence")
        self.evidence_visible = self._shown("evidence_visible")
        self.evidence_share = np.divide(
            self.evidence_visible, self.n_evidence, out=np.full(len(frame), np.nan), where=self.n_evidence > 0
        )
        known = ~np.isnan(self.evidence_share)
        self.evidence_all = np.where(known, self.evidence_visible == self.n_evidence, np.nan)
        self.evidence_any = np.where(known, self.evidence_visible > 0, np.nan)
        self.extractive, unknown = self._extractive()
        self.answer_recall = np.where(unknown, np.nan, self._shown("answer_recall"))
        self.utilisation = frame.numbers("utilisation")
        self.memory_tokens = frame.numbers("memory_tokens")
        self.violations = frame.numbers("violation_tokens") > 0
        self.usd = frame.numbers("usd")
        self.render_ms = frame.numbers("render_ms")

    def _shown(self, name: str) -> Numbers:
        """A measure of what the memory showed: nothing where the method failed. Where only a reader failed, it
        stands.
        """
        values = self._frame.numbers(name)
        broken = self.failed & _equal(self.error_class, "method")
        return np.where(broken | (self.failed & np.isnan(values)), 0.0, values)

    def _extractive(self) -> tuple[Flags, Flags]:
        """Which episodes are of answer recall's population, and of which of them that can't be told.

        Whether an answer is extractive depends on the question alone, so an episode that failed before it was looked up
        takes the flag of the question's others: leaving it out would make the denominator shrink.
        """
        flags = self._frame.numbers("extractive")
        missing = np.isnan(flags) & self.failed
        yes = np.bincount(self.question, flags == 1) > 0
        told = np.bincount(self.question, ~np.isnan(flags)) > 0
        unknown = missing & ~told[self.question]
        return np.where(missing, yes[self.question], flags == 1) | unknown, unknown

    @cached_property
    def by_cell(self) -> dict[CellKey, Codes]:
        """The positions of each cell's episodes, in the table's order."""
        arm, reader = self._frame.labels("arm"), self._frame.labels("reader")
        budgets, budget = np.unique(self._frame.numbers("budget"), return_inverse=True)
        keys = {}
        for positions in _groups(_joint(_joint(_joint(self.benchmark.codes, arm.codes), budget), reader.codes)):
            first = positions[0]
            tokens = float(budgets[budget[first]])
            key = CellKey(
                self.benchmark.name(first) or "",
                arm.name(first) or "",
                None if np.isnan(tokens) else int(tokens),
                reader.name(first),
            )
            keys[key] = positions
        return keys

    def by_type(self, positions: Codes) -> dict[str, Codes]:
        """``positions`` by question type, types in alphabetical order; questions without a type are left out."""
        parts = (positions[group] for group in _groups(self.question_type.codes[positions]))
        named = ((self.question_type.name(part[0]), part) for part in parts)
        return dict(sorted((name, part) for name, part in named if name is not None))


@dataclass(frozen=True)
class Population:
    """The distinct questions of one benchmark that a run's episodes show, over all cells: (q) types, (q) flags."""

    types: Labels
    scored_by_evidence: Flags

    def __len__(self) -> int:
        return self.types.codes.size

    def of_type(self, question_type: str | None) -> Flags:
        """(q) flags of the questions of a type; of all for None."""
        if question_type is None:
            return np.ones(len(self), dtype=np.bool_)
        return _equal(self.types, question_type)


def populations(columns: EpisodeColumns) -> dict[str, Population]:
    """The questions of each benchmark: what an incomplete cell lacks can be told from the others."""
    _, first = np.unique(columns.question, return_index=True)
    found = {}
    for code, name in enumerate(columns.benchmark.names):
        at = first[columns.benchmark.codes[first] == code]
        types = Labels(columns.question_type.codes[at], columns.question_type.names)
        found[name] = Population(types, columns.scored_by_evidence[at])
    return found


def _joint(left: Codes, right: Codes) -> Codes:
    """One code for each pair of codes, null (-1) included."""
    if not left.size:
        return left
    _, codes = np.unique((left + 1) * (int(right.max()) + 2) + right + 1, return_inverse=True)
    return np.asarray(codes, dtype=np.int64)


def _groups(codes: Codes) -> Iterator[Codes]:
    """Positions of equal codes."""
    if codes.size:
        order = np.argsort(codes, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _equal(labels: Labels, name: str) -> Flags:
    if name not in labels.names:
        return np.zeros(labels.codes.size, dtype=np.bool_)
    return np.asarray(labels.codes == labels.names.index(name), dtype=np.bool_)
