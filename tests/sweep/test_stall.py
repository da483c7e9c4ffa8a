"""A sweep that stands still says what it waits for, and only then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.sweep.activity import STAGES
from flexmem.sweep.advice import Advice
from flexmem.sweep.plan import make_plan
from flexmem.sweep.stall import Stall, StallGuard

from .harness import sweep

ALL_STAGES = (*STAGES, "embedding", "unknown", "workers")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def named(stage: str, subjects: Mapping[str, int]) -> str:
    return f"{stage} {dict(subjects)}"


# Seconds that pass, whether a step is made in them, and the stage at which work waits then.
looks = st.lists(st.tuples(st.integers(0, 50), st.booleans(), st.none() | st.sampled_from(ALL_STAGES)), max_size=30)


@settings(deadline=None)
@given(looks, st.integers(1, 120))
def test_a_stall_is_told_exactly_while_something_is_waited_for_and_nothing_has_moved_for_so_long(
    played: list[tuple[int, bool, str | None]], stall_s: int
) -> None:
    clock = Clock()
    guard = StallGuard(stall_s, named, clock)
    steps, still = 0, 0
    guard.look(steps, {("reader", ""): 1})
    for seconds, moved, stage in played:
        clock.now += seconds
        still = 0 if moved or stage is None else still + seconds
        steps += moved
        found = guard.look(steps, {(stage, "x"): 2} if stage else {})
        if still >= stall_s:
            assert stage is not None
            assert found == Stall(stage, still, f"{stage} {{'x': 2}}")
        else:
            assert found is None


def test_a_service_that_starts_again_and_counts_from_zero_has_moved() -> None:
    clock = Clock()
    guard = StallGuard(10, named, clock)
    guard.look(100, {("reader", ""): 1})
    clock.now += 10
    assert guard.look(100, {("reader", ""): 1}) is not None
    assert guard.look(3, {("reader", ""): 1}) is None


@pytest.mark.parametrize(
    ("waiting", "blamed"),
    [
        ({("reader", ""): 31, ("rendering", "slow"): 1}, "rendering {'slow': 1}"),
        ({("reader", ""): 2, ("results", ""): 1}, "results {'': 1}"),
        ({("history", "a"): 1, ("history", "b"): 2, ("reader", ""): 9}, "history {'a': 1, 'b': 2}"),
        ({("workers", ""): 4, ("reader", ""): 1}, "reader {'': 1}"),
        ({("workers", ""): 4}, "workers {'': 4}"),
    ],
)
def test_what_holds_up_the_rest_is_blamed(waiting: dict[tuple[str, str], int], blamed: str) -> None:
    clock = Clock()
    guard = StallGuard(1, named, clock)
    guard.look(0, waiting)
    clock.now += 1
    found = guard.look(0, waiting)
    assert found is not None
    assert found.advice == blamed


# ---------------------------------------------------------------- advice

MODEL = {"model": "m-1", "base_url": "http://host:8000/v1", "timeout_s": 77, "attempts": 4}


def advice(stage: str, subjects: Mapping[str, int], **changes: Any) -> str:
    said = Advice(make_plan(sweep(**changes)), Path("runs/mine"))(stage, subjects)
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    ("stage", "subjects", "said"),
    [
        ("reader", {"": 31}, ["31 calls", "reader model m-1 at http://host:8000/v1", "engine.in_flight (5"]),
        ("reader", {"": 31}, ["models.reader.model.timeout_s (77 s)", "models.reader.model.attempts (4)"]),
        ("memory_model", {"": 2}, ["2 calls", "memory model m-1 at http://host:8000/v1", "engine.workers"]),
        ("memory_model", {"": 2}, ["models.memory.timeout_s (77 s)", "models.memory.attempts (4)"]),
        ("history", {"locomo/conv-1": 1}, ["locomo/conv-1", "embedding.device", "embedding.batch_size (8)"]),
        ("embedding", {"": 1}, ["all-MiniLM", "embedding.model"]),
        ("results", {"": 3}, ["disk of runs/mine", "engine.rows_per_part (100)", "engine.flush_s (9)"]),
        ("rendering", {"arm-a": 1}, ["arm arm-a renders"]),
        ("writing", {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}, ["arm a, b, c and 2 more writes"]),
        ("unknown", {"a": 2}, ["2 groups", "arm a"]),
        ("workers", {"": 4}, ["4 workers wait for a CPU", "engine.workers (6)", "nodes"]),
    ],
)
def test_each_stage_has_one_line_that_names_what_to_look_at(
    stage: str, subjects: dict[str, int], said: list[str]
) -> None:
    found = advice(
        stage,
        subjects,
        models={"reader": {"model": MODEL}, "memory": MODEL},
        embedding={"batch_size": 8},
        engine={"in_flight": 5, "rows_per_part": 100, "flush_s": 9, "workers": 6},
    )
    assert all(part in found for part in said), found


def test_a_password_in_an_address_is_not_said() -> None:
    model = {**MODEL, "base_url": "http://someone:secret@host:8000/v1"}
    found = advice("reader", {"": 1}, models={"reader": {"model": model}})
    assert "http://host:8000/v1" in found
    assert "secret" not in found
