"""What a run's folder says of the run, while it goes on and afterwards."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flexmem.cli import app
from flexmem.llm.scripted import ScriptedModel
from flexmem.sweep import worker
from flexmem.sweep.cluster import ClusterError
from flexmem.sweep.engine import run_sweep
from flexmem.sweep.heartbeat import ACTIVITY, STALE_S, Heartbeat
from flexmem.sweep.manifest import plan_manifest, write_manifest
from flexmem.sweep.plan import Plan, make_plan
from flexmem.sweep.results import lock_for_writing, make_table, write_parts
from flexmem.sweep.status import RATE_OVER_S, read_status

from .harness import InProcess, rows, sweep

READER: dict[str, Any] = {"reader": {"model": {"provider": "scripted", "model": "echo"}}}


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
    } | {"memory_input_tokens": 0, "memory_output_tokens": 0}
    assert read_status(out)["tokens"]["reader_input_tokens"] > 0


def test_the_memory_model_s_tokens_are_the_builds_tokens(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "make_model", lambda config: ScriptedModel("json_record"))
    by_model = {"method": "flexa_unit", "label": "by_model", "options": {"writer": "model"}}
    plan = make_plan(sweep(arms=["truncation", by_model], models={"memory": READER["reader"]["model"]}))
    write_manifest(out, plan_manifest(out, plan))
    InProcess(plan, out).run()
    built = [row for row in rows(out, "builds") if row["arm"] == "by_model"]
    assert [row["phase"] for row in built] == ["written", "read"]
    took = {name: sum(row[name] for row in built) for name in ("memory_input_tokens", "memory_output_tokens")}
    assert all(took.values())
    found = read_status(out)["tokens"]
    assert found.items() >= took.items()
    write_parts(out, "x", {"builds": make_table("builds", [{"build": "b", "memory_output_tokens": 7}])})
    found = read_status(out)["tokens"]
    assert found["memory_input_tokens"] is None  # of one build it is not known
    assert found["memory_output_tokens"] == took["memory_output_tokens"] + 7


@pytest.mark.parametrize(
    ("episodes", "usd"),
    [
        ([], None),
        ([(None, None), (None, None)], None),  # nobody was asked
        ([("m", 0.25), ("m", 0.5), (None, None)], 0.75),
        ([("m", 0.0)], 0.0),
        ([("m", 0.25), ("m", None)], None),  # of one call it is not known
    ],
)
def test_what_readers_cost_is_known_only_where_all_calls_are(
    episodes: list[tuple[str | None, float | None]], usd: float | None, out: Path
) -> None:
    write_manifest(out, plan_manifest(out, make_plan(sweep())))
    made = [
        {"episode": f"{number}", "reader": reader, "usd": cost, "outcome": "ok"}
        for number, (reader, cost) in enumerate(episodes)
    ]
    write_parts(out, "x", {"episodes": make_table("episodes", made)})
    assert read_status(out)["usd"] == usd


# ---------------------------------------------------------------- activity.json

SAID = {
    "in_flight": {"reader": 12, "writing": 1},
    "groups_waiting": 3,
    "workers": {"number": 4, "starting": 1, "memory_mb": 300},
    "recycled": 2,
    "stall": {"stage": "reader", "seconds": 130.0, "advice": "12 calls wait"},
}
KEYS = ("in_flight", "workers", "recycled", "stall")


def heart(out: Path) -> Heartbeat:
    """A heartbeat with `SAID` on disk."""
    beating = Heartbeat(out)
    beating.beat(SAID)
    assert beating._writing is not None
    beating._writing.join()
    return beating


def test_what_a_driver_says_is_shown_while_the_run_goes_on(out: Path) -> None:
    half_done(out)
    beating = heart(out)
    with lock_for_writing(out):
        found = read_status(out, now=datetime.now(UTC) + timedelta(seconds=5))
        assert {key: found[key] for key in KEYS} == {key: SAID[key] for key in KEYS}
        assert 5 <= found["heartbeat_s"] < STALE_S
    assert read_status(out)["running"]  # its writer may have been killed, and is not up again
    assert not read_status(out, now=datetime.now(UTC) + timedelta(seconds=STALE_S + 1))["running"]
    beating.end()
    found = read_status(out)
    assert {found[key] for key in (*KEYS, "heartbeat_s")} == {None}
    assert not found["running"]


def test_a_heartbeat_of_long_ago_is_told_by_its_age_alone(out: Path) -> None:
    half_done(out)
    heart(out)
    with lock_for_writing(out):
        found = read_status(out, now=datetime.now(UTC) + timedelta(seconds=STALE_S + 1))
        assert {found[key] for key in KEYS} == {None}
        assert found["heartbeat_s"] > STALE_S


def test_a_dead_driver_s_heartbeat_is_not_shown_though_its_writer_still_ends(out: Path) -> None:
    half_done(out)
    heart(out)
    content = json.loads((out / ACTIVITY).read_text("utf-8"))
    with subprocess.Popen(["true"]) as ended:
        pass
    (out / ACTIVITY).write_text(json.dumps({**content, "pid": ended.pid}))
    with lock_for_writing(out):
        found = read_status(out)
        assert {found[key] for key in KEYS} == {None}
        (out / ACTIVITY).write_text(json.dumps({**content, "pid": ended.pid, "host": "another"}))
        assert read_status(out)["workers"] == SAID["workers"]  # of another machine nobody knows


@pytest.mark.parametrize("content", ["", "{}", '{"time": 3}', "[]"])
def test_a_heartbeat_that_makes_no_sense_is_none(content: str, out: Path) -> None:
    half_done(out)
    (out / ACTIVITY).write_text(content)
    with lock_for_writing(out):
        assert read_status(out)["heartbeat_s"] is None


def test_a_heartbeat_goes_with_its_driver_and_a_killed_one_s_with_the_next(out: Path) -> None:
    half_done(out)
    beating = heart(out)
    assert (out / ACTIVITY).exists()
    beating.end()
    assert not list(out.glob("*activity*"))
    heart(out)
    (out / ".tmp-activity.json").write_text("half")
    following = Heartbeat(out)
    assert not (out / ACTIVITY).exists()
    following.end()
    assert not list(out.glob("*activity*"))


def test_a_disk_that_hangs_does_not_hold_up_whoever_tells_of_it(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half_done(out)
    go_on, written = threading.Event(), []

    def hang(path: Path, content: Any) -> None:
        go_on.wait()
        written.append(content["groups_waiting"])

    monkeypatch.setattr("flexmem.sweep.heartbeat.write_json", hang)
    beating = Heartbeat(out)
    for number in range(3):
        beating.beat({**SAID, "groups_waiting": number})
    go_on.set()
    beating.end()
    assert written == [0]  # those that came while it was on its way were left out


def test_what_is_said_is_printed_a_line_each(out: Path) -> None:
    half_done(out)
    beating = heart(out)
    with lock_for_writing(out):
        lines = CliRunner().invoke(app, ["status", str(out)]).stdout.splitlines()
    (stages,) = (line for line in lines if line.startswith("in flight, "))
    assert stages.endswith(" s ago: 12 reader, 1 writing")
    assert "workers: 4, 1 of them starting, 2 recycled, up to 300 MB each" in lines
    assert "stalled: no progress for 130 s: 12 calls wait" in lines
    beating.end()
    lines = CliRunner().invoke(app, ["status", str(out)]).stdout.splitlines()
    assert not any(line.startswith(("in flight", "workers", "stalled", "running")) for line in lines)


def test_looking_at_a_run_changes_nothing_in_its_folder(out: Path) -> None:
    half_done(out)
    before = sorted(path.name for path in out.iterdir())
    read_status(out)
    assert sorted(path.name for path in out.iterdir()) == before


def test_a_run_whose_cluster_is_still_starting_is_running(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []

    @contextmanager
    def slow_cluster(config: object) -> Iterator[Any]:
        deadline = time.monotonic() + 30
        while not (out / ACTIVITY).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        found.append(read_status(out)["running"])
        raise ClusterError("it does not start")
        yield  # a context manager is a generator

    monkeypatch.setattr("flexmem.sweep.engine.ray_cluster", slow_cluster)
    with pytest.raises(ClusterError):
        run_sweep(make_plan(sweep()), out)
    assert found == [True]
    assert not read_status(out)["running"]
