"""One sweep with paid calls, its processes killed one after the other: everything ends as if nothing had happened."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from flexmem.sweep.results import finished_keys
from flexmem.sweep.status import read_status

from ..sweep.drivers import Driver
from ..sweep.harness import by_key, rows
from .paid_endpoint import PaidEndpoint

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SERVICES = ["ResultActor", "EmbeddingActor", "IndexActor", "ReplyActor"]
SHARED_MEMORY = Path("/dev/shm")
WORKER_KILLS, SERVICE_KILLS, DRIVER_KILLS = 5, 2, 2


@pytest.fixture
def endpoint() -> Iterator[PaidEndpoint]:
    with PaidEndpoint(seconds=0.3) as serving:
        yield serving


@pytest.fixture
def driver(tmp_path: Path, cache: Path, endpoint: PaidEndpoint) -> Iterator[Driver]:
    model = {"model": "paid", "base_url": endpoint.address}
    made = Driver(
        tmp_path,
        cache,
        benchmarks=[{"name": "synthetic", "options": {"conversations": 2, "tokens": 6_000, "questions": 40}}],
        arms=[
            "no_memory",
            "piece_retrieval",
            "flexa_piece",
            {"method": "flexa_unit", "label": "by_model", "options": {"writer": "model"}},
        ],
        budgets=[300, 600],
        models={"reader": {"model": model}, "memory": model},
        engine={"workers": 2, "in_flight": 2, "rows_per_part": 4, "flush_s": 0.5, "group_attempts": 20},
    )
    yield made
    made.clean_up()


def test_a_storm_of_kills_loses_no_reply_and_buys_none_twice(driver: Driver, endpoint: PaidEndpoint) -> None:
    kills = ["WorkerActor"] * WORKER_KILLS + SERVICES * SERVICE_KILLS
    drawn = random.Random(7)
    drawn.shuffle(kills)
    shared_memory = set(SHARED_MEMORY.iterdir())
    for number in range(DRIVER_KILLS):
        process = driver.start()
        share = kills[number::DRIVER_KILLS]
        for name in share:
            progress(driver, process, endpoint)
            driver.actor(name, process).kill()
            check_status(driver, running=True)
        progress(driver, process, endpoint)
        process.kill()
        process.communicate()
        psutil.wait_procs(driver.processes(), timeout=60)
        check_status(driver, running=False)
        assert len(finished_keys(driver.out)) < len(driver.keys()), "the storm must end before the sweep does"
    endpoint.allow(float("inf"))
    code, output, errors = driver.finish()
    assert code == 0, errors
    assert json.loads(output)["complete"]

    check_rows(driver)
    check_status(driver, running=False)
    check_calls(driver, endpoint, deaths=WORKER_KILLS + DRIVER_KILLS)
    check_nothing_left(driver)
    assert set(SHARED_MEMORY.iterdir()) <= shared_memory


def progress(driver: Driver, process: subprocess.Popen[str], endpoint: PaidEndpoint) -> None:
    """Let the sweep go on until it has more results; before the first there is no folder."""
    before, deadline = len(finished_keys(driver.out)), time.monotonic() + 120
    while len(finished_keys(driver.out)) == before:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no result"
        endpoint.allow(2)
        time.sleep(0.2)


def check_status(driver: Driver, *, running: bool) -> None:
    """What `flexmem status --json` says from another process is true."""
    command = [sys.executable, "-c", "from flexmem.cli import main; main()", "status", str(driver.out), "--json"]
    least = finished_keys(driver.out)
    asked = subprocess.run(command, capture_output=True, text=True, env=driver.environment, check=False)
    most = finished_keys(driver.out)
    assert asked.returncode in {0, 1}, asked.stderr
    said = json.loads(asked.stdout)
    assert len(least) <= said["done"] <= len(most)
    assert said["planned"] == len(driver.keys())
    assert said["complete"] == (said["done"] == said["planned"]) == (asked.returncode == 0)
    assert said["running"] == running
    assert said["failed"] == 0
    if not running:
        assert (said["rate"], said["eta_s"], said["in_flight"], said["stall"]) == (None, None, None, None)
    with closing(sqlite3.connect(f"file:{driver.out / 'replies.sqlite'}?mode=ro", uri=True)) as database:
        assert (
            said["tokens"]["reader_input_tokens"] <= 10 * database.execute("SELECT count(*) FROM replies").fetchone()[0]
        )


def check_rows(driver: Driver) -> None:
    found = rows(driver.out, "episodes")
    assert Counter(row["episode"] for row in found) == Counter(driver.keys())
    assert {row["outcome"] for row in found} == {"ok"}
    assert read_status(driver.out)["complete"]
    assert by_key(found).keys() == driver.keys()


def check_calls(driver: Driver, endpoint: PaidEndpoint, deaths: int) -> None:
    with closing(sqlite3.connect(driver.out / "replies.sqlite")) as database:
        intents = Counter(key for (key,) in database.execute("SELECT key FROM intents"))
        answered = Counter(key for (key,) in database.execute("SELECT key FROM intents WHERE ended = 'reply'"))
        kept = [key for (key,) in database.execute("SELECT key FROM replies")]
        after = list(
            database.execute(
                "SELECT i.call FROM intents i JOIN replies r ON i.key = r.key WHERE i.begun_at > r.finished_at"
            )
        )
    assert after == []  # no kept reply is asked for again
    assert all(times == 1 for times in answered.values())
    assert len(kept) == len(endpoint.asked)  # every prompt that was sent has its reply
    twice = endpoint.asked.total() - len(endpoint.asked)
    assert twice <= deaths * endpoint.most_in_flight  # at most the calls in flight at each death
    assert endpoint.asked.total() <= intents.total()  # each of which has an intent
    assert sorted(intents) == sorted(kept)


def check_nothing_left(driver: Driver) -> None:
    _, alive = psutil.wait_procs(driver.processes(), timeout=60)
    assert not alive, [process.cmdline() for process in alive]
    assert not list(driver.out.rglob(".tmp-*"))
