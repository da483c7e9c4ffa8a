"""Judges' words on replies: as the score of what they judge, and side by side (docs/methods.md E.2, E.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexmem.analysis.frames import Flags, Frame, Numbers, Run
from flexmem.analysis.manifest import CellKey, Manifest


def judged_metric(judge: str) -> str:
    """What the score of a judge is called."""
    return f"judge {judge}"


def with_judged_scores(episodes: Frame, judgements: Frame, manifest: Manifest, judge: str) -> Frame:
    """Episodes whose score is a judge's word, where their benchmark leaves the score to judges; others as they are.

    An episode that failed keeps its 0; one that is not judged yet has no score.
    """
    judged = is_judged(episodes, manifest)
    if not judged.any():
        return episodes
    table = episodes.table
    failed = pc.fill_null(pc.equal(table["outcome"], "failed"), False)
    scores = pc.if_else(failed, table["score"], labels_of(episodes, judgements, judge))
    table = _replace(table, "score", pc.if_else(pa.array(judged), scores, table["score"]))
    name = pa.scalar(judged_metric(judge))
    return Frame(_replace(table, "metric", pc.if_else(pa.array(judged), name, table["metric"])), episodes.duplicates)


def is_judged(episodes: Frame, manifest: Manifest) -> Flags:
    """(n) which episodes' scores are for judges to give."""
    table = episodes.table
    here = np.zeros(len(episodes), dtype=np.bool_)
    if not manifest.judges:
        return here
    for benchmark, types in manifest.judged.items():
        of_benchmark = pc.equal(table["benchmark"], benchmark)
        of_type = pc.is_in(table["question_type"], value_set=pa.array(types, pa.string()))
        here |= np.asarray(pc.fill_null(pc.and_(of_benchmark, of_type), False).to_numpy(), dtype=np.bool_)
    return here & np.asarray(pc.is_valid(table["reader"]).to_numpy(), dtype=np.bool_)


def labels_of(episodes: Frame, judgements: Frame, judge: str) -> pa.ChunkedArray:
    """(n) a judge's word on each episode, null where there is none."""
    own = judgements.table.filter(pc.equal(judgements.table["judge"], judge))
    place = pc.index_in(episodes.table["episode"], value_set=own["episode"].combine_chunks())
    return own["label"].combine_chunks().take(place.combine_chunks())


def _replace(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


@dataclass(frozen=True)
class JudgeScore:
    """A cell's score by one judge: the mean over its ``n`` judged replies and failures; None where some are missing."""

    key: CellKey
    judge: str
    score: float | None
    n: int
    missing: int


@dataclass(frozen=True)
class Agreement:
    """Two judges on the ``n`` replies that both have judged: raw agreement, Cohen's kappa (None where chance alone
    would agree), and the share of comparisons between two arms whose sign is the same by both (None without one).
    """

    first: str
    second: str
    n: int
    raw: float | None
    kappa: float | None
    comparisons: int
    same_sign: float | None


def judge_scores(run: Run) -> list[JudgeScore]:
    """Every cell's score by every judge.

    Raises:
        RunError: a table can't be read.
    """
    episodes, judgements = run.episodes, run.judgements
    judged = is_judged(episodes, run.manifest)
    failed = np.asarray(pc.fill_null(pc.equal(episodes.table["outcome"], "failed"), False).to_numpy(), dtype=np.bool_)
    found = []
    for judge in run.manifest.judges:
        words = np.where(failed, 0.0, _numbers(labels_of(episodes, judgements, judge)))
        for key, at in _cells(episodes, run.manifest):
            here = at & judged
            if not here.any():
                continue
            missing = int(np.isnan(words[here]).sum())
            score = None if missing else float(words[here].mean())
            found.append(JudgeScore(key, judge, score, int(here.sum()), missing))
    return found


def agreements(run: Run) -> list[Agreement]:
    """Every two judges of a run on the replies that both have judged.

    Raises:
        RunError: a table can't be read.
    """
    episodes, judgements = run.episodes, run.judgements
    scores = {(score.key, score.judge): score.score for score in judge_scores(run)}
    found = []
    for first, second in combinations(run.manifest.judges, 2):
        left, right = (_numbers(labels_of(episodes, judgements, judge)) for judge in (first, second))
        both = ~np.isnan(left) & ~np.isnan(right)
        signs = list(_signs(scores, first, second))
        found.append(
            Agreement(
                first,
                second,
                int(both.sum()),
                float((left[both] == right[both]).mean()) if both.any() else None,
                cohen_kappa(left[both], right[both]),
                len(signs),
                float(np.mean(signs)) if signs else None,
            )
        )
    return found


def cohen_kappa(left: Numbers, right: Numbers) -> float | None:
    """Cohen's kappa of two raters' labels of n items; None for n = 0, or where both always say the same one thing."""
    if not left.size:
        return None
    values = np.unique(np.concatenate([left, right]))
    chance = sum(float((left == value).mean()) * float((right == value).mean()) for value in values)
    return None if chance == 1 else (float((left == right).mean()) - chance) / (1 - chance)


def _signs(scores: dict[tuple[CellKey, str], float | None], first: str, second: str) -> Iterator[bool]:
    """For each two arms of a benchmark, budget and reader, whether both judges put the same one ahead."""
    keys = sorted({key for key, _ in scores}, key=repr)
    for one, other in combinations(keys, 2):
        if (one.benchmark, one.budget, one.reader) != (other.benchmark, other.budget, other.reader):
            continue
        values = [scores.get((key, judge)) for judge in (first, second) for key in (one, other)]
        if None in values:
            continue
        a, b, c, d = (float(value or 0.0) for value in values)
        yield bool(np.sign(a - b) == np.sign(c - d))


def _cells(episodes: Frame, manifest: Manifest) -> Iterator[tuple[CellKey, Flags]]:
    table = episodes.table
    for cell in manifest.planned:
        here = pc.and_(pc.equal(table["benchmark"], cell.benchmark), pc.equal(table["arm"], cell.arm))
        for name, value in (("budget", cell.budget), ("reader", cell.reader)):
            column = table[name]
            here = pc.and_(here, pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False))
        yield cell.key, np.asarray(pc.fill_null(here, False).to_numpy(), dtype=np.bool_)


def _numbers(column: pa.Array) -> Numbers:
    return np.asarray(pc.fill_null(column, float("nan")).to_numpy(zero_copy_only=False), dtype=np.float64)
