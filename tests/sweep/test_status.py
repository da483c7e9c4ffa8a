"""What a run's folder says of the run, while it goes on and afterwards."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from flexmem.llm.scripted import ScriptedModel
from flexmem.sweep import worker
from flexmem.sweep.manifest import plan_manifest, write_manifest
from flexmem.sweep.plan import Plan, make_plan
from flexmem.sweep.results import lock_for_writing
from flexmem.sweep.status import RATE_OVER_S, read_status

from .harness import InProcess, rows, sweep

READER = {"reader": {"model": {"provider": "scripted", "model": "echo"}}}


def half_done(out: Path, **changes: object) -> Plan:
    """A plan of two arms of which one has run."""
    plan = make_plan(sweep(arms=["truncation", "piece_retrieval"], **changes))
    write_manifest(out, plan_manifest(out, plan))
    InProcess(make_plan(sweep(arms=["truncation"], **changes)), out).run()
    return plan


def test_rate_and_time_to_go_are_of_a_run_that_goes_on(out: Path) -> None:
    half_done(out)
    newest = max(row["finished_at"] for row in rows(out, "episodes"))
    assert (read_status(out)["running"], read_status(out)["rate"]) == (False, None)
    with lock_for_writing(out):
        found = read_status(out, now=newest + timedelta(seconds=1))
        assert found["running"]
        assert found["rate"] == pytest.approx(found["done"] / RATE_OVER_S)
        # As many are to go as were done in the last minute.
        assert found["eta_s"] == pytest.approx(RATE_OVER_S * (found["planned"] - found["done"]) / found["done"])
        stalled = read_status(out, now=newest + timedelta(seconds=2 * RATE_OVER_S))
        assert (stalled["rate"], stalled["eta_s"]) == (0.0, None)
    assert not read_status(out)["running"]


def test_the_readers_tokens_are_the_rows_tokens(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "make_model", lambda config: ScriptedModel("echo"))
    half_done(out, models=READER)
    found = rows(out, "episodes")
    assert read_status(out)["tokens"] == {
        name: sum(row[name] for row in found) for name in ("reader_input_tokens", "reader_output_tokens")
    }
    assert read_status(out)["tokens"]["reader_input_tokens"] > 0


def test_looking_at_a_run_changes_nothing_in_its_folder(out: Path) -> None:
    half_done(out)
    before = sorted(path.name for path in out.iterdir())
    read_status(out)
    assert sorted(path.name for path in out.iterdir()) == before
