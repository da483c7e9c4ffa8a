"""The policy in a toy world: what it does with all in sight, with nothing, and with memories in between."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.agents.agent_memory import AgentContext
from flexmem.agents.context_bound.cells import all_cells
from flexmem.agents.context_bound.plan import Plan
from flexmem.agents.context_bound.policy import Choice, ContextBoundPolicy, visible_text
from flexmem.agents.context_bound.profiles import PROFILES
from flexmem.agents.context_bound.variation import Variation
from flexmem.agents.context_bound.witness import decode
from flexmem.ports import Message
from tests.agents.context_bound.toy_runs import LIMIT, Relabelled, build_of, run
from tests.agents.context_bound.toy_tasks import TASKS, plan_of

METHODS = {
    "truncation": {},
    "observation_masking": {},
    "piece_retrieval": {},
    "flexa_unit": {"writer": "rule"},
    "flexa_piece": {"writer": "rule"},
    "fused_pieces": {},
}
SEEDS = range(3)
tasks = st.sampled_from(sorted(TASKS))
seeds = st.sampled_from(SEEDS)
profiles = st.sampled_from(sorted(PROFILES))
methods = st.sampled_from(sorted(METHODS))
budgets = st.sampled_from([800, 1_200, 2_000, 3_000])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("profile", PROFILES)
def test_with_all_in_sight_the_task_is_done_in_the_fewest_steps(task: str, seed: int, profile: str) -> None:
    done = run(task, seed, profile)
    assert done.succeeded
    assert done.outcome.repeats.total() == done.outcome.misses.total() == 0
    kinds = Counter(choice.cell.kind for choice in done.policy.choices)
    cells = {choice.cell.id for choice in done.policy.choices}
    assert {cell for cell in cells if cell.startswith("step:")} == {f"step:{id_}" for id_ in done.plan.closure}
    assert kinds["document"] == len({(api.app, api.function) for api in done.plan.apis})
    assert kinds["listing"] <= len({api.app for api in done.plan.apis})
    assert kinds["print"] <= sum(len(step.literals) for step in done.plan.steps)
    assert len(cells) == len(done.episode.steps)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("profile", PROFILES)
def test_with_nothing_in_sight_the_limit_is_reached(task: str, profile: str) -> None:
    lost = run(task, 0, profile, blind=True)
    assert (lost.episode.ended, lost.succeeded, len(lost.episode.steps)) == ("steps", False, LIMIT)
    assert len({choice.cell.id for choice in lost.policy.choices}) <= 3


@settings(max_examples=12, deadline=None)
@given(tasks, seeds, profiles, methods, budgets)
def test_whatever_a_memory_shows(task: str, seed: int, profile: str, method: str, budget: int) -> None:
    """No variable is used that there isn't, every value filled in is a part of the context, budgets are kept, and the
    same episode again is the same, byte for byte.
    """
    first = run(task, seed, profile, budget=budget, build=build_of(method, **METHODS[method]))
    for step, choice in zip(first.episode.steps, first.policy.choices, strict=True):
        text = visible_text(step.context)
        assert "NameError" not in step.observation.text
        assert "KeyError" not in step.observation.text
        assert all(seen.text in text for _, seen in choice.filled)
        if step.context.rendering is not None:
            assert step.context.rendering.tokens <= budget - step.context.window_tokens
        assert sum(tokens.count(message.content) for message in step.context.window) <= budget
        _are_meant(first.plan, choice)
    again = run(task, seed, profile, budget=budget, build=build_of(method, **METHODS[method]))
    assert again.trajectory == first.trajectory


def _are_meant(plan: Plan, choice: Choice) -> None:
    """What was filled in is what the plan means, and a token one of the world's."""
    values = {value.key: value for step in plan.steps for value in step.literals}
    for key, seen in choice.filled:
        if key in values:
            assert seen.value == values[key].value == decode(seen.text, values[key].form)
        else:
            assert str(seen.value).startswith("eyJ")
            assert str(seen.value).endswith(".end")


@settings(max_examples=10, deadline=None)
@given(tasks, seeds, profiles, methods, budgets)
def test_labels_and_headings_of_a_method_do_not_matter(
    task: str, seed: int, profile: str, method: str, budget: int
) -> None:
    plain = run(task, seed, profile, budget=budget, build=build_of(method, **METHODS[method]))
    build = Relabelled(build_of(method, **METHODS[method]))
    other = run(task, seed, profile, budget=budget, build=build)  # type: ignore[arg-type]
    assert other.trajectory == plain.trajectory


def test_every_cell_that_is_run_is_one_that_a_recording_knows() -> None:
    for task in TASKS:
        plan = plan_of(task, 0)
        known = {cell.code for cell in all_cells(plan)}
        done = run(task, 0, "P1", budget=1_200, build=build_of("truncation"))
        assert {choice.cell.code for choice in done.policy.choices} <= known


def test_nothing_is_kept_from_step_to_step() -> None:
    """A policy that is asked for its hundredth step does what a new one does in the same context."""
    plan, variation = plan_of("debts", 1), Variation.draw("debts", 1)
    used, new = (ContextBoundPolicy(plan, PROFILES["P1"], variation) for _ in range(2))
    done = run("debts", 1, "P1")
    for number, context in enumerate(done.contexts):
        used.choose(visible_text(context), number)
    for number in (5, 11, 17):
        text = visible_text(done.contexts[number])
        assert used.choose(text, number).cell == new.choose(text, number).cell


def test_the_memory_is_seen_without_its_heading_and_the_window_whole() -> None:
    context = AgentContext(None, (Message("assistant", "a"), Message("user", "b")), 2)
    assert visible_text(context) == "a\nb"


def test_a_memorys_tools_are_left_alone() -> None:
    policy = ContextBoundPolicy(plan_of("likes", 0), PROFILES["P1"], Variation.draw("likes", 0))
    decision = asyncio.run(policy.decide(AgentContext(None, (), 0), ()))
    assert decision.tool is None
    assert decision.action.startswith("pin_profile = apis.supervisor")


@pytest.mark.parametrize(("profile", "first"), [("P1", "step"), ("P2", "listing")])
def test_documentation_comes_first_or_just_in_time(profile: str, first: str) -> None:
    chosen = run("likes", 0, profile).policy.choices[0]
    assert chosen.cell.id.startswith(first)


def test_strict_habits_put_the_token_itself_into_the_code() -> None:
    strict, plain = run("likes", 0, "P5"), run("likes", 0, "P1")
    assert any("access_token='eyJ" in choice.cell.code for choice in strict.policy.choices)
    assert not any("eyJ" in choice.cell.code for choice in plain.policy.choices)
    assert [choice.cell.id for choice in strict.policy.choices].count("document:shop.like_good") == 1


def _after(name: str, done: int, profile: str) -> str:
    """Which cell comes next where nothing but the last of ``done`` goals is visible."""
    plan = plan_of(name, 1)
    policy = ContextBoundPolicy(plan, PROFILES[profile], Variation.draw(name, 1))
    return policy.choose(plan.by_id[plan.goals[done - 1]].code, 0).goal


def test_what_tells_that_earlier_goals_are_done() -> None:
    goals = plan_of("likes", 1).goals  # three pages in order, a result, then items in order
    assert _after("likes", 2, "P1") == goals[2]
    assert _after("likes", 2, "P6") == goals[0]
    assert _after("likes", 4, "P1") == goals[0]
    assert _after("likes", 4, "P7") == goals[4]
