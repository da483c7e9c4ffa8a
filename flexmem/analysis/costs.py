"""What cells cost, by role, with the denominator said (docs/methods.md E.8).

Tokens are those of the replies that a result stands on, whether they were paid in this run or an earlier one; what was
really sent is in the table ``calls``. A figure that rests on an unknown part is None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from flexmem.analysis.columns import EpisodeColumns
from flexmem.analysis.frames import Frame, Numbers, Run
from flexmem.analysis.judged import is_judged
from flexmem.analysis.manifest import CellKey


@dataclass(frozen=True)
class Costs:
    """One cell. Token figures are input + output.

    ``read_tokens``: the reader's, mean per question. ``build_tokens``: the memory model's, mean per build: writing it,
    and what reading made it write. ``ask_tokens``: the memory model's for calls that each question makes anew, mean per
    question. ``served``: questions of this cell that a build served, mean. ``tokens``: per question, reader and memory
    together, a build's tokens shared by the questions of this cell that it served; ``tokens_alone``: the same if each
    build had served one question. ``usd`` and ``usd_alone`` likewise. ``judge_tokens`` and ``judge_usd``: of all
    judges, mean per question; they are in no other figure.
    """

    key: CellKey
    questions: int
    builds: int
    read_tokens: float | None
    build_tokens: float | None
    ask_tokens: float | None
    served: float
    tokens: float | None
    tokens_alone: float | None
    usd: float | None
    usd_alone: float | None
    judge_tokens: float | None
    judge_usd: float | None


@dataclass(frozen=True)
class Spent:
    """What a run has sent for one role: attempts, those without a reply, calls of unknown outcome, tokens and USD as
    far as they are known.
    """

    role: str
    attempts: int
    failed: int
    unknown: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    usd: float | None


def costs(run: Run) -> list[Costs]:
    """The cost of every cell in which a model was called.

    Raises:
        RunError: a table can't be read.
    """
    episodes = run.episodes
    if not len(episodes):
        return []
    asking = {name for name, arm in run.manifest.arms.items() if arm.asks_per_call}
    built_tokens, built_usd = _builds(run, asking)
    judge_tokens, judge_usd = _judges(run, episodes)
    reads = episodes.numbers("reader_input_tokens") + episodes.numbers("reader_output_tokens")
    usd = episodes.numbers("usd")
    asks = episodes.numbers("memory_input_tokens") + episodes.numbers("memory_output_tokens")
    ask_usd = episodes.numbers("memory_usd")
    builds = episodes.labels("build")
    tokens_of = np.array([built_tokens.get(name, 0.0) for name in builds.names])
    usd_of = np.array([built_usd.get(name, 0.0) for name in builds.names])
    found = []
    for key, at in EpisodeColumns(episodes).by_cell.items():
        used = np.unique(builds.codes[at])
        used = used[used >= 0]
        reader = np.zeros(at.size) if key.reader is None else reads[at]
        reader_usd = np.zeros(at.size) if key.reader is None else usd[at]
        written, written_usd = (of[used].sum() if used.size else 0.0 for of in (tokens_of, usd_of))
        asked, asked_usd = (of[at] if key.arm in asking else np.zeros(at.size) for of in (asks, ask_usd))
        if key.reader is None and not written and not asked.any():
            continue
        served = at.size / max(1, used.size)
        per_build = written / max(1, used.size)
        found.append(
            Costs(
                key,
                at.size,
                used.size,
                None if key.reader is None else _known(reader.mean()),
                _known(per_build),
                _known(asked.mean()),
                served,
                _known((reader + asked).mean() + written / at.size),
                _known((reader + asked).mean() + per_build),
                _known((reader_usd + asked_usd).mean() + written_usd / at.size),
                _known((reader_usd + asked_usd).mean() + written_usd / max(1, used.size)),
                _known(judge_tokens[at].mean()),
                _known(judge_usd[at].mean()),
            )
        )
    return found


def spent(run: Run) -> list[Spent]:
    """What the run has really sent, by role, from its ledger.

    Raises:
        RunError: a table can't be read.
    """
    calls = run.frame("calls").table
    found = []
    for role in sorted(set(calls["role"].to_pylist())):
        rows = calls.filter(pc.equal(calls["role"], role))
        replied = rows.filter(pc.equal(rows["outcome"], "reply"))
        unknown = pc.sum(pc.equal(rows["outcome"], "unknown")).as_py() or 0
        sent = int(pc.sum(pc.is_valid(rows["attempt"])).as_py() or 0)
        tokens = {name: int(pc.sum(rows[f"{name}_tokens"]).as_py() or 0) for name in ("input", "output", "cached")}
        usd = None if replied["usd"].null_count else float(pc.sum(rows["usd"]).as_py() or 0.0)
        failed = sent - replied.num_rows
        found.append(Spent(role, sent, failed, int(unknown), tokens["input"], tokens["output"], tokens["cached"], usd))
    return found


def _builds(run: Run, asking: Collection[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Tokens and USD of each build: what writing it took, once, and all that reading added; the latter not for arms
    whose every question asks anew.
    """
    tokens: dict[str, float] = defaultdict(float)
    usd: dict[str, float] = defaultdict(float)
    seen: set[str] = set()
    frame = run.builds
    wrote = frame.numbers("memory_input_tokens") + frame.numbers("memory_output_tokens")
    cost = frame.numbers("usd")
    calls = frame.numbers("memory_calls")
    names, phases = frame.table["build"].to_pylist(), frame.table["phase"].to_pylist()
    arms = frame.table["arm"].to_pylist()
    for row in np.argsort(frame.times("finished_at"), kind="stable"):
        name, phase = names[row], phases[row] or "written"
        if phase == "read" and arms[row] in asking:
            continue
        if phase == "written" and name in seen:  # a kill came before it was kept, and it was written again
            continue
        if phase == "written":
            seen.add(name)
        if calls[row]:
            tokens[name] += float(wrote[row])
            usd[name] += float(cost[row])
    return tokens, usd


def _judges(run: Run, episodes: Frame) -> tuple[Numbers, Numbers]:
    """(n) tokens and USD of all judgements of each episode; NaN where one is not judged yet, or its cost is unknown."""
    judgements = run.judgements
    sums = [np.zeros(len(episodes)), np.zeros(len(episodes))]
    words = np.zeros(len(episodes), dtype=np.int64)
    if len(judgements):
        places = pc.index_in(judgements.table["episode"], value_set=episodes.table["episode"].combine_chunks())
        rows = np.asarray(pc.fill_null(places, -1).to_numpy(), dtype=np.int64)
        tokens = judgements.numbers("input_tokens") + judgements.numbers("output_tokens")
        for total, values in zip(sums, (tokens, judgements.numbers("usd")), strict=True):
            np.add.at(total, rows[rows >= 0], values[rows >= 0])
        np.add.at(words, rows[rows >= 0], 1)
    replied = np.asarray(pc.fill_null(pc.equal(episodes.table["outcome"], "ok"), False).to_numpy(), dtype=np.bool_)
    judged = is_judged(episodes, run.manifest)
    missing = judged & replied & (words < len(run.manifest.judges))
    tokens, usd = (np.where(missing, np.nan, np.where(judged, total, 0.0)) for total in sums)
    return tokens, usd


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
