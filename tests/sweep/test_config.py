"""A sweep's YAML: what it means, and what is said of a broken one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flexmem.sweep.config import ConfigError, load_config, parse_config

GOOD: dict[str, Any] = {"name": "s", "benchmarks": [{"name": "synthetic"}], "arms": ["truncation"], "budgets": ["1k"]}
TEXT = "name: s\nbenchmarks:\n  - name: synthetic\narms: [truncation]\nbudgets: [1k]\n"


def problem(**changes: Any) -> str:
    """What is said of `GOOD` with some keys changed."""
    with pytest.raises(ConfigError) as raised:
        parse_config({**GOOD, **changes}, "sweep.yaml")
    return str(raised.value)


def test_a_minimal_sweep_has_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(TEXT)
    sweep = load_config(path)
    assert (sweep.repeats, sweep.models.reader, sweep.embedding.model) == (1, None, "all-MiniLM-L6-v2")
    assert [arm.name for arm in sweep.arms] == ["truncation"]


def test_a_merge_key_brings_in_a_mapping_whose_keys_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    judges = "judges: [{label: j, model: {<<: *m, model: other}}]"
    path.write_text(f"{TEXT}models:\n  reader: {{model: &m {{model: one, temperature: 0}}}}\n  {judges}\n")
    models = load_config(path).models
    assert models.reader is not None
    assert (models.reader.model.model, models.reader.model.temperature) == ("one", 0)
    assert (models.judges[0].model.model, models.judges[0].model.temperature) == ("other", 0)
    path.write_text(path.read_text().replace("model: other", "model: other, model: third"))
    with pytest.raises(ConfigError, match="key 'model' stands twice"):
        load_config(path)


def test_overrides_replace_top_level_keys(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(TEXT)
    assert load_config(path, {"budgets": ["2k"]}).budgets == [2_000]


def test_budgets_are_thousands_once_each_and_ascending() -> None:
    assert parse_config({**GOOD, "budgets": ["4k", 500, "0.5K", "1.5k"]}, "s").budgets == [500, 1_500, 4_000]


@pytest.mark.parametrize("budget", ["4q", "k", "nank", "infk", "-1k", 0, "", None, [4], "4 000"])
def test_a_budget_that_is_no_positive_number_is_refused_by_its_place(budget: object) -> None:
    said = problem(budgets=[1_000, budget])
    assert "sweep.yaml" in said
    assert "budgets.1: " in said
    assert f"(got {budget!r})" in said or "greater than 0" in said


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name: s\narms: [truncation\nbudgets: [1k]\n", "line 3, column 8"),
        ("name: s\n\tarms: []\n", "line 2, column 1"),
        ("name: s\nname2: 'open\n", "line 3, column 1"),
        ("name: *nobody\n", "line 1, column 7"),
    ],
)
def test_broken_yaml_is_named_by_file_and_line(text: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    assert str(raised.value).startswith(f"{path}, {place}: broken YAML: ")


def test_characters_that_yaml_forbids_are_named_by_file(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(b"name: \x00\n")
    with pytest.raises(ConfigError, match=r"odd\.yaml: broken YAML"):
        load_config(path)


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n- b\n", "just words\n", "7\n"])
def test_a_file_that_is_no_mapping_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"list\.yaml: a sweep is a mapping with name, benchmarks, arms and budgets"):
        load_config(path)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: can't be read: No such file"):
        load_config(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match=r"can't be read: Is a directory"):
        load_config(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    with pytest.raises(ConfigError, match=r"latin\.yaml: is not UTF-8 text"):
        load_config(tmp_path / "latin.yaml")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"budget": ["1k"]}, "budget: unknown key; did you mean 'budgets'?"),
        ({"zzz": 1}, "zzz: unknown key; known here: name, benchmarks, arms,"),
        ({"engine": {"worker": 2}}, "engine.worker: unknown key; did you mean 'workers'?"),
        ({"embedding": {"modle": "x"}}, "embedding.modle: unknown key; did you mean 'model'?"),
        ({"benchmarks": [{"name": "synthetic", "option": {}}]}, "benchmarks.0.option: unknown key; did you mean 'opt"),
        ({"arms": [{"method": "truncation", "lable": "t"}]}, "arms.0.lable: unknown key; did you mean 'label'?"),
        ({"models": {"raeder": {}}}, "models.raeder: unknown key; did you mean 'reader'?"),
        (
            {"models": {"reader": {"model": {"model": "m", "base_ulr": "http://x"}}}},
            "models.reader.model.base_ulr: unknown key; did you mean 'base_url'?",
        ),
        (
            {"benchmarks": [{"name": "locomo", "otherwise": {"name": "synthetic", "optionz": {}}}]},
            "benchmarks.0.otherwise.optionz: unknown key; did you mean 'options'?",
        ),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(changes: dict[str, Any], said: str) -> None:
    assert said in problem(**changes)


@pytest.mark.parametrize("key", ["name", "benchmarks", "arms", "budgets"])
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"sweep\.yaml: .*\n  {key}: is missing"):
        parse_config({name: value for name, value in GOOD.items() if name != key}, "sweep.yaml")


@pytest.mark.parametrize("key", ["benchmarks", "arms", "budgets"])
def test_an_empty_list_is_refused_by_its_key(key: str) -> None:
    assert f"\n  {key}: " in problem(**{key: []})


def test_an_arm_that_is_listed_twice_is_named() -> None:
    assert "arms: arm 'truncation' is listed twice; give one of them a label" in problem(arms=["truncation"] * 2)
    same = [{"method": "truncation", "label": "x"}, {"method": "piece_retrieval", "label": "x"}]
    assert "arm 'x' is listed twice" in problem(arms=same)


def test_changed_options_need_a_label() -> None:
    said = problem(arms=["truncation", {"method": "flexa_unit", "options": {"excerpt_cap": 256}}])
    assert "arms.1: arm 'flexa_unit' changes options, so it needs a label of its own" in said


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"repeats": 0}, "repeats"),
        ({"engine": {"workers": 0}}, "engine.workers"),
        ({"engine": {"in_flight": "many"}}, "engine.in_flight"),
        ({"engine": None}, "engine"),
        ({"arms": [7]}, "arms.0"),
        ({"arms": "truncation"}, "arms"),
        ({"models": {"reader": {"model": {"model": ""}}}}, "models.reader.model.model"),
        ({"models": {"reader": {"model": {"model": "m", "family": "gpt-17"}}}}, "models.reader.model"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_by_its_place(changes: dict[str, Any], place: str) -> None:
    assert f"\n  {place}: " in problem(**changes)


def test_all_problems_are_told_at_once() -> None:
    said = problem(repeats=0, budgets=["4q"], typo=1)
    assert len(said.splitlines()) == 4
