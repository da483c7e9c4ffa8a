"""A driver's memory does not grow with the number of episodes, planned or run."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ..sweep.ray_harness import ENVIRONMENT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PROGRAM = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from flexmem.sweep.config import parse_config
    from flexmem.sweep.engine import run_sweep
    from flexmem.sweep.plan import make_plan
    synthetic = {"name": "synthetic", "options": {"conversations": 10, "tokens": 4_000, "questions": 40}}
    content = {"name": "noop", "benchmarks": [synthetic], "arms": ["no_memory"], "budgets": [1000]}
    outcome = run_sweep(make_plan(parse_config({**content, "repeats": int(sys.argv[2])}, "test")), Path(sys.argv[1]))
    assert outcome.complete, outcome
    print(outcome.done)
    """
)
# The process's own peak: what getrusage() gives has the parent's in it, from before the program was loaded.
PEAK = """
with open("/proc/self/status") as status:
    print(next(line for line in status if line.startswith("VmHWM")).split()[1])
"""


def test_ten_times_the_episodes_take_the_same_memory_in_the_driver(tmp_path: Path, cache: Path) -> None:
    peak = {}
    for repeats in (5, 50):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM + PEAK, str(tmp_path / str(repeats)), str(repeats)],
            env={**os.environ, **ENVIRONMENT, "FLEXMEM_CACHE": str(cache)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        episodes, kilobytes = map(int, done.stdout.split()[-2:])
        peak[episodes] = kilobytes
    assert list(peak) == [2_000, 20_000]
    assert 0.8 <= peak[20_000] / peak[2_000] <= 1.2


PLANNING = textwrap.dedent(
    """
    import sys
    from flexmem.sweep.config import parse_config
    from flexmem.sweep.group_queue import GroupQueue
    from flexmem.sweep.plan import make_plan
    synthetic = {"name": "synthetic", "options": {"conversations": 10, "tokens": 4_000, "questions": 40}}
    content = {"name": "planned", "benchmarks": [synthetic], "arms": ["no_memory"], "budgets": [1000]}
    plan = make_plan(parse_config({**content, "repeats": int(sys.argv[1])}, "test"))
    groups, episodes = plan.size()
    queue = GroupQueue(plan.groups(), groups)
    walked = 0
    while queue:
        walked += len(queue.pop().episodes)
    assert walked == episodes
    print(walked)
    """
)
MORE_MB = 30
"""What a hundred times the episodes may take more. As tasks in a list, a million take some 170."""


def test_a_million_planned_episodes_are_never_in_memory_together(cache: Path) -> None:
    peak = {}
    for repeats in (25, 2_500):
        done = subprocess.run(
            [sys.executable, "-c", PLANNING + PEAK, str(repeats)],
            env={**os.environ, **ENVIRONMENT, "FLEXMEM_CACHE": str(cache)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        episodes, kilobytes = map(int, done.stdout.split())
        peak[episodes] = kilobytes
    assert list(peak) == [10_000, 1_000_000]
    assert peak[1_000_000] - peak[10_000] < MORE_MB * 1024
