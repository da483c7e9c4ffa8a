"""What an episode tells of its repeats, of what was lost, and of where that last stood."""

from __future__ import annotations

import pytest

from flexmem.agents.context_bound.outcome import PLACES, REPEAT_CLASSES, describe
from flexmem.agents.context_bound.plan import Plan, PlanError, Step
from flexmem.agents.context_bound.policy import ContextBoundPolicy
from flexmem.agents.context_bound.profiles import PROFILES
from flexmem.agents.context_bound.variation import Variation
from tests.agents.context_bound.toy_runs import build_of, run
from tests.agents.context_bound.toy_tasks import plan_of


def test_repeats_are_counted_by_class_and_losses_by_place() -> None:
    lost = run("debts", 0, "P1", budget=1_200, build=build_of("truncation"))
    outcome = lost.outcome
    cells = [choice.cell for choice in lost.policy.choices]
    assert outcome.repeats.total() == len(cells) - len({cell.id for cell in cells}) > 0
    assert set(outcome.repeats) <= set(REPEAT_CLASSES.values())
    assert outcome.misses.total() == outcome.last_seen.total() > 0
    assert set(outcome.last_seen) <= set(PLACES)
    assert outcome.last_seen["window"] + outcome.last_seen["raw"] + outcome.last_seen["excerpt"] > 0


def test_what_was_never_to_be_seen_stood_nowhere() -> None:
    lost = run("likes", 0, "P1", blind=True)
    assert set(lost.outcome.last_seen) == {"nowhere"}
    assert lost.outcome.misses["name"] > 0


def test_an_effect_that_succeeds_twice_is_wrong() -> None:
    plan = plan_of("debts", 0)
    policy = ContextBoundPolicy(plan, PROFILES["P1"], Variation.draw("debts", 0))
    done = run("debts", 0, "P1")
    paying = next(choice for choice in done.policy.choices if choice.cell.id.endswith("_pay"))
    policy.choices = [paying, paying, paying]
    said = ["Execution failed. Traceback:", "paid", "paid"]
    outcome = describe(policy, plan, done.contexts[:3], said)
    assert (outcome.wrong_effects, outcome.repeats["effect"]) == (1, 2)


def test_every_episode_has_the_same_measures() -> None:
    full = run("likes", 0, "P1").outcome.measures()
    lost = run("likes", 0, "P1", budget=800, build=build_of("flexa_unit", writer="rule")).outcome.measures()
    assert list(full) == list(lost)
    assert full["repeats"] == full["misses"] == full["merged_lines"] == 0
    assert lost["repeats"] > 0
    assert lost["hidden_records"] >= 0


def test_a_plan_that_contradicts_itself_is_refused() -> None:
    plan = plan_of("likes", 0)
    for steps, goals in (
        ((*plan.steps, Step("x", "y = unbound_name", "bind")), plan.goals),
        ((*plan.steps, Step("x", plan.steps[0].code, "bind")), plan.goals),
        ((*plan.steps, Step("x", "print({lit:nothing})", "effect")), plan.goals),
        (plan.steps, ("nowhere",)),
    ):
        with pytest.raises(PlanError, match="plan of likes"):
            Plan(plan.task, plan.instruction, steps, goals, plan.final, plan.conventions)
