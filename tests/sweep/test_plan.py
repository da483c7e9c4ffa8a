"""Plans and their fingerprints: what an episode's key stands for, and what it does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.protocol import Instance
from flexmem.history import Turn
from flexmem.sweep.config import ConfigError
from flexmem.sweep.plan import Group, LoadedBenchmark, Plan, make_plan

from .harness import LOCOMO, LOCOMO_SMALL, SYNTHETIC, sweep, with_questions

READER: dict[str, Any] = {"reader": {"model": {"provider": "scripted", "model": "echo"}}}
MEMORY: dict[str, Any] = {"memory": {"provider": "scripted", "model": "json_record"}}
BY_MODEL = {"method": "flexa_piece", "label": "by model", "options": {"writer": "model"}}


def planned(**changes: Any) -> Plan:
    return make_plan(sweep(**{"arms": ["no_memory", "piece_retrieval", "flexa_unit"], **changes}))


def keys(plan: Plan) -> set[str]:
    """Keys of all episodes; none comes twice."""
    found = [task.key for group in plan.groups() for task in group.episodes]
    assert len(set(found)) == len(found)
    return set(found)


def builds(plan: Plan) -> set[str]:
    return {group.build for group in plan.groups()}


def by_question(plan: Plan) -> dict[tuple[str, str, str, int, int | None, str], str]:
    """Keys by what they stand for: the question's id in place of its position."""
    found = {}
    for group in plan.groups():
        loaded = next(loaded for loaded in plan.benchmarks if loaded.name == group.benchmark)
        questions = loaded.instances[group.instance].questions
        for task in group.episodes:
            question = questions[task.question].question_id
            place = (group.benchmark, group.instance, group.arm, group.repeat, task.budget, question)
            found[place] = task.key
    return found


def with_instances(plan: Plan, change: Any) -> Plan:
    """The plan with ``change(instance)`` in place of each instance."""

    def changed(loaded: LoadedBenchmark) -> LoadedBenchmark:
        return LoadedBenchmark(
            loaded.benchmark, {name: change(instance) for name, instance in loaded.instances.items()}
        )

    return replace(plan, benchmarks=[changed(loaded) for loaded in plan.benchmarks], _instances={})


# ---------------------------------------------------------------- what a plan holds


def test_the_size_of_a_plan_is_that_of_its_groups_whatever_is_done() -> None:
    two = {"name": "synthetic", "options": {"conversations": 2, "tokens": 3_000, "questions": 3}}
    plan = planned(benchmarks=[two, LOCOMO], budgets=[400, 800], repeats=2)
    first = next(iter(plan.benchmarks[0].instances))
    plan = with_instances(plan, lambda one: replace(one, questions=()) if one.instance_id == first else one)
    every = sorted(keys(plan))
    whole = next(iter(plan.groups())).episodes
    for done in (set(), set(every[::3]), {task.key for task in whole}, set(every), {"another plan's"}):
        groups = list(plan.groups(done))
        assert plan.size(done) == (len(groups), sum(len(group.episodes) for group in groups))
    assert plan.size()[1] == len(every)
    assert plan.size(set(every)) == (0, 0)


def test_the_plan_is_arms_by_budgets_by_questions_and_arms_without_a_budget_run_once() -> None:
    plan = planned(budgets=[400, 800], repeats=2)
    cells = {(cell["arm"], cell["budget"]): cell["n"] for cell in plan.cells()}
    assert cells == {
        ("no_memory", None): 12,
        ("piece_retrieval", 400): 12,
        ("piece_retrieval", 800): 12,
        ("flexa_unit", 400): 12,
        ("flexa_unit", 800): 12,
    }
    assert len(keys(plan)) == sum(cells.values())
    # One build for each arm and repeat; all its budgets and questions come together.
    assert len(builds(plan)) == len(list(plan.groups())) == 3 * 2


def test_what_is_done_is_left_out_and_an_empty_group_is_no_group() -> None:
    plan = planned()
    first, *others = plan.groups()
    done = {task.key for task in first.episodes} | {others[0].episodes[0].key}
    left = list(plan.groups(done))
    assert [group.build for group in left] == [group.build for group in others]
    assert left[0].episodes == others[0].episodes[1:]
    assert not list(plan.groups(list(keys(plan))))


def test_a_plan_calls_no_model_and_needs_no_key() -> None:
    plan = planned(models={"reader": {"model": {"model": "gpt-5.4-mini"}}})
    assert plan.reader is not None
    assert plan.reader["model"]["model"] == "gpt-5.4-mini"
    assert {cell["reader"] for cell in plan.cells()} == {"gpt-5.4-mini"}


# ---------------------------------------------------------------- equal keys


def test_the_same_configuration_has_the_same_keys() -> None:
    assert keys(planned(repeats=2)) == keys(planned(repeats=2))


def test_another_process_finds_the_same_keys(tmp_path: Path) -> None:
    config = sweep(arms=["no_memory", "flexa_unit"])
    path = tmp_path / "sweep.json"
    path.write_text(config.model_dump_json())
    code = (
        "import sys; from pathlib import Path; from flexmem.sweep.config import load_config; "
        "from flexmem.sweep.plan import make_plan; "
        "print(*(task.key for group in make_plan(load_config(Path(sys.argv[1]))).groups() for task in group.episodes))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == keys(make_plan(config))


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "another name"},
        {"out": "elsewhere"},
        {"engine": {"workers": 7, "in_flight": 3, "rows_per_part": 2, "flush_s": 9.0, "group_attempts": 1}},
        {"embedding": {"device": "cpu", "batch_size": 8}},
        {"arms": ["flexa_unit", "no_memory", {"method": "piece_retrieval", "label": "bm25"}]},
        {"budgets": ["0.4k", 400]},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_names_labels_order_and_the_engine_are_no_part_of_a_key(changes: dict[str, Any]) -> None:
    assert keys(planned(**changes)) == keys(planned())


def test_a_methods_name_is_no_part_of_a_key_where_its_configuration_is_the_same() -> None:
    named = planned(arms=["flexa_unit.no_excerpt"])
    spelt = planned(arms=[{"method": "flexa_unit", "label": "mine", "options": {"excerpts": False}}])
    assert keys(named) == keys(spelt)


@pytest.mark.parametrize("order", [reversed, lambda questions: sorted(questions, key=lambda one: one.text)])
def test_the_order_of_questions_changes_no_key(order: Any) -> None:
    plan = planned()
    assert by_question(with_questions(plan, order)) == by_question(plan)


def test_how_a_reader_is_reached_is_no_part_of_a_key() -> None:
    model = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    patient = {**model, "timeout_s": 5, "attempts": 2, "deadline_s": 60, "api_key_env": "OTHER_KEY"}
    one, other = ({"reader": {"model": entry}} for entry in (model, patient))
    assert keys(planned(models=one)) == keys(planned(models=other))


# ---------------------------------------------------------------- other keys


def test_another_budget_leaves_the_old_keys_and_the_builds() -> None:
    old, new = planned(budgets=[400]), planned(budgets=[400, 800])
    assert keys(old) < keys(new)
    assert builds(old) == builds(new)


def test_another_arm_or_repeat_leaves_the_old_keys() -> None:
    old = keys(planned())
    assert old < keys(planned(arms=["no_memory", "piece_retrieval", "flexa_unit", "truncation"]))
    assert old < keys(planned(repeats=2))


@pytest.mark.parametrize(
    "change",
    [
        {"arms": [{"method": "flexa_unit", "label": "l", "options": {"excerpt_cap": 256}}]},
        {"arms": ["flexa_piece"]},
        {"models": READER},
        {"embedding": {"model": "another/model"}},
        {"benchmarks": [{**SYNTHETIC, "options": {**SYNTHETIC["options"], "seed": 1}}]},  # type: ignore[dict-item]
        {"benchmarks": [{**SYNTHETIC, "options": {**SYNTHETIC["options"], "unit_tokens": 500}}]},  # type: ignore[dict-item]
    ],
    ids=["option", "method", "reader", "embedder", "data", "cut"],
)
def test_whatever_shapes_a_result_changes_every_key(change: dict[str, Any]) -> None:
    base = {"arms": ["flexa_unit"]}
    assert keys(planned(**base)).isdisjoint(keys(planned(**{**base, **change})))


@pytest.mark.parametrize(
    "changed",
    [
        {"max_tokens": 64},
        {"effort": "high"},
        {"model": {"provider": "scripted", "model": "first_sentence"}},
        {"model": {"model": "m", "base_url": "http://127.0.0.1:9/v1"}},
    ],
    ids=["max_tokens", "effort", "model", "provider"],
)
def test_whatever_shapes_a_readers_reply_changes_every_key(changed: dict[str, Any]) -> None:
    other = {"reader": {**READER["reader"], **changed}}
    assert keys(planned(models=READER)).isdisjoint(keys(planned(models=other)))


def test_every_repeat_has_keys_and_builds_of_its_own() -> None:
    by_repeat: dict[int, set[str]] = {0: set(), 1: set()}
    groups: list[Group] = list(planned(repeats=2).groups())
    for group in groups:
        by_repeat[group.repeat] |= {group.build, *(task.key for task in group.episodes)}
    assert by_repeat[0].isdisjoint(by_repeat[1])


def test_the_memory_model_counts_where_a_method_writes_with_it_and_nowhere_else() -> None:
    arms = [BY_MODEL, "flexa_piece", "oracle_evidence"]
    first = planned(arms=arms, models=MEMORY)
    second = planned(arms=arms, models={"memory": {"provider": "scripted", "model": "garbage"}})
    one, two = by_question(first), by_question(second)
    assert {place[2] for place in one if one[place] != two[place]} == {"by model"}
    assert all(one[place] != two[place] for place in one if place[2] == "by model")


@pytest.mark.parametrize(
    "change",
    [
        {"text": "Another question?"},
        {"answer": "another answer"},
        {"evidence": ()},
        {"question_type": "other"},
        {"scored_by_evidence": False},
        {"asked_at": "1 May 2024"},
        {"details": {"parts": ["x"]}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_question_changes_its_own_keys_only(change: dict[str, Any]) -> None:
    plan = planned()
    other = with_questions(plan, lambda questions: [replace(questions[0], **change), *questions[1:]])
    before, after = by_question(plan), by_question(other)
    changed = {place[-1] for place in before if before[place] != after[place]}
    assert before.keys() == after.keys()
    assert len(changed) == 1
    assert builds(plan) == builds(other)


def test_a_changed_turn_changes_every_key_of_its_history_and_no_other() -> None:
    def retold(instance: Instance) -> Instance:
        if not instance.instance_id.endswith("00"):
            return instance
        first, *others = instance.sessions
        turn = replace(first.turns[0], text=first.turns[0].text + " And so on.")
        return replace(instance, sessions=(replace(first, turns=(turn, *first.turns[1:])), *others))

    options = {"conversations": 2, "tokens": 3_000, "questions": 4}
    plan = planned(benchmarks=[{"name": "synthetic", "options": options}])
    before, after = by_question(plan), by_question(with_instances(plan, retold))
    changed = {place[1][-2:] for place in before if before[place] != after[place]}
    kept = {place[1][-2:] for place in before if before[place] == after[place]}
    assert (changed, kept) == ({"00"}, {"01"})


def test_who_speaks_when_and_how_sessions_are_dated_is_part_of_a_history() -> None:
    def redated(instance: Instance) -> Instance:
        return replace(instance, sessions=tuple(replace(session, date="1 May 2031") for session in instance.sessions))

    def renamed(instance: Instance) -> Instance:
        first, *others = instance.sessions
        turns: tuple[Turn, ...] = tuple(replace(turn, speaker="Somebody") for turn in first.turns)
        return replace(instance, sessions=(replace(first, turns=turns), *others))

    plan = planned()
    for change in (redated, renamed):
        assert builds(plan).isdisjoint(builds(with_instances(plan, change)))


def test_a_file_of_ones_own_is_known_by_content_and_not_by_its_path(tmp_path: Path) -> None:
    moved = shutil.copy(LOCOMO_SMALL, tmp_path / "moved.json")
    content = json.loads(LOCOMO_SMALL.read_text("utf-8"))
    content[1]["conversation"]["session_1"][0]["text"] = "I moved to Bruges last week."
    altered = tmp_path / "altered.json"
    altered.write_text(json.dumps(content), "utf-8")

    def of(path: object) -> dict[Any, str]:
        return by_question(planned(benchmarks=[{"name": "locomo", "options": {"path": str(path)}}]))

    original, changed = of(LOCOMO_SMALL), of(altered)
    assert of(moved) == original
    assert {place[1] for place in original if original[place] != changed[place]} == {"talk-2"}


# ---------------------------------------------------------------- what can't be planned


def problem(**changes: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        planned(**changes)
    return str(raised.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"arms": ["flexa_peace"]}, "unknown method 'flexa_peace'; did you mean 'flexa_piece'?"),
        ({"arms": ["no_memry"]}, "unknown method 'no_memry'; did you mean 'no_memory'?"),
        ({"arms": ["qqq"]}, "unknown method 'qqq'; see `flexmem methods`"),
        (
            {"arms": [{"method": "flexa_unit", "label": "l", "options": {"excerp_cap": 1}}]},
            "method 'flexa_unit' has no option 'excerp_cap'; did you mean 'excerpt_cap'?",
        ),
        (
            {"arms": [{"method": "flexa_unit", "label": "l", "options": {"timeline_share": 2}}]},
            "method 'flexa_unit', option timeline_share: Input should be less than 1",
        ),
        (
            {"arms": [{"method": "no_memory", "label": "l", "options": {"x": 1}}]},
            "control arm 'no_memory' has no options",
        ),
        ({"arms": ["observation_masking"]}, "method 'observation_masking' is for an agent's tasks, not for questions"),
        ({"benchmarks": [{"name": "lokomo"}]}, "no benchmark 'lokomo', did you mean 'locomo'?"),
        (
            {"benchmarks": [{"name": "synthetic", "options": {"conversation": 1}}]},
            "benchmark 'synthetic': no option 'conversation', did you mean 'conversations'?",
        ),
        (
            {"benchmarks": [{"name": "synthetic", "options": {"tokens": 10}}]},
            "benchmark 'synthetic': option 'tokens': Input should be greater than or equal to 1000 (got 10)",
        ),
        ({"arms": [BY_MODEL]}, "an arm writes with a memory model, but models.memory is not configured"),
    ],
)
def test_what_is_unknown_is_named_with_the_nearest_known(changes: dict[str, Any], said: str) -> None:
    assert said in problem(**changes)


def test_a_budget_too_small_for_an_arms_frame_is_found_before_anything_runs() -> None:
    said = problem(arms=["piece_retrieval", "flexa_piece"], budgets=[5, 400])
    assert said.startswith("budget 5 is too small for arm 'flexa_piece': a room of 5 tokens can't hold the timeline's")
    assert planned(arms=["piece_retrieval"], budgets=[5])


def test_a_budget_too_small_for_a_frame_is_found_for_arms_that_write_with_a_model_too() -> None:
    assert "budget 5 is too small for arm 'by model'" in problem(arms=[BY_MODEL], models=MEMORY, budgets=[5])


def test_two_names_for_the_same_arm_are_refused() -> None:
    """They would share their keys, so that one of them would never have results."""
    same = ["flexa_unit.no_excerpt", {"method": "flexa_unit", "label": "mine", "options": {"excerpts": False}}]
    assert "arms 'flexa_unit.no_excerpt' and 'mine' are the same" in problem(arms=same)


def test_a_benchmark_that_is_listed_twice_is_refused() -> None:
    """Questions are found again by benchmark and instance: two sets of questions under one name would mix."""
    one = {"name": "locomo", "options": {**LOCOMO["options"], "categories": [1]}}  # type: ignore[dict-item]
    assert "benchmark 'locomo' is listed twice" in problem(benchmarks=[one, LOCOMO])


def test_a_benchmark_that_is_also_anothers_stand_in_is_refused_where_that_is_needed(tmp_path: Path) -> None:
    gone = {"name": "locomo", "options": {"path": str(tmp_path / "gone.json")}, "otherwise": SYNTHETIC}
    here = {**LOCOMO, "otherwise": SYNTHETIC}
    assert "benchmark 'synthetic' is listed twice" in problem(benchmarks=[SYNTHETIC, gone])
    assert len(planned(benchmarks=[SYNTHETIC, here]).benchmarks) == 2


def test_a_stand_in_is_used_where_the_data_is_missing_and_is_said_to_be(tmp_path: Path) -> None:
    gone = tmp_path / "gone.json"
    plan = planned(benchmarks=[{"name": "locomo", "options": {"path": str(gone)}, "otherwise": SYNTHETIC}])
    assert [loaded.name for loaded in plan.benchmarks] == ["synthetic"]
    assert plan.notes()[0].startswith("locomo can't be had, so synthetic histories are used in its place: ")
    assert str(gone) in plan.notes()[0]
    assert keys(plan) == keys(planned())


def test_data_that_is_there_and_wrong_is_not_passed_over(tmp_path: Path) -> None:
    torn = tmp_path / "torn.json"
    torn.write_bytes(LOCOMO_SMALL.read_bytes()[:900])
    said = problem(benchmarks=[{"name": "locomo", "options": {"path": str(torn)}, "otherwise": SYNTHETIC}])
    assert said.startswith(f"{torn}: not valid JSON at line ")
