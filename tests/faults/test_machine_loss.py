"""Everything that a run consists of dies at one moment, as when the machine does; the same command goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from flexmem.sweep.results import finished_keys
from flexmem.sweep.status import read_status

from ..sweep.drivers import Driver
from ..sweep.harness import rows, timeless

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def drivers(tmp_path: Path, cache: Path) -> Iterator[tuple[Driver, Driver]]:
    """One that is left alone, and one that is not."""
    made = []
    for name in ("calm", "lost"):
        (tmp_path / name).mkdir()
        made.append(Driver(tmp_path / name, cache))
    yield made[0], made[1]
    for driver in made:
        driver.clean_up()


def test_a_machine_that_is_lost_twice_ends_with_what_an_uninterrupted_run_ends_with(
    drivers: tuple[Driver, Driver],
) -> None:
    calm, lost = drivers
    code, _, errors = calm.finish()
    assert code == 0, errors
    for _ in range(2):
        process = lost.start()
        lost.until(process, len(finished_keys(lost.out)) + 5)
        lose(lost)
        process.communicate()
        assert not read_status(lost.out)["running"]
    assert len(finished_keys(lost.out)) < len(lost.keys())
    code, output, errors = lost.finish()
    assert code == 0, errors
    assert json.loads(output)["complete"]
    for name in ("episodes", "renderings"):
        without = ("attempts",)  # and times
        calm_rows, lost_rows = (
            [{key: value for key, value in row.items() if key not in without} for row in rows(driver.out, name)]
            for driver in (calm, lost)
        )
        assert timeless(lost_rows) == timeless(calm_rows)
    files = {path.name for path in lost.out.rglob("*")}
    assert not [name for name in files if name.startswith(".tmp-")]


def lose(driver: Driver) -> None:
    """Stop all processes, then kill them: none sees another's death and puts anything in order."""
    doomed = driver.processes()
    for process in doomed:
        with suppress(psutil.Error):
            process.suspend()
    for process in driver.processes():
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(doomed, timeout=60)
