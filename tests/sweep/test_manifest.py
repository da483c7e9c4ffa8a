"""Which folder a sweep may write into, and that a refusal leaves it as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flexmem.sweep.manifest import MANIFEST, RunFolderError, read_manifest
from flexmem.sweep.plan import Plan, make_plan
from flexmem.sweep.tables import SCHEMA_VERSION

from .harness import LOCOMO, LOCOMO_SMALL, contents, open_manifest, sweep


def planned(**changes: Any) -> Plan:
    return make_plan(sweep(**{"arms": ["no_memory", "piece_retrieval"], **changes}))


def refused(out: Path, plan: Plan) -> str:
    """What is said when a plan may not go on in a folder, whose files stay as they are."""
    before = contents(out)
    with pytest.raises(RunFolderError) as raised:
        open_manifest(out, plan)
    assert contents(out) == before
    return str(raised.value)


def test_a_manifest_says_what_a_run_is_made_of(out: Path) -> None:
    manifest = open_manifest(out, planned(budgets=[400, 800]))
    assert json.loads((out / MANIFEST).read_text("utf-8")) == json.loads(json.dumps(manifest)) == read_manifest(out)
    assert manifest["schema_version"] == SCHEMA_VERSION
    assert manifest["arms"]["no_memory"] == {
        "rewrites_text": False,
        "asks_per_call": False,
        "family": "control arms",
        "control": True,
    }
    assert {"flexmem", "ray", "python", "pyarrow"} <= manifest["versions"].keys()
    assert [(cell["arm"], cell["budget"]) for cell in manifest["planned"]] == [
        ("no_memory", None),
        ("piece_retrieval", 400),
        ("piece_retrieval", 800),
    ]


def test_the_same_sweep_goes_on_in_its_folder(out: Path) -> None:
    assert open_manifest(out, planned()) == open_manifest(out, planned(engine={"workers": 3}, out="x")) | {
        "config": planned().config.model_dump(mode="json")
    }


def test_an_empty_folder_will_do(out: Path) -> None:
    out.mkdir()
    open_manifest(out, planned())


def test_arms_budgets_and_instances_may_join_and_nothing_is_forgotten(out: Path) -> None:
    open_manifest(out, planned(budgets=[400]))
    manifest = open_manifest(out, planned(arms=["truncation"], budgets=[800], benchmarks=[LOCOMO]))
    cells = {(cell["benchmark"], cell["arm"], cell["budget"]) for cell in manifest["planned"]}
    assert cells == {
        ("synthetic", "no_memory", None),
        ("synthetic", "piece_retrieval", 400),
        ("locomo", "truncation", 800),
    }
    arms = {"no_memory", "piece_retrieval", "truncation"}
    assert manifest["arms"].keys() == manifest["fields"]["arms"].keys() == arms
    assert {name.split("/")[0] for name in manifest["fields"]["histories"]} == {"synthetic", "locomo"}
    # Whoever reads the folder finds data digests and metrics of all that is in it.
    assert manifest["data_digests"].keys() == manifest["metrics"].keys() == {"synthetic", "locomo"}


def test_a_joined_sweep_keeps_the_notes_of_both(out: Path) -> None:
    first = open_manifest(out, planned())["notes"]
    second = open_manifest(out, planned(benchmarks=[LOCOMO]))["notes"]
    assert set(first) < set(second)
    assert any("LoCoMo" in note for note in second)


def test_a_folder_with_other_files_is_refused(out: Path) -> None:
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    said = refused(out, planned())
    assert said == f"{out}: is not empty and holds no manifest.json; give an empty folder or a run's own"


def test_a_file_in_place_of_a_folder_is_refused(out: Path) -> None:
    out.write_text("not a folder")
    with pytest.raises(RunFolderError, match=r"run: is not a folder"):
        open_manifest(out, planned())
    assert out.read_text() == "not a folder"


def test_results_of_another_schema_version_are_refused(out: Path) -> None:
    manifest = open_manifest(out, planned())
    (out / MANIFEST).write_text(json.dumps(manifest | {"schema_version": 99}))
    said = refused(out, planned())
    assert said.startswith(f"{out}: holds results of schema version 99, this flexmem reads 1, 2, 3, 4, 5;")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"name": "x"}', '{"schema_version": 1}', "\udcff"])
def test_a_damaged_manifest_is_named(text: str, out: Path) -> None:
    out.mkdir()
    (out / MANIFEST).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert refused(out, planned()).startswith(f"{out / MANIFEST}: is damaged: ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"embedding": {"model": "other/model"}},
            "embedder: value was 'all-MiniLM-L6-v2@torch-fp32', now 'other/model@",
        ),
        (
            {"models": {"reader": {"model": {"provider": "scripted", "model": "echo"}}}},
            "reader: value was None, now {'model':",
        ),
        ({"models": {"memory": {"provider": "scripted", "model": "echo"}}}, "memory: value was None, now {"),
        (
            {"arms": [{"method": "flexa_unit", "label": "mine", "options": {"excerpt_cap": 256}}]},
            "arms mine: config.excerpt_cap was 300, now 256",
        ),
        (
            {"arms": [{"method": "piece_retrieval", "label": "mine"}]},
            "arms mine: config.",
        ),
    ],
    ids=["embedder", "reader", "memory", "option", "method"],
)
def test_results_of_another_configuration_are_refused_by_what_differs(
    changes: dict[str, Any], said: str, out: Path
) -> None:
    mine = {"method": "flexa_unit", "label": "mine", "options": {"excerpt_cap": 300}}
    open_manifest(out, planned(arms=[mine]))
    found = refused(out, planned(**{"arms": [mine], **changes}))
    assert found.startswith(
        f"{out}: holds results of another configuration; take another folder, or another label for a changed arm\n"
    )
    assert said in found


def test_a_changed_reader_setting_is_named_by_its_key_with_both_values(out: Path) -> None:
    model = {"provider": "scripted", "model": "echo"}
    open_manifest(out, planned(models={"reader": {"model": model}}))
    said = refused(out, planned(models={"reader": {"model": model, "max_tokens": 64}}))
    assert "\n  reader: max_tokens was 512, now 64" in said


def test_a_changed_history_is_named(out: Path, tmp_path: Path) -> None:
    def own(text: str) -> list[dict[str, Any]]:
        path = tmp_path / "own.json"
        path.write_text(text, "utf-8")
        return [{"name": "locomo", "options": {"path": str(path)}}]

    text = LOCOMO_SMALL.read_text("utf-8")
    open_manifest(out, planned(benchmarks=own(text)))
    said = refused(out, planned(benchmarks=own(text.replace("By train?", "By boat?"))))
    assert "\n  histories locomo/talk-2: value was " in said
    assert "talk-1" not in said


def test_a_runs_questions_may_grow_and_not_shrink(out: Path) -> None:
    def first(questions: int) -> list[dict[str, Any]]:
        return [{**LOCOMO, "options": {**LOCOMO["options"], "questions_per_conversation": questions}}]  # type: ignore[dict-item]

    open_manifest(out, planned(benchmarks=first(2)))
    manifest = open_manifest(out, planned(benchmarks=first(4)))
    assert {cell["n"] for cell in manifest["planned"]} == {4 + 2}
    said = refused(out, planned(benchmarks=first(1)))
    assert "locomo: 4 questions of the run are not in this sweep; a run's questions may only grow" in said


def test_a_run_with_fewer_repeats_leaves_the_planned_ones_as_they_were(out: Path) -> None:
    open_manifest(out, planned(repeats=3))
    manifest = open_manifest(out, planned(repeats=2))
    assert {(cell["repeats"], cell["n"]) for cell in manifest["planned"]} == {(3, 18)}


def test_an_arm_that_is_there_under_another_name_is_refused(out: Path) -> None:
    """Labels are no part of keys: its episodes are finished, and stand under the old name."""
    open_manifest(out, planned())
    said = refused(out, planned(arms=[{"method": "piece_retrieval", "label": "bm25"}]))
    assert "arm 'bm25' is there as 'piece_retrieval'" in said


def test_all_differences_are_told_at_once(out: Path) -> None:
    open_manifest(out, planned(arms=[{"method": "truncation", "label": "a"}, {"method": "dense_units", "label": "b"}]))
    said = refused(
        out,
        planned(
            arms=[{"method": "dense_pieces", "label": "a"}, {"method": "piece_retrieval", "label": "b"}],
            embedding={"model": "other/model"},
        ),
    )
    assert [line.split(":")[0].strip() for line in said.splitlines()[1:]] == ["embedder", "arms a", "arms b"]


def test_a_folder_without_a_manifest_is_no_run(out: Path) -> None:
    with pytest.raises(RunFolderError, match=r"run: is not a run folder: it has no manifest\.json"):
        read_manifest(out)


def test_other_prompts_are_another_arm(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = {"memory": {"provider": "scripted", "model": "stated_length"}}
    arms = ["piece_retrieval", {"method": "flexa_unit", "label": "mine", "options": {"writer": "model"}}]
    open_manifest(out, planned(arms=arms, models=models))
    open_manifest(out, planned(arms=arms, models=models))
    monkeypatch.setattr("flexmem.sweep.arms.prompt_digest", lambda *names: "another")
    said = refused(out, planned(arms=arms, models=models))
    assert "arm 'mine': what it asks the memory model with is worded in another way" in said
    assert "piece_retrieval" not in said
