"""What a worker may take, as configured and by default."""

from __future__ import annotations

import pytest

from flexmem.sweep import memory_limits
from flexmem.sweep.config import EngineEntry
from flexmem.sweep.footprint import machine_memory
from flexmem.sweep.memory_limits import MemoryLimits

MB, GB = 2**20, 2**30


@pytest.mark.parametrize(
    ("machine_gb", "configured_mb", "workers", "machines", "expected_mb"),
    [
        (20, None, 4, 1, (3072, 6144)),  # 60 % of 20 GB by four, and twice that
        (20, None, 8, 2, (3072, 6144)),  # eight on two machines are four on each
        (20, None, 1, 1, (12288, 15360)),  # twice would be more than the machine has: 75 % of it
        (20, None, 64, 1, (1024, 2048)),  # never less than 1024
        (20, 700, 64, 1, (700, 1400)),
        (20, 18_000, 1, 1, (18_000, 18_000)),  # as configured, whatever the machine has
        (None, 700, 4, 1, (700, 1400)),
    ],
)
def test_limits(
    machine_gb: int | None,
    configured_mb: int | None,
    workers: int,
    machines: int,
    expected_mb: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_limits, "machine_memory", lambda: machine_gb and machine_gb * GB)
    found = memory_limits.memory_limits(EngineEntry(worker_memory_mb=configured_mb), workers, machines)
    assert found == MemoryLimits(*(mb * MB for mb in expected_mb))


def test_where_nothing_is_known_there_is_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limits, "machine_memory", lambda: None)
    assert memory_limits.memory_limits(EngineEntry(), 4, 1) is None


def test_a_machine_has_no_more_than_its_physical_memory() -> None:
    with open("/proc/meminfo", encoding="ascii") as file:
        total = int(next(line for line in file if line.startswith("MemTotal")).split()[1]) * 1024
    found = machine_memory()
    assert found is not None
    assert 0 < found <= total
