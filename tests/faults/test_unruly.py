"""Workers whose methods leak or do not return: the machine survives, results are complete, and the run says why."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flexmem.cli import app
from flexmem.memory import registry
from flexmem.sweep.config import SweepConfig
from flexmem.sweep.engine import Progress, run_sweep
from flexmem.sweep.heartbeat import ACTIVITY
from flexmem.sweep.plan import Plan, make_plan
from flexmem.sweep.status import read_status
from tests.llm.endpoint import ChatEndpoint, ok

from ..sweep.harness import by_key, rows, sweep, timeless
from ..sweep.ray_harness import WordEmbeddingActor, own_ray, use_embedder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PLUGIN = Path(__file__).parent / "plugin" / "unruly_methods.py"
LIMIT_MB = 400  # a worker takes some 200 of its own


@pytest.fixture(scope="module")
def unruly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that says how methods misbehave, known to a Ray whose workers have the plug-in installed."""
    folder, packages = tmp_path_factory.mktemp("unruly"), tmp_path_factory.mktemp("packages")
    shutil.copy(PLUGIN, packages)
    declared = packages / "unruly_methods-1.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text("Metadata-Version: 2.1\nName: unruly-methods\nVersion: 1\n")
    (declared / "entry_points.txt").write_text("[flexmem.methods]\nunruly = unruly_methods\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNRULY", str(folder))
        patch.setenv("PYTHONPATH", str(packages), prepend=os.pathsep)
        patch.syspath_prepend(str(packages))
        registry.methods.cache_clear()
        try:
            with own_ray():
                yield folder
        finally:
            registry.methods.cache_clear()


@pytest.fixture(autouse=True)
def quiet(unruly: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody misbehaves yet, and no embedding model is loaded."""
    for path in unruly.iterdir():
        path.unlink()
    use_embedder(monkeypatch, WordEmbeddingActor)


def small(**changes: Any) -> SweepConfig:
    benchmark = {"name": "synthetic", "options": {"conversations": 2, "tokens": 3_000, "questions": 4}}
    engine = {"workers": 2, "worker_memory_mb": LIMIT_MB, "rows_per_part": 1}
    return sweep(**{"benchmarks": [benchmark], "budgets": [500], "engine": engine, **changes})


def processes(unruly: Path) -> set[int]:
    """Workers in which a method of the plug-in has rendered anything."""
    return {int(path.name.removeprefix("pid-")) for path in unruly.glob("pid-*")}


def keys(plan: Plan) -> set[str]:
    return {task.key for group in plan.groups() for task in group.episodes}


def test_workers_that_leak_are_replaced_and_the_results_are_those_of_workers_that_do_not(
    tmp_path: Path, unruly: Path
) -> None:
    # At 15 MB a rendering, no worker of two gets through half of 96 within twice the limit, and none takes half the
    # limit before it is noticed and has finished what it has: one that is killed would lose its groups.
    engine = {"workers": 2, "worker_memory_mb": LIMIT_MB, "rows_per_part": 1, "group_attempts": 1}
    plan = make_plan(small(arms=["leaking"], repeats=12, engine=engine))
    assert run_sweep(plan, tmp_path / "sound").recycled == 0
    assert len(processes(unruly)) <= 2
    for path in unruly.iterdir():
        path.unlink()

    (unruly / "leak").write_text("15")
    outcome = run_sweep(plan, tmp_path / "leaking")
    assert (outcome.complete, outcome.stopped, outcome.lost) == (True, "", ())
    assert outcome.recycled >= 2
    assert len(processes(unruly)) > 2
    (note,) = outcome.notes
    assert note.startswith(f"{outcome.recycled} workers were replaced because they took more than {LIMIT_MB} MB")
    assert "engine.worker_memory_mb" in note
    for table in ("episodes", "renderings"):
        found = [timeless(rows(tmp_path / name, table)) for name in ("sound", "leaking")]
        assert found[0] == found[1]
    assert timeless(rows(tmp_path / "leaking", "episodes")).keys() == keys(plan)


def test_a_group_that_takes_more_and_more_is_killed_and_given_up_and_the_others_are_not(
    out: Path, unruly: Path
) -> None:
    (unruly / "swell").touch()
    engine = {"workers": 2, "worker_memory_mb": LIMIT_MB, "rows_per_part": 1, "group_attempts": 2}
    one = {"name": "synthetic", "options": {"conversations": 1, "tokens": 3_000, "questions": 4}}
    plan = make_plan(small(benchmarks=[one], arms=["swelling", "truncation", "no_memory"], repeats=2, engine=engine))
    outcome = run_sweep(plan, out)
    assert outcome.stopped == ""
    assert len(outcome.lost) == 2
    for lost in outcome.lost:
        assert ", swelling: WorkerMemoryError: its worker was killed at " in lost
        assert f"engine.worker_memory_mb is {LIMIT_MB}, and over {2 * LIMIT_MB} none may go on" in lost
    assert outcome.recycled >= 3  # the first time, both may die with one worker
    finished = by_key(rows(out, "episodes"))
    assert {row["arm"] for row in finished.values()} == {"truncation", "no_memory"}
    assert len(finished) == outcome.done == 16

    (unruly / "swell").unlink()
    assert run_sweep(plan, out).complete


# ---------------------------------------------------------------- stalls


class Watched:
    """Keeps the first stall of a stage that a sweep tells of, and what ``flexmem status`` said then; ends it by
    ``release``. On a slow machine starting up may be a stall before.
    """

    def __init__(self, out: Path, stage: str, release: Callable[[], object]) -> None:
        self.out = out
        self.stage = stage
        self.release = release
        self.stalls: list[str] = []
        self.status: dict[str, Any] = {}
        self.after = False

    def __call__(self, progress: Progress) -> None:
        if progress.stall is not None and progress.stall.stage == self.stage and not self.stalls:
            found = read_status(self.out)
            if found["stall"] is None or found["stall"]["stage"] != self.stage:
                return  # it is being written
            self.status = found
            self.stalls.append(progress.stall.advice)
            self.release()
        elif progress.stall is None and self.stalls:
            self.after = True


def stalling(**changes: Any) -> SweepConfig:
    engine = {"workers": 2, "in_flight": 3, "rows_per_part": 1, "stall_s": 4}
    return small(**{"arms": ["truncation"], "engine": engine, **changes})


def check(watched: Watched, plan: Plan, in_flight: dict[str, int] | None = None) -> str:
    """The sweep ran to its end after a stall, of which its folder told while it lasted; what it advised."""
    (advice,) = watched.stalls
    assert watched.after
    found = watched.status
    assert found["running"]
    assert found["stall"]["advice"] == advice
    assert found["stall"]["seconds"] >= 4
    if in_flight is not None:
        assert found["in_flight"] == in_flight
    assert not (watched.out / ACTIVITY).exists()
    assert timeless(rows(watched.out, "episodes")).keys() == keys(plan)
    assert read_status(watched.out)["stall"] is None
    return advice


def test_a_method_that_does_not_return_is_named_though_it_lets_nothing_else_run(out: Path, unruly: Path) -> None:
    reader = {"reader": {"model": {"provider": "scripted", "model": "first_sentence"}}}
    plan = make_plan(stalling(arms=["sticking"], models=reader))
    watched = Watched(out, "rendering", (unruly / "go").touch)
    assert run_sweep(plan, out, watched).complete
    assert "arm sticking renders a memory and does not return" in check(watched, plan)


def test_a_reader_that_does_not_answer_is_named_and_the_command_says_so_once(tmp_path: Path) -> None:
    answers = threading.Event()

    async def held(request: Any, call: Any) -> Any:
        await asyncio.to_thread(answers.wait)
        return await ok("fine")(request, call)

    out = tmp_path / "run"
    with ChatEndpoint([held]) as endpoint:
        model = {"model": "local", "base_url": endpoint.url, "timeout_s": 250, "attempts": 2}
        config = stalling(models={"reader": {"model": model}})
        path = tmp_path / "sweep.yaml"
        path.write_text(config.model_dump_json())
        looked: dict[str, Any] = {}

        def answer_once_it_is_said() -> None:
            while (looked.get("stall") or {}).get("stage") != "reader":
                time.sleep(0.2)
                if (out / "manifest.json").exists():
                    looked.update(read_status(out))
            answers.set()

        watching = threading.Thread(target=answer_once_it_is_said, daemon=True)
        watching.start()
        done = CliRunner().invoke(app, ["run", str(path), "--out", str(out), "--json"])
        watching.join(60)
    assert done.exit_code == 0, done.output
    said = done.stderr.splitlines()
    (why,) = (line for line in said if "reader model" in line)
    assert why.startswith("stalled: no progress for ")
    assert f"6 calls wait for the reader model local at {endpoint.url}" in why
    for knob in ("timeout_s (250 s)", "attempts (2)", "engine.in_flight (3 a worker)"):
        assert knob in why
    assert any(line.startswith("no longer stalled after ") for line in said[said.index(why) + 1 :])
    assert looked["in_flight"] == {"reader": 6}
    assert looked["workers"]["number"] == 2


def test_workers_that_get_no_cpu_are_said_to_wait_for_one(out: Path) -> None:
    import ray

    holder = ray.remote(num_cpus=int(ray.cluster_resources()["CPU"]))(WordEmbeddingActor).remote()
    ray.get(holder.pid.remote())
    plan = make_plan(stalling())
    watched = Watched(out, "workers", lambda: ray.kill(holder))
    assert run_sweep(plan, out, watched).complete
    assert "2 workers wait for a CPU" in check(watched, plan, {})


def test_a_disk_that_does_not_take_results_is_named(out: Path, unruly: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flexmem.sweep.services.results import ResultActor

    class SlowResultActor(ResultActor):
        async def write(self, part: str, tables: Any) -> int:
            await asyncio.to_thread(self.hang)
            return await super().write(part, tables)

        def hang(self) -> None:
            while not os.path.exists(os.path.join(os.environ["UNRULY"], "go")):
                time.sleep(0.05)

    monkeypatch.setattr("flexmem.sweep.services.sweep_actors.ResultActor", SlowResultActor)
    plan = make_plan(stalling())
    watched = Watched(out, "results", (unruly / "go").touch)
    assert run_sweep(plan, out, watched).complete
    assert f"results or lanes wait for the disk of {out}" in check(watched, plan, {"results": 2})
