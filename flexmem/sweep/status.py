"""Where a run stands, read from its folder alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flexmem.sweep.heartbeat import read_heartbeat
from flexmem.sweep.manifest import read_manifest
from flexmem.sweep.results import is_written, read_columns

ERRORS_SHOWN = 10
RATE_OVER_S = 60.0
_EPISODE = (
    "episode",
    "benchmark",
    "question_type",
    "arm",
    "budget",
    "outcome",
    "error_class",
    "error",
    "reader",
    "usd",
    "finished_at",
)
_JUDGEMENT = ["episode", "judge", "label", "finished_at"]
READER_TOKENS = ("reader_input_tokens", "reader_output_tokens")
MEMORY_TOKENS = ("memory_input_tokens", "memory_output_tokens")


def read_status(out: Path, now: datetime | None = None) -> dict[str, Any]:
    """Planned, done and failed episodes of a run, in all and by cell; failed attempts that no later one made good, by
    class; and the most frequent errors. A failed episode is done: it has its row and scores 0. ``complete``: all
    planned episodes are done, and all their replies are judged by all judges of the run.

    ``running``: some process writes into the folder, or its driver has just said so. ``rate``: episodes a second over
    the last minute of a run that goes on, ``eta_s`` the seconds to go at that rate. ``tokens``: the reader's and the
    memory model's, None where an endpoint does not say; ``usd``: what readers' calls cost, None where that is not known
    of all, or there are none.

    Of a run that goes on, ``heartbeat_s`` is the age in seconds of what its driver said last: ``in_flight`` (pieces of
    work by the stage that they wait for), ``workers``, ``recycled`` and ``stall``. All None where no run goes on, and
    all but ``heartbeat_s`` where the driver has been silent for long.

    ``judgements``: of the replies that are there and that judges score, how many are ``planned`` (each by each judge),
    ``done`` and ``failed`` (done, without a verdict: the judge refused), in all and ``by_judge``, the primary one
    first; ``running`` where the run is at that stage, ``rate`` and ``eta_s`` as above, in judgements. None where the
    run has no judges.

    Raises:
        RunFolderError: not a run folder, or of another schema version. TornPartError: a part can't be read.
    """
    manifest = read_manifest(out)
    now = now or datetime.now(UTC)
    tally = _Tally(now, manifest["judges"], manifest["judged"])
    for table in read_columns(out, "builds", [*MEMORY_TOKENS]):
        for row in table.to_pylist():
            tally.build(row)
    for table in read_columns(out, "episodes", [*_EPISODE, *READER_TOKENS]):
        for row in table.to_pylist():
            tally.episode(row)
    for table in read_columns(out, "failures", ["episode", "error_class", "error"]):
        for row in table.to_pylist():
            tally.failure(row)
    for table in read_columns(out, "judgements", _JUDGEMENT):
        for row in table.to_pylist():
            tally.judgement(row)
    cells = [tally.cell(planned) for planned in manifest["planned"]]
    planned, done = (sum(cell[key] for cell in cells) for key in ("planned", "done"))
    beat = read_heartbeat(out, now)
    # A writer that was killed holds no lock until it is up again; its driver lives on.
    running = is_written(out) or bool(beat and beat[1])
    rate = tally.recent / RATE_OVER_S if running else None
    age, said = (beat if running else None) or (None, {})
    judging = bool(said.get("judging"))
    judgements = _judgements(tally, running=judging)
    return {
        "run": str(out),
        "name": manifest["name"],
        "planned": planned,
        "done": done,
        "failed": sum(cell["failed"] for cell in cells),
        "complete": all(part["done"] >= part["planned"] for part in (*cells, *([judgements] if judgements else ()))),
        "running": running,
        "rate": rate,
        "eta_s": (planned - done) / rate if rate else None,
        "heartbeat_s": age,
        **{key: said.get(key) for key in ("in_flight", "workers", "recycled", "stall")},
        "tokens": tally.tokens,
        "usd": tally.usd,
        "judgements": judgements,
        "failures": dict(tally.failures),
        "errors": [
            {"class": error_class, "error": error, "times": times}
            for (error_class, error), times in tally.errors.most_common(ERRORS_SHOWN)
        ],
        "cells": cells,
    }


def _judgements(tally: _Tally, *, running: bool) -> dict[str, Any] | None:
    if not tally.judges:
        return None
    by_judge: list[dict[str, Any]] = [
        {"judge": judge, "planned": len(tally.to_judge), "done": len(done), "failed": tally.unjudged[judge]}
        for judge, done in tally.judges.items()
    ]
    planned, done, failed = (sum(one[key] for one in by_judge) for key in ("planned", "done", "failed"))
    rate = tally.recently_judged / RATE_OVER_S if running else None
    return {
        "planned": planned,
        "done": done,
        "failed": failed,
        "running": running,
        "rate": rate,
        "eta_s": (planned - done) / rate if rate else None,
        "by_judge": by_judge,
    }


class _Tally:
    """Counts of a run's rows, each episode once, and each judge's word on one once.

    Args:
        now: the present moment.
        judges: their labels.
        judged: the question types of a benchmark that they score.
    """

    def __init__(self, now: datetime, judges: Iterable[str], judged: Mapping[str, Iterable[str]]) -> None:
        self._now = now
        self._judged = {(benchmark, name) for benchmark, types in judged.items() for name in types}
        self.judges: dict[str, set[str]] = {judge: set() for judge in judges}
        """The episodes that each has judged."""
        self.to_judge: set[str] = set()
        self.unjudged: Counter[str] = Counter()
        self.recently_judged = 0
        self._seen: set[str] = set()
        self._done: Counter[tuple[Any, ...]] = Counter()
        self._failed: Counter[tuple[Any, ...]] = Counter()
        self.recent = 0
        self.tokens: dict[str, int | None] = dict.fromkeys((*READER_TOKENS, *MEMORY_TOKENS), 0)
        self._usd = 0.0
        self._unpriced = 0
        self._asked = 0
        self.failures: Counter[str] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()

    def episode(self, row: Mapping[str, Any]) -> None:
        """Count a finished episode."""
        if row["episode"] in self._seen:
            return
        self._seen.add(row["episode"])
        cell = (row["benchmark"], row["arm"], row["budget"])
        self._done[cell] += 1
        self.recent += self._is_recent(row["finished_at"])
        if row["reader"] is not None:
            for name in READER_TOKENS:
                self.tokens[name] = _sum(self.tokens[name], row[name])
            self._asked += 1
            self._unpriced += row["usd"] is None
            self._usd += row["usd"] or 0.0
            if row["outcome"] == "ok" and (row["benchmark"], row["question_type"]) in self._judged:
                self.to_judge.add(row["episode"])
        if row["outcome"] == "failed":
            self._failed[cell] += 1
            self.errors[row["error_class"], row["error"]] += 1

    def judgement(self, row: Mapping[str, Any]) -> None:
        """Count a judge's word, after all episodes: those of other episodes and judges are no part of the run."""
        done = self.judges.get(row["judge"])
        if done is None or row["episode"] in done or row["episode"] not in self.to_judge:
            return
        done.add(row["episode"])
        self.unjudged[row["judge"]] += row["label"] is None
        self.recently_judged += self._is_recent(row["finished_at"])

    def build(self, row: Mapping[str, Any]) -> None:
        """Count a build: a row has what was added since the last one of the same build."""
        for name in MEMORY_TOKENS:
            self.tokens[name] = _sum(self.tokens[name], row[name])

    @property
    def usd(self) -> float | None:
        """What the readers' calls cost, where that is known of all of them."""
        return self._usd if self._asked and not self._unpriced else None

    def failure(self, row: Mapping[str, Any]) -> None:
        """Count a failed attempt, after all episodes: unless a later one made it good."""
        if row["episode"] not in self._seen:
            self.failures[row["error_class"]] += 1
            self.errors[row["error_class"], row["error"]] += 1

    def _is_recent(self, ended: datetime | None) -> bool:
        return ended is not None and (self._now - ended).total_seconds() <= RATE_OVER_S

    def cell(self, planned: Mapping[str, Any]) -> dict[str, Any]:
        """A planned cell with what is done of it."""
        place = (planned["benchmark"], planned["arm"], planned["budget"])
        return {
            **{key: planned[key] for key in ("benchmark", "arm", "budget")},
            "planned": planned["n"],
            "done": self._done[place],
            "failed": self._failed[place],
        }


def _sum(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
