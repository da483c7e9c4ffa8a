"""Runs in processes of their own: killed and gone on with, without a key and with one, as a job."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from flexmem.sweep.plan import make_plan
from flexmem.sweep.results import finished_keys
from flexmem.sweep.status import read_status
from flexmem.sweep.tables import TABLES

from .endpoint import PlainEndpoint
from .harness import by_key, contents, rows, sweep
from .ray_harness import ENVIRONMENT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
SLOWLY = {
    "benchmarks": [{"name": "synthetic", "options": {"conversations": 2, "tokens": 3_000, "questions": 4}}],
    "arms": ["no_memory", "piece_retrieval", "flexa_piece"],
    "budgets": [300, 600],
    "models": {"reader": {"model": {"provider": "scripted", "model": "first_sentence", "latency_s": 0.4}}},
    "engine": {"workers": 2, "in_flight": 1, "rows_per_part": 1},
}


class Driver:
    """Starts runs of a configuration in an output folder, with a Ray temporary folder by which its processes are
    known.
    """

    def __init__(self, folder: Path, cache: Path, **changes: Any) -> None:
        self.out = folder / "run"
        self.plan = make_plan(sweep(**{**SLOWLY, **changes}))
        self.config = folder / "sweep.yaml"
        self.config.write_text(self.plan.config.model_dump_json())
        self.temporary = Path(tempfile.mkdtemp(prefix="rt", dir="/tmp"))
        self.environment = {**os.environ, **ENVIRONMENT, "RAY_TMPDIR": str(self.temporary), "FLEXMEM_CACHE": str(cache)}

    @property
    def command(self) -> list[str]:
        code = "from flexmem.cli import main; main()"
        return [sys.executable, "-c", code, "run", str(self.config), "--out", str(self.out), "--json"]

    def start(self, command: list[str] | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command or self.command,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, command: list[str] | None = None) -> tuple[int, str, str]:
        """Run to the end; exit code, standard output, standard error."""
        with self.start(command) as process:
            output, errors = process.communicate(timeout=200)
        return process.returncode, output, errors

    def until(self, process: subprocess.Popen[str], episodes: int) -> None:
        """Wait until that many episodes are on disk while the run goes on."""
        deadline = time.monotonic() + 120
        while len(finished_keys(self.out)) < episodes:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "no result"
            time.sleep(0.05)
        assert process.poll() is None

    def actor(self, name: str, process: subprocess.Popen[str]) -> psutil.Process:
        """The process of an actor of that class, once it is there."""
        deadline = time.monotonic() + 120
        while True:
            assert process.poll() is None, process.communicate()
            for found in self.processes():
                with suppress(psutil.Error):
                    if " ".join(found.cmdline()).startswith(f"ray::{name}"):
                        return found
            assert time.monotonic() < deadline, f"no {name}"
            time.sleep(0.05)

    def processes(self) -> list[psutil.Process]:
        """All that runs with this driver's temporary folder."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("RAY_TMPDIR") == str(self.temporary):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def keys(self) -> set[str]:
        return {task.key for group in self.plan.groups() for task in group.episodes}

    def clean_up(self) -> None:
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()
        shutil.rmtree(self.temporary, ignore_errors=True)


@pytest.fixture
def driver(tmp_path: Path, cache: Path) -> Iterator[Driver]:
    made = Driver(tmp_path, cache)
    yield made
    made.clean_up()


def check_complete(driver: Driver, kept: dict[str, Any]) -> None:
    """One row an episode, and those of ``kept`` as they were."""
    found = by_key(rows(driver.out, "episodes"))
    assert found.keys() == driver.keys()
    assert {key: found[key] for key in kept} == kept
    assert read_status(driver.out)["complete"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_driver_that_is_killed_goes_on_with_the_same_command(how: signal.Signals, driver: Driver) -> None:
    process = driver.start()
    driver.until(process, 3)
    process.send_signal(how)
    assert process.wait(60) != 0
    process.communicate()
    kept = by_key(rows(driver.out, "episodes"))
    assert 3 <= len(kept) < len(driver.keys())
    code, output, errors = driver.finish()
    assert code == 0, errors
    assert json.loads(output)["complete"]
    check_complete(driver, kept)


def test_nothing_that_a_killed_driver_started_stays(driver: Driver) -> None:
    process = driver.start()
    driver.until(process, 1)
    process.kill()
    process.communicate()
    gone, alive = psutil.wait_procs(driver.processes(), timeout=60)
    assert not alive, [process.cmdline() for process in alive]
    assert gone


def test_a_run_survives_the_death_of_each_of_its_services(driver: Driver) -> None:
    process = driver.start()
    for name in ("EmbeddingActor", "IndexActor", "ResultActor"):
        driver.actor(name, process).kill()
        driver.until(process, len(finished_keys(driver.out)) + 1)
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert json.loads(output)["lost"] == []
    check_complete(driver, {})


def test_a_missing_key_scores_nothing_and_the_same_command_works_once_it_is_set(tmp_path: Path, cache: Path) -> None:
    # Not an address of this machine, which would need no key: the endpoint is the proxy on the way there.
    model = {"model": "hosted", "base_url": "http://models.example/v1", "api_key_env": "TEST_KEY"}
    with PlainEndpoint() as endpoint:
        driver = Driver(tmp_path, cache, models={"reader": {"model": model}}, arms=["no_memory", "truncation"])
        driver.environment.pop("NO_PROXY")
        driver.environment["HTTP_PROXY"] = endpoint.address
        try:
            code, output, errors = driver.finish()
            assert (code, output) == (2, "")
            assert "no API key. Set TEST_KEY in the environment" in errors
            assert endpoint.keys == []
            assert not rows(driver.out, "episodes")
            driver.environment["TEST_KEY"] = "sk-test"
            code, output, errors = driver.finish()
            assert code == 0, errors
            check_complete(driver, {})
        finally:
            driver.clean_up()
        assert endpoint.keys == ["Bearer sk-test"] * len(driver.keys())
    kept = repr([rows(driver.out, table) for table in TABLES]) + (driver.out / "manifest.json").read_text("utf-8")
    assert "sk-test" not in kept


def test_a_job_script_says_how_it_ended_in_its_last_line(driver: Driver) -> None:
    command = [sys.executable, str(ROOT / "ray_jobs" / "sweep.py"), str(driver.config), "--out", str(driver.out)]
    code, output, errors = driver.finish([*command, "--workers", "1"])
    assert code == 0, errors
    assert json.loads(output.splitlines()[-1]) == {
        "run": str(driver.out),
        "planned": 40,
        "done": 40,
        "complete": True,
        "counts": {"ok": 40},
        "stopped": None,
        "lost": [],
    }
    before = contents(driver.out / "episodes")
    code, output, errors = driver.finish(command)
    assert code == 0, errors
    assert json.loads(output.splitlines()[-1])["counts"] == {}
    assert contents(driver.out / "episodes") == before
