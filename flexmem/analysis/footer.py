"""What a report must say beside its figures: what they are not, what is missing, what failed, notes on the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow.compute as pc

from flexmem.analysis.attempts import open_failures
from flexmem.analysis.cells import Cell
from flexmem.analysis.frames import Run
from flexmem.analysis.intervals import BOOTSTRAP_FROM, RESAMPLES
from flexmem.analysis.matrices import INCOMPLETE, NOT_APPLICABLE
from flexmem.analysis.wording import budget_label, count

_MOST_LINES = 12


def footer(run: Run, cells: Iterable[Cell]) -> Iterator[str]:
    """Sentences below the tables, in plain text; ``cells`` are those of ``run``.

    Raises:
        RunError: a table can't be read.
    """
    whole = [cell for cell in cells if cell.question_type is None]
    yield (
        "The verbatim-evidence score is neither an accuracy nor a bound of a reader's: text that a method has "
        "rewritten may hold the answer without holding the turn (docs/methods.md E.6b)."
    )
    if any(cell.rewrites_text for cell in whole):
        yield f"{NOT_APPLICABLE}: the arm shows rewritten text; compare answer recall instead."
    yield from _intervals(whole)
    yield from _incomplete(whole)
    yield from _failed(whole)
    yield from _fallbacks(run)
    yield from _unreadable(run)
    elsewhere = open_failures(run, [cell.key for cell in whole]).elsewhere
    if elsewhere:
        yield f"Failed episodes that can't be told to a single cell, still to be run: {_classes(elsewhere)}."
    if run.episodes.duplicates:
        yield f"{count(run.episodes.duplicates, 'row')} written twice: each episode is counted once."
    yield from (" ".join(note.split()) for note in run.manifest.notes)


def _fallbacks(run: Run) -> Iterator[str]:
    """How often builds did other than asked (a rule in a memory model's place, for one), by arm."""
    times: Counter[tuple[str, str]] = Counter()
    for row in run.frame("builds", extra=("fallbacks",)).table.select(["arm", "fallbacks"]).to_pylist():
        for fallback in row["fallbacks"] or ():
            times[row["arm"], fallback["reason"]] += fallback["times"]
    for (arm, reason), number in sorted(times.items()):
        yield f"{arm}: {reason}, {number:,} times."


def _unreadable(run: Run) -> Iterator[str]:
    """How many words of each judge were neither yes nor no, or a refusal."""
    table = run.judgements.table
    said: Counter[str] = Counter(table["judge"].to_pylist())
    odd: Counter[str] = Counter(table.filter(pc.is_valid(table["error_class"]))["judge"].to_pylist())
    for judge, number in sorted(odd.items()):
        words = count(said[judge], "judgement")
        yield (
            f"Judge {judge}: {number:,} of {words} say neither yes nor no. That counts as no; a refusal leaves the "
            "reply without a score."
        )


def _intervals(cells: Sequence[Cell]) -> Iterator[str]:
    clusters = {
        estimate.clusters
        for cell in cells
        for estimate in (cell.score, cell.verbatim_evidence, cell.evidence_turns, cell.answer_recall)
        if estimate is not None
    }
    if any(2 <= number < BOOTSTRAP_FROM for number in clusters):
        yield (
            "In brackets: 95 % intervals of the mean over questions, Student t over conversations, whose questions are "
            "not independent (docs/methods.md E.4)."
        )
    if any(number >= BOOTSTRAP_FROM for number in clusters):
        yield (
            "In brackets: 95 % intervals of the mean over questions, percentiles of "
            f"{RESAMPLES:,} bootstrap resamples of conversations (docs/methods.md E.4)."
        )
    if 1 in clusters:
        yield "Where there is one conversation there is no interval."


def _incomplete(cells: Sequence[Cell]) -> Iterator[str]:
    incomplete = [cell for cell in cells if not cell.complete]
    if not incomplete:
        return
    yield (
        f"{INCOMPLETE} Withheld, for the reasons below: no score until all planned episodes are there, and none over "
        "several metrics. Two figures are the score if all that is missing got 0, and if it got 1. Times and "
        "utilisation are of what is there."
    )
    several = _several(cells)
    yield from _at_most(
        f"{INCOMPLETE} {_name(cell, several)}: {'; '.join(cell.problems)}{_of(cell.failures)}." for cell in incomplete
    )


def _failed(cells: Sequence[Cell]) -> Iterator[str]:
    several = _several(cells)
    yield from _at_most(
        f"Failed and counted as 0: {_name(cell, several)}: {_classes(cell.failures)}."
        for cell in cells
        if cell.complete and cell.failures
    )
    yield from _at_most(
        f"Over budget: {_name(cell, several)}: {count(cell.violations, 'rendering')}."
        for cell in cells
        if cell.violations
    )


def _of(failures: Mapping[str, int]) -> str:
    return f"; failed: {_classes(failures)}" if failures else ""


def _classes(failures: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in sorted(failures.items()))


def _several(cells: Sequence[Cell]) -> bool:
    return len(Counter((cell.key.benchmark, cell.key.reader) for cell in cells)) > 1


def _name(cell: Cell, several: bool) -> str:
    name = cell.key.arm if cell.key.budget is None else f"{cell.key.arm} at {budget_label(cell.key.budget)}"
    if several:
        name += f" ({cell.key.benchmark}, {cell.key.reader or 'no reader'})"
    return name


def _at_most(lines: Iterable[str]) -> list[str]:
    found = list(lines)
    if len(found) <= _MOST_LINES:
        return found
    return [*found[:_MOST_LINES], f"… and so for {len(found) - _MOST_LINES:,} more cells."]
