"""A recorded world says what the real one says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.agents.agent_memory import AgentMemory
from flexmem.agents.context_bound.policy import ContextBoundPolicy
from flexmem.agents.context_bound.profiles import PROFILES
from flexmem.agents.context_bound.variation import Variation
from flexmem.agents.environment import Observation, cut_observation
from flexmem.agents.loop import Episode, Limits, run_episode
from flexmem.benchmarks.context_bound.environments import unbounded_trajectory
from flexmem.benchmarks.context_bound.recorder import record
from flexmem.benchmarks.context_bound.recording import NotCarriedOutError, Recording, RecordingError
from flexmem.benchmarks.context_bound.recording_files import (
    Index,
    read_index,
    read_recording,
    recording_digest,
    recording_path,
    write_index,
    write_recording,
)
from flexmem.benchmarks.context_bound.replay import Replay
from flexmem.benchmarks.protocol import DataError, DataMissingError
from tests.agents.context_bound.toy_runs import EMBEDDER, LIMIT, build_of, run
from tests.agents.context_bound.toy_tasks import TASKS, plan_of
from tests.benchmarks.context_bound.toy_worlds import ToyWorlds, recording_of

METHODS = {"truncation": {}, "observation_masking": {}, "piece_retrieval": {}, "flexa_unit": {"writer": "rule"}}


def replayed(recording: Recording, profile: str, budget: int | None, method: str) -> tuple[Episode, Replay, int]:
    """An episode in the recorded world, and how many steps of it the recording foresees."""
    plan, replay = recording.plan, Replay(recording)
    policy = ContextBoundPolicy(plan, PROFILES[profile], Variation.draw(plan.task, recording.seed))
    build = build_of(method, **METHODS[method]) if budget is not None else None
    memory = AgentMemory(plan.instruction, budget, EMBEDDER, build, history=f"{plan.task}/{recording.seed}")
    foreseen = 0

    class Recorded:
        async def act(self, action: str) -> Observation:
            nonlocal foreseen
            text = replay.execute(action)
            foreseen += replay.exact
            return Observation(cut_observation(text), len(text), replay.done)

    episode = Episode()
    asyncio.run(run_episode(episode, memory, policy, Recorded(), Limits(steps=LIMIT)))
    return episode, replay, foreseen


@settings(max_examples=10, deadline=None)
@given(
    st.sampled_from(sorted(TASKS)),
    st.integers(0, 2),
    st.sampled_from(sorted(PROFILES)),
    st.sampled_from(sorted(METHODS)),
    st.sampled_from([None, 900, 1_500, 2_500]),
)
def test_an_episode_is_the_real_one_byte_for_byte(
    task: str, seed: int, profile: str, method: str, budget: int | None
) -> None:
    recording = recording_of(task, seed)
    build = build_of(method, **METHODS[method]) if budget is not None else None
    real = run(task, seed, profile, budget=budget, build=build)
    episode, replay, foreseen = replayed(recording, profile, budget, method)
    trajectory = [(one.decision.thought, one.decision.action, one.observation.text) for one in episode.steps]
    assert trajectory[:foreseen] == real.trajectory[:foreseen]
    assert replay.verdict() == real.succeeded
    assert replay.exact is (foreseen == len(trajectory))


def test_a_recording_tells_what_changes_and_what_may_not_be_repeated() -> None:
    likes, debts = recording_of("likes", 0), recording_of("debts", 0)
    assert len(likes.changes) == 8
    assert not likes.spoiling
    assert len(debts.changes) == len(debts.spoiling) == 4
    assert all("already" in text for text in likes.repeated.values())
    assert any(len(replies) > 1 for replies in debts.replies.values())


def test_tokens_differ_from_log_in_to_log_in() -> None:
    recording = recording_of("debts", 0)
    replay = Replay(recording)
    codes = [step.code for step in recording.plan.steps if step.logs_in]
    said = [replay.execute(code) for code in (*codes, *codes)]
    assert len(set(said)) == len(said) == 4


def test_what_is_no_cell_of_the_plan_is_refused() -> None:
    replay = Replay(recording_of("likes", 0))
    with pytest.raises(RecordingError, match="no cell of the recorded plan: print"):
        replay.execute("print(1)")


def test_the_task_is_not_carried_out_before_it_is_closed_nor_without_an_effect() -> None:
    recording = recording_of("likes", 0)
    whole = [step.action for step in unbounded_trajectory(recording, "P1")]
    for skipped, verdict in ((None, True), (len(whole) - 1, False), (len(whole) - 2, False)):
        replay = Replay(recording)
        for number, action in enumerate(whole):
            if number != skipped:
                replay.execute(action)
        assert replay.verdict() is verdict


def test_a_plan_that_does_not_carry_out_the_task_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS["likes"].wanted, "answer", 3)
    with pytest.raises(NotCarriedOutError, match="likes: seed 0"):
        asyncio.run(record(plan_of("likes", 0), 0, ToyWorlds()))


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    recording = recording_of("debts", 1)
    write_recording(tmp_path, recording)
    path = recording_path(tmp_path, "debts", 1)
    assert read_recording(path, recording_digest(path)) == recording
    assert [found.name for found in tmp_path.iterdir()] == ["debts.1.json"]


def test_a_recording_that_is_another_or_damaged_is_refused(tmp_path: Path) -> None:
    path = recording_path(tmp_path, "x", 0)
    with pytest.raises(DataMissingError, match=r"x\.0\.json: can't be read"):
        recording_digest(path)
    path.write_text("{}")
    with pytest.raises(DataError, match="another recording"):
        read_recording(path, "0" * 64)
    with pytest.raises(DataError, match="no recording of format"):
        read_recording(path, recording_digest(path))


def test_an_index_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_index(tmp_path) is None
    index = Index("toys", ("a", "b"), {"c": "line 3"})
    write_index(tmp_path, index)
    assert read_index(tmp_path) == index
    (tmp_path / "index.json").write_text('{"format": 0}')
    with pytest.raises(DataError, match="no index of format"):
        read_index(tmp_path)
