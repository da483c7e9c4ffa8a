"""Failed episodes get another try; nothing else is touched, and nothing is lost on the way."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flexmem.memory.assemble import assemble
from flexmem.memory.protocol import Budget, Query, Rendering
from flexmem.sweep.plan import make_plan
from flexmem.sweep.retry import RETRIED, set_aside

from . import fake_methods as fake
from .harness import InProcess, by_key, rows, sweep


class Mendable:
    """Shows everything once it is mended; before, every second question breaks it."""

    mended = False

    def __init__(self) -> None:
        self.asked: list[str] = []

    def render(self, build: fake.FakeBuild, query: Query, budget: Budget) -> Rendering:
        self.asked.append(query.text)
        if not self.mended and len(query.text) % 2:
            raise RuntimeError("broken")
        return assemble([])


@pytest.fixture
def method(monkeypatch: pytest.MonkeyPatch) -> Mendable:
    made = Mendable()
    fake.register(monkeypatch, "mendable", made.render)
    return made


def test_only_failed_episodes_of_the_class_run_again(method: Mendable, out: Path) -> None:
    plan = make_plan(sweep(arms=["mendable", "truncation"]))
    InProcess(plan, out).run()
    before = by_key(rows(out, "episodes"))
    broken = {key for key, row in before.items() if row["error_class"] == "method"}
    assert 0 < len(broken) < len(before) / 2

    assert set_aside(out, "agent") == 0
    assert set_aside(out, "method") == len(broken)
    assert by_key(rows(out, "episodes")).keys() == before.keys() - broken
    assert not {row["episode"] for row in rows(out, "renderings")} & broken
    kept = [pq.read_table(path) for path in (out / RETRIED / "episodes").glob("*.parquet")]
    assert {key for table in kept for key in table["episode"].to_pylist()} == broken

    method.mended = True
    method.asked.clear()
    InProcess(plan, out).run()
    after = by_key(rows(out, "episodes"))
    assert after.keys() == before.keys()
    assert len(method.asked) == len(broken)
    assert {row["outcome"] for row in after.values()} == {"ok"}
    assert all(after[key] == row for key, row in before.items() if key not in broken)


def test_what_has_no_row_needs_no_setting_aside(out: Path) -> None:
    InProcess(make_plan(sweep()), out).run()
    assert set_aside(out, "infrastructure") == 0
    assert not (out / RETRIED).exists()
