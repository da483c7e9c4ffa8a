"""A rendering can be shown again from the tables alone, to its digest (docs/tables.md)."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from flexmem.memory.protocol import Resolution
from flexmem.sweep.plan import make_plan
from flexmem.sweep.recovery import remove_leftovers

from . import fake_methods as fake
from .harness import LOCOMO, InProcess, Row, rows, sweep

GAP = "[...]\n"
FROM_PIECES = {"raw", "excerpt", "piece"}


class Archive:
    """The tables ``pieces`` and ``renderings`` of a run, as someone without the package would read them."""

    def __init__(self, out: Path) -> None:
        self.pieces: dict[tuple[str, int], str] = {}
        self.headers: dict[tuple[str, int], str] = {}
        self.lines: dict[str, str] = {}
        for row in rows(out, "pieces"):
            assert row["digest"] == digest(row["text"])
            if row["kind"] == "line":
                self.lines[row["digest"]] = row["text"]
            else:
                texts = self.pieces if row["kind"] == "piece" else self.headers
                texts[row["cut"], row["number"]] = row["text"]

    def show(self, rendering: Row) -> str:
        """The text that was shown."""
        return "".join(self._block(rendering["cut"], block) for block in rendering["blocks"])

    def _block(self, cut: str, block: dict[str, Any]) -> str:
        if block["resolution"] not in FROM_PIECES:
            return self.lines[block["text"]]
        assert block["text"] is None
        (uid,) = block["uids"]
        text = self.headers[cut, uid]
        previous = None
        for number in block["pieces"]:
            if number != (block["pieces"][0] if previous is None else previous + 1):
                text = whole_line(text) + GAP
            text += self.pieces[cut, number]
            previous = number
        return whole_line(text)


def whole_line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


ARMS = [
    "no_memory",
    "full_history",
    "oracle_evidence",
    "truncation",
    "dense_units",
    "piece_retrieval",
    "flexa_piece",
    "flexa_unit",
    "flexa_unit.keep_record",
    {"method": "flexa_unit", "label": "small pieces", "options": {"piece_tokens": 16}},
    {"method": "piece_retrieval", "label": "tiny pieces", "options": {"piece_tokens": 8}},
    "rewriter",
]


@pytest.mark.parametrize("benchmark", ["synthetic", "long turns", "locomo"])
def test_every_rendering_can_be_shown_again_to_its_digest(
    benchmark: str, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"tokens": 6_000, "questions": 8, "conversations": 2, "unit_tokens": 700}
    synthetic = {"name": "synthetic", "options": options}
    # Turns of many lines and units of many pieces.
    long_turns = {"name": "synthetic", "options": {**options, "style": "roles", "unit_tokens": 2_000}}
    entry = {"synthetic": synthetic, "long turns": long_turns, "locomo": LOCOMO}[benchmark]
    fake.register(monkeypatch, "rewriter", fake.rewritten, rewrites_text=True)
    budgets = [120, 400, 1_000, 2_500]
    plan = make_plan(sweep(benchmarks=[entry], arms=ARMS, budgets=budgets))
    counts = InProcess(plan, out).run()
    assert counts.keys() == {"ok"}
    archive = Archive(out)
    renderings = rows(out, "renderings")
    assert len(renderings) == counts["ok"]
    seen = set()
    gaps = 0
    for rendering in renderings:
        shown = archive.show(rendering)
        assert digest(shown) == rendering["digest"]
        seen |= {block["resolution"] for block in rendering["blocks"]}
        gaps += GAP in shown
    assert gaps > 0
    wanted = {resolution.value for resolution in Resolution}
    # LoCoMo's small file is too short to merge records or to cut units.
    assert seen >= (wanted - {"merged", "excerpt"} if benchmark == "locomo" else wanted)


def test_renderings_of_an_interrupted_run_can_be_shown_again_as_well(out: Path) -> None:
    """Pieces and lines are written once by a worker, before whatever names them."""
    plan = make_plan(sweep(arms=["flexa_piece", "flexa_unit"], budgets=[300, 900], engine={"rows_per_part": 1}))
    groups = list(plan.groups())
    first, second = InProcess(plan, out), InProcess(plan, out)
    asyncio.run(first.worker.run(groups[0]))
    remove_leftovers(out)
    second.run()
    archive = Archive(out)
    renderings = rows(out, "renderings")
    assert len(renderings) == sum(cell["n"] for cell in plan.cells())
    assert all(digest(archive.show(rendering)) == rendering["digest"] for rendering in renderings)


def test_a_rendering_costs_less_than_its_text(out: Path) -> None:
    run = InProcess(make_plan(sweep(arms=["piece_retrieval"], budgets=[2_000])), out)
    run.run()
    shown = sum(len(Archive(out).show(rendering)) for rendering in rows(out, "renderings"))
    kept = sum(path.stat().st_size for path in (out / "renderings").iterdir())
    assert kept < shown
