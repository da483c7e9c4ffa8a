"""Results meet a full disk: the run stops and says so, nothing that was written is lost, and room is all it needs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from flexmem.sweep.results import finished_keys, make_table, parts
from flexmem.sweep.services.results import ResultActor, pack_table
from flexmem.sweep.status import read_status

from ..disks import fill, small_disk
from ..sweep.drivers import Driver
from ..sweep.harness import by_key, rows


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 4_096) as mounted:
        yield mounted


def write(actor: ResultActor, part: int) -> None:
    """A part of about 60 kB that zstd can't make smaller."""
    replies = [{"episode": f"{part}-{row}", "arm": "a", "reply": os.urandom(15_000).hex()} for row in range(2)]
    asyncio.run(actor.write(f"{part:03d}", {"episodes": pack_table(make_table("episodes", replies))}))


def test_a_merge_that_finds_no_room_leaves_the_parts_as_they_are(disk: Path) -> None:
    out = disk / "run"
    out.mkdir()
    actor = ResultActor(str(out), parts_per_merge=8)
    for part in range(7):
        write(actor, part)
    ballast = fill(disk, 200)
    write(actor, 7)  # the eighth would be merged with the others: there is room for it, not for all once more
    write(actor, 8)
    expected = {f"{part}-{row}" for part in range(9) for row in range(2)}
    assert finished_keys(out) == expected
    assert len(parts(out, "episodes")) == 9
    assert not list(out.rglob("rows-*"))
    problem = asyncio.run(actor.finish())
    assert problem.startswith("parts are not merged any more: ")
    assert "No space left on device" in problem
    ballast.unlink()
    again = ResultActor(str(out), parts_per_merge=8)
    assert asyncio.run(again.finish()) == ""
    assert finished_keys(out) == expected
    assert len(parts(out, "episodes")) == 1


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_stops_when_results_find_no_room_and_goes_on_when_there_is(disk: Path, cache: Path) -> None:
    driver = Driver(disk, cache, models={}, benchmarks=[{"name": "synthetic", "options": {"conversations": 4}}])
    try:
        ballast = fill(disk, 300)
        code, output, errors = driver.finish()
        assert (code, bool(output)) == (1, True), errors
        summary = json.loads(output)
        assert not summary["complete"]
        assert summary["stopped"].startswith("results can't be written: OSError: [Errno 28] No space left on device")
        assert summary["stopped"].endswith("make room or rights")
        assert f"error: the run stopped: {summary['stopped']}" in errors
        assert "the same command resumes" in errors
        assert "Traceback" not in errors
        kept = by_key(rows(driver.out, "episodes"))
        assert summary["done"] == len(kept) < len(driver.keys())
        status = read_status(driver.out)
        assert (status["done"], status["complete"], status["running"]) == (len(kept), False, False)
        ballast.unlink()
        code, output, errors = driver.finish()
        assert code == 0, errors
        found = by_key(rows(driver.out, "episodes"))
        assert found.keys() == driver.keys()
        assert {key: found[key] for key in kept} == kept
        assert not list(driver.out.rglob(".tmp-*"))
    finally:
        driver.clean_up()
