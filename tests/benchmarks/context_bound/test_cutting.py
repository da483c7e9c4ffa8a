"""Solutions become plans: pages, items, readings, names and marks, as a seed has them. The rest is refused."""

from __future__ import annotations

import ast
import asyncio
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.agents.context_bound.needs import needs_of
from flexmem.agents.context_bound.plan import Plan
from flexmem.agents.context_bound.variation import STYLES, Variation
from flexmem.benchmarks.context_bound.cutting import cut
from flexmem.benchmarks.context_bound.naming import Namer
from flexmem.benchmarks.context_bound.program import CuttingError, read_program
from tests.agents.context_bound.toy_tasks import ALL, DEBTS, LIKES, TASKS, plan_of
from tests.agents.context_bound.toy_world import CONVENTIONS, Toy

HEAD = LIKES.solution[: LIKES.solution.index("    profile")]


def cut_as(solution: str, **changes: object) -> Plan:
    """A plan of a variation that is set by hand."""
    world = Toy()

    async def execute(code: str) -> str:
        return world.execute(code)

    plain = Variation.draw("x", 0).in_solution_order()
    variation = replace(plain, **{"page_size": 10, "eye": 0.0, "style": "tag last", **changes})  # type: ignore[arg-type]
    return asyncio.run(cut(solution, "Do it.", variation, CONVENTIONS, execute))


def codes(plan: Plan, kind: str = "") -> list[str]:
    """The plan's code in its own order, tags taken off its names."""
    tagged = re.compile(r"\b(\w+)_[a-z]{3}\b(?=[ ,)\[]|$)")
    names = {name for step in plan.steps for name in step.needs.binds}
    return [
        tagged.sub(lambda match: match[1] if match[0] in names else match[0], step.code)
        for step in plan.in_order
        if kind in ("", step.kind)
    ]


def test_pages_become_steps_of_the_seeds_size() -> None:
    ten, five = cut_as(LIKES.solution), cut_as(LIKES.solution, page_size=5)
    assert [len([step for step in plan.steps if step.page]) for plan in (ten, five)] == [3, 5]
    page = next(code for code in codes(ten) if code.startswith("goods_0"))
    assert "page_index=0, page_limit=10" in page
    result = next(code for code in codes(ten) if code.startswith("cheap"))
    assert result.startswith("cheap = [row for row in goods_0")
    assert "goods_1" in result
    assert "goods_2" in result


def test_items_become_steps_by_code_or_by_eye() -> None:
    by_code = codes(cut_as(LIKES.solution), "effect")
    assert by_code[0].startswith("print(apis.shop.like_good(good_id=cheap[0]['good_id'], access_token=shop_token")
    assert len(by_code) == 8
    by_eye = cut_as(LIKES.solution, eye=1.0)
    assert "good_id={lit:good_0_good_id}" in codes(by_eye, "effect")[0]
    (value,) = next(step for step in by_eye.steps if step.kind == "effect").literals
    assert value.value == 100
    assert re.fullmatch(r"print\(cheap_\w{3}\[0\]\)", value.display)


def test_items_of_pages_are_taken_from_their_page_and_skipped_as_the_solution_does() -> None:
    plan = cut_as(ALL.solution, page_size=8)
    effects = codes(plan, "effect")
    assert len(effects) == len(ALL.wanted["liked"])
    assert "goods_1" in effects[1] or "goods_0" in effects[1]
    assert codes(plan)[-1].startswith("apis.supervisor.complete_task(answer=len(goods_0")


def test_acting_as_one_reads_puts_items_behind_their_page() -> None:
    early = cut_as(ALL.solution, page_size=8)
    late = cut_as(ALL.solution, page_size=8, order="read all, then act")
    pages = {step.id for step in early.steps if step.page}
    assert [goal in pages for goal in late.goals[:3]] == [True] * 3
    assert [goal in pages for goal in early.goals[:3]] != [True] * 3
    assert set(early.goals) == set(late.goals)


def test_readings_become_values_with_the_words_around_them() -> None:
    by_eye = cut_as(DEBTS.solution, eye=1.0)
    step = next(step for step in by_eye.steps if "debts" in step.id)
    assert [value.value for value in step.literals] == ["5.25", "8.25"]
    assert "float({lit:first})" in step.code
    by_code = codes(cut_as(DEBTS.solution))
    assert any(code.startswith("import re\nfirst = re.search('cost \\\\$(") for code in by_code)


def test_a_list_that_grows_in_a_loop_is_put_together_after_it() -> None:
    found = codes(cut_as(DEBTS.solution))
    assert "letter_0 = apis.notes.show_note(" in "\n".join(found)
    together = next(code for code in found if code.startswith("letters"))
    assert together.startswith("letters = [letter_0['content'], letter_1['content']]")


def test_a_call_whose_result_nobody_reads_is_an_effect() -> None:
    plan = cut_as(DEBTS.solution)
    functions = [step.marks[0].function for step in plan.in_order if step.kind == "effect"]
    assert functions == ["pay", "pay", "append", "append"]


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(TASKS)), st.integers(0, 5))
def test_marks_tell_effects_apart_and_series_are_walked_in_order(task: str, seed: int) -> None:
    plan = plan_of(task, seed)
    marks = [mark for step in plan.steps for mark in step.marks]
    assert len(marks) == len(set(marks)) == sum(step.kind == "effect" for step in plan.steps)
    places: dict[str, list[int]] = {}
    for goal in plan.goals:
        series = plan.by_id[goal].series
        if series is not None:
            places.setdefault(series.name, []).append(series.place)
    assert all(found == list(range(len(found))) for found in places.values())


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(TASKS)), st.integers(0, 5))
def test_names_can_not_be_guessed(task: str, seed: int) -> None:
    plan, solution = plan_of(task, seed), TASKS[task].solution
    names = [name for step in plan.steps for name in step.needs.binds]
    own = {node.id for node in ast.walk(ast.parse(solution)) if isinstance(node, ast.Name)}
    assert not own.intersection(names)
    assert not any(one in other for one in names for other in names if one != other)


@pytest.mark.parametrize("style", STYLES)
def test_names_are_of_one_style(style: str) -> None:
    namer = Namer(style, Variation.draw("x", 0).stream("names"), "")  # type: ignore[arg-type]
    pattern = {"tag last": r"a_b_\d+_[a-z]{3}", "tag first": r"[a-z]{3}_a_b_\d+", "camel": r"aB\d+[A-Z][a-z]{2}"}[style]
    made = [namer.name(f"a_b_{number}") for number in range(20)]
    assert all(re.fullmatch(pattern, name) for name in made)
    assert len(set(made)) == 20


def test_a_plans_own_names_are_all_bound() -> None:
    for task in TASKS:
        plan = plan_of(task, 3)
        bound = {name for step in plan.steps for name in step.needs.binds}
        assert all(set(needs_of(step.code).names) <= bound for step in plan.steps)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("    while rows:\n        rows.pop()\n", "line 10 of its solution can't be cut"),
        ("    with open('x') as f:\n        pass\n", "no bind, reading, page loop, item loop or API call (with open"),
        ("    for x in [1]:\n        for y in [2]:\n            apis.shop.like_good(good_id=y)\n", "line 11"),
        ("    x = read('what', text)\n", "a reading is name = read("),
        ("    x = [read('a', 'b', 'c')]\n", "read within an expression"),
        ("    x = f'{apis}'\n", "within an expression"),
        ("    x = y = 3\n", "line 10"),
        ("    a, b = 1, 2\n", "line 10"),
        (
            "    rows = []\n    page = 0\n    while True:\n        got = apis.shop.search_goods(page_index=page)\n"
            "        if not got:\n            break\n        rows += got\n        page += 1\n",
            "one keyword for the page and a constant limit",
        ),
    ],
)
def test_what_leaves_the_idioms_is_refused_with_its_line(body: str, said: str) -> None:
    with pytest.raises(CuttingError, match=re.escape(said)):
        read_program(f"{HEAD}{body}    apis.supervisor.complete_task()\n", "x")


def test_a_solution_that_does_not_end_the_task_is_refused() -> None:
    with pytest.raises(CuttingError, match="the last statement is complete_task"):
        read_program(f"{HEAD}    x = 3\n", "x")
    with pytest.raises(CuttingError, match="no Python"):
        read_program("def solution(", "x")
    with pytest.raises(CuttingError, match="ends with `def solution"):
        read_program("x = 3\n", "x")
    with pytest.raises(CuttingError, match="imports and the helper `read` only"):
        read_program("x = 3\n" + HEAD + "    apis.supervisor.complete_task()\n", "x")


def test_a_solution_that_fails_is_refused_with_its_line() -> None:
    with pytest.raises(CuttingError, match=r"(?s)line 10 of its solution fails in the world: .*KeyError") as refused:
        cut_as(f"{HEAD}    x = {{}}['a']\n    apis.supervisor.complete_task(answer=x)\n")
    assert "Traceback" in str(refused.value)


def test_a_list_that_does_not_begin_empty_may_not_grow() -> None:
    body = "    x = [1]\n    for y in [2, 3]:\n        x = x + [y]\n"
    with pytest.raises(CuttingError, match="x does not begin as an empty list"):
        cut_as(f"{HEAD}{body}    apis.supervisor.complete_task(answer=x)\n")


def test_loops_over_other_things_than_lists_of_variables() -> None:
    body = (
        "    token = apis.shop.login(username='ada@example.com', password='shop-pw')['access_token']\n"
        "    for number, words in sorted({3: 'a', 4: 'b'}.items()):\n"
        "        apis.shop.pay(email=words, amount=number, access_token=token)\n"
        "    for word in ['x', 'y']:\n"
        "        apis.shop.pay(email=word, amount=1, access_token=token)\n"
        "    names = {'only'}\n"
        "    for name in names:\n"
        "        apis.shop.pay(email=name, amount=2, access_token=token)\n"
    )
    effects = codes(cut_as(f"{HEAD}{body}    apis.supervisor.complete_task()\n"), "effect")
    assert "email=number_words_list[0][1], amount=number_words_list[0][0]" in effects[0]
    assert "email='x'" in effects[2]
    assert "email=name_list[0]" in effects[4]
