"""What a cell costs: per build, per question, shared and alone (docs/methods.md E.8)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from flexmem.analysis.costs import costs
from flexmem.analysis.frames import load

from .runs import Row, RunFolder, episode


def built(name: str, arm: str, tokens: int, phase: str = "written", minute: int = 0) -> Row:
    return {
        "build": name,
        "benchmark": "bench",
        "instance": "i1",
        "arm": arm,
        "repeat": 0,
        "memory_calls": 1,
        "memory_input_tokens": tokens - 10,
        "memory_output_tokens": 10,
        "usd": tokens / 1000,
        "phase": phase,
        "finished_at": datetime(2026, 1, 1, 0, minute, tzinfo=UTC),
    }


def asked(arm: str, question: str, build: str, tokens: int, asks: int = 0) -> Row:
    return episode(
        arm,
        question,
        budget=1000,
        reader="m",
        score=1.0,
        build=build,
        reader_input_tokens=tokens - 5,
        reader_output_tokens=5,
        usd=tokens / 1000,
        memory_calls=int(asks > 0),
        memory_input_tokens=asks,
        memory_output_tokens=0,
        memory_usd=asks / 1000,
    )


def test_a_build_is_shared_by_the_questions_that_it_served(folder: RunFolder) -> None:
    # Two questions of 100 and 300 tokens; one build, written for 1,000 tokens and merged in for 200 when it was read.
    # Shared: 200 + 1,200 / 2 = 800. Alone: 200 + 1,200 = 1,400. The merge is in the build though an episode caused it.
    folder.plan([{"arm": "a", "budget": 1000, "reader": "m", "n": 2}])
    folder.write("episodes", [asked("a", "q1", "b1", 100, asks=200), asked("a", "q2", "b1", 300)])
    folder.write("builds", [built("b1", "a", 1000), built("b1", "a", 200, "read", 1)])
    (cost,) = costs(load(folder.path))
    assert (cost.read_tokens, cost.build_tokens, cost.ask_tokens, cost.served) == (200, 1200, 0, 2)
    assert (cost.tokens, cost.tokens_alone) == (800, 1400)
    assert (cost.usd, cost.usd_alone) == (pytest.approx(0.8), pytest.approx(1.4))


def test_what_every_question_asks_anew_is_its_own(folder: RunFolder) -> None:
    # As above, but the 200 tokens of reading are two look-ups of 50 and 150: 200 + 100 + 1,000 / 2 = 800 shared and
    # 200 + 100 + 1,000 = 1,300 alone. Sharing them out as if they lasted would give 1,400 alone.
    folder.plan([{"arm": "a", "budget": 1000, "reader": "m", "n": 2}], asking=["a"])
    folder.write("episodes", [asked("a", "q1", "b1", 100, asks=50), asked("a", "q2", "b1", 300, asks=150)])
    folder.write("builds", [built("b1", "a", 1000), built("b1", "a", 200, "read", 1)])
    (cost,) = costs(load(folder.path))
    assert (cost.read_tokens, cost.build_tokens, cost.ask_tokens) == (200, 1000, 100)
    assert (cost.tokens, cost.tokens_alone) == (800, 1300)
    assert (cost.usd, cost.usd_alone) == (pytest.approx(0.8), pytest.approx(1.3))


def test_a_build_that_was_written_twice_counts_once(folder: RunFolder) -> None:
    folder.plan([{"arm": "a", "budget": 1000, "reader": "m", "n": 1}])
    folder.write("episodes", [asked("a", "q1", "b1", 100)])
    folder.write("builds", [built("b1", "a", 1000), built("b1", "a", 1000, minute=5)])
    (cost,) = costs(load(folder.path))
    assert cost.build_tokens == 1000


def test_an_unknown_part_makes_the_sum_unknown(folder: RunFolder) -> None:
    folder.plan([{"arm": "a", "budget": 1000, "reader": "m", "n": 1}])
    folder.write("episodes", [asked("a", "q1", "b1", 100) | {"usd": None}])
    folder.write("builds", [built("b1", "a", 1000)])
    (cost,) = costs(load(folder.path))
    assert (cost.tokens, cost.usd, cost.usd_alone) == (1100, None, None)
