"""Runs in processes of their own: killed and gone on with, without a key and with one, as a job."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from flexmem.sweep.results import finished_keys
from flexmem.sweep.status import read_status
from flexmem.sweep.tables import TABLES

from .drivers import Driver
from .endpoint import PlainEndpoint
from .harness import by_key, contents, rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]


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
        "failed": 0,
        "errors": [],
        "stopped": None,
        "lost": [],
        "torn": [],
        "recycled": 0,
        "judging": None,
    }
    before = contents(driver.out / "episodes")
    code, output, errors = driver.finish(command)
    assert code == 0, errors
    assert json.loads(output.splitlines()[-1])["counts"] == {}
    assert contents(driver.out / "episodes") == before
