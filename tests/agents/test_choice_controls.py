"""The arms that answer multiple-choice questions by a rule."""

from __future__ import annotations

import pytest

from flexmem.agents.choice_controls import CHOICE_CONTROLS, reply_by_rule
from flexmem.agents.controls import CONTROLS, WITHOUT_BUDGET

OPTIONS = ["oak tree", "ash", "birch trees", "elm", "birch trees"]


def test_each_is_a_control_arm_without_a_budget() -> None:
    assert set(CHOICE_CONTROLS) == {"always_longest", "length_rule", "chance"}
    assert set(CHOICE_CONTROLS) <= set(CONTROLS)
    assert set(CHOICE_CONTROLS) <= WITHOUT_BUDGET


@pytest.mark.parametrize(
    ("control", "rule", "reply"),
    [
        ("always_longest", "longest", "(c)"),
        ("always_longest", "shortest", "(c)"),
        ("length_rule", "longest", "(c)"),
        ("length_rule", "shortest", "(b)"),
        ("chance", "longest", None),
    ],
)
def test_length_decides_and_of_equal_lengths_the_first(control: str, rule: str, reply: str | None) -> None:
    assert reply_by_rule(control, OPTIONS, rule) == reply


@pytest.mark.parametrize(
    ("control", "options", "rule"),
    [("no_memory", OPTIONS, "longest"), ("length_rule", OPTIONS, "middle"), ("chance", [], "longest")],
)
def test_what_there_is_no_rule_for_is_refused(control: str, options: list[str], rule: str) -> None:
    with pytest.raises(ValueError, match=r"no rule|without options"):
        reply_by_rule(control, options, rule)
