"""A pilot's instances tell what all take, and what the planned pairs can detect."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from flexmem.analysis.estimates import detectable, estimates, expected
from flexmem.analysis.frames import load

from .runs import RunFolder, episode

USAGE = {"reader_output_tokens": 10, "usd": 0.5, "reader": "m", "metric": "f1"}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Two finished instances of two questions each, read by two arms; one arm's memory is written by a model."""
    made = RunFolder(tmp_path / "run")
    made.plan([{"arm": arm, "n": 4, "reader": "m"} for arm in ("a", "b")])
    made.write(
        "episodes",
        [
            episode(
                arm,
                f"{instance}q{number}",
                instance=instance,
                score=score,
                build=f"{arm}{instance}",
                reader_input_tokens=tokens,
                **USAGE,
            )
            for arm, scores in (("a", (1.0, 1.0)), ("b", (0.0, 0.5)))
            for instance, tokens, score in (("i1", 100, scores[0]), ("i2", 300, scores[1]))
            for number in range(2)
        ],
    )
    made.write(
        "builds",
        [
            {
                "build": f"a{instance}",
                "benchmark": "bench",
                "instance": instance,
                "arm": "a",
                "phase": phase,
                "memory_calls": 3,
                "memory_input_tokens": 1_000,
                "memory_output_tokens": 50,
                "usd": 1.0,
            }
            for instance in ("i1", "i2")
            for phase in ("written", "read")
        ],
    )
    return made


def test_a_role_s_part_is_the_mean_instance_times_their_number(folder: RunFolder) -> None:
    reader, memory = estimates(load(folder.path), {"bench": 10})
    assert (reader.role, memory.role) == ("reader", "memory")
    # Each instance has 2 questions x 2 arms; i1's prompts have 100 tokens, i2's 300.
    assert reader.calls.value == 40
    assert reader.input_tokens.value == 10 * (400 + 1_200) / 2
    assert reader.usd.value == 20
    assert (reader.calls.low, reader.calls.high) == (40, 40)
    assert memory.calls.value == 60
    assert memory.input_tokens.value == 20_000
    assert memory.usd.value == 20


def test_an_interval_by_hand() -> None:
    # Mean 2, s = sqrt(2); t(1, 0.975) = 12.706; 8 are left: half = 12.706 * sqrt(2) * sqrt(8 + 64 / 2).
    found = expected(np.array([1.0, 3.0]), 10)
    assert found.value == 20
    assert found.high == pytest.approx(20 + 12.7062 * math.sqrt(2) * math.sqrt(40), rel=1e-4)
    assert found.low == 4  # what the pilot took is known
    done = expected(np.array([1.0, 3.0]), 2)
    assert (done.value, done.low, done.high) == (4, 4, 4)
    assert expected(np.array([2.0]), 5) == type(found)(10.0, None, None)
    assert expected(np.array([2.0, float("nan")]), 5).value is None


def test_an_instance_that_a_cell_has_not_finished_is_left_out(folder: RunFolder) -> None:
    folder.write("episodes", [episode("a", "i3q1", instance="i3", reader_input_tokens=9_999, **USAGE)])
    reader, _ = estimates(load(folder.path), {"bench": 10})
    assert reader.calls.value == 40


def test_what_can_be_detected_by_hand(folder: RunFolder) -> None:
    (found,) = detectable(load(folder.path), {"bench": 100})
    # a - b is 1 in i1 and 0.5 in i2: s = 0.35355; t(99, 0.975) + t(99, 0.8) = 1.98422 + 0.84523.
    assert found.comparisons == 1
    assert found.median == pytest.approx((1.98422 + 0.84523) * 0.353553 / 10, rel=1e-4)
    assert found.most == found.median


def test_a_sweep_of_one_instance_detects_nothing(folder: RunFolder) -> None:
    """Student's t has no degree of freedom then."""
    (found,) = detectable(load(folder.path), {"bench": 1})
    assert (found.clusters, found.comparisons, found.median, found.most) == (1, 1, None, None)


def test_arms_that_answer_by_rule_are_no_calls(folder: RunFolder) -> None:
    before = estimates(load(folder.path), {"bench": 10})
    folder.plan([{"arm": arm, "n": 4, "reader": "m"} for arm in ("a", "b", "rule")])
    by_rule = {**USAGE, "reader_output_tokens": 0, "usd": 0.0}
    questions = [(instance, number) for instance in ("i1", "i2") for number in range(2)]
    folder.write(
        "episodes",
        [episode("rule", f"{i}q{n}", instance=i, reader_input_tokens=0, **by_rule) for i, n in questions],
    )
    assert estimates(load(folder.path), {"bench": 10}) == before


def test_a_reader_that_does_not_say_what_it_took_was_called(tmp_path: Path) -> None:
    silent = RunFolder(tmp_path / "silent")
    silent.plan([{"arm": "a", "n": 1, "reader": "m"}])
    unknown = {**USAGE, "reader_output_tokens": None, "usd": None}
    silent.write("episodes", [episode("a", "q", reader_input_tokens=None, **unknown)])
    (reader,) = estimates(load(silent.path), {"bench": 3})
    assert (reader.calls.value, reader.input_tokens.value) == (3, None)


def test_one_instance_tells_no_spread(folder: RunFolder, tmp_path: Path) -> None:
    single = RunFolder(tmp_path / "single")
    single.plan([{"arm": arm, "n": 1, "reader": "m"} for arm in ("a", "b")])
    single.write("episodes", [episode(arm, "q", score=1.0, reader_input_tokens=5, **USAGE) for arm in ("a", "b")])
    (reader,) = estimates(load(single.path), {"bench": 3})
    assert (reader.calls.value, reader.calls.low) == (6, None)
    (found,) = detectable(load(single.path), {"bench": 3})
    assert (found.median, found.most) == (None, None)
