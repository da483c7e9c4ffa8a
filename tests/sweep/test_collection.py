"""Runs collected in one folder of tables."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from flexmem.dataset import open_table
from flexmem.sweep import collection
from flexmem.sweep.collection import COLLECTION, CollectionError, collect, read_collection
from flexmem.sweep.manifest import RunFolderError
from flexmem.sweep.merging import merge_parts
from flexmem.sweep.plan import make_plan
from flexmem.sweep.results import TornPartError, make_table, parts, write_parts
from flexmem.sweep.tables import SCHEMA_VERSION, TABLES

from .harness import InProcess, open_manifest, sweep


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two finished runs of other methods; one has an arm without a budget, and one has merged its parts."""
    folders = []
    for number, arms in enumerate((["piece_retrieval", "no_memory"], ["truncation"])):
        plan, out = make_plan(sweep(arms=arms)), tmp_path / f"run-{number}"
        open_manifest(out, plan)
        InProcess(plan, out).run()
        folders.append(out)
    for name in TABLES:
        merge_parts(folders[0], name, least=1)
    return folders


def table(folder: Path, name: str = "episodes") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = open_table(folder / name).to_table().to_pylist()
    return rows


def test_two_runs_read_as_one_table(runs: list[Path], tmp_path: Path) -> None:
    both = tmp_path / "both"
    for run in runs:
        taken = collect(run, both)
        assert not taken.replaced
        assert taken.rows["episodes"] == len(table(run))
    rows = table(both)
    assert Counter((row["run"], row["arm"], row["budget"]) for row in rows) == {
        ("run-0", "piece_retrieval", 400): 6,
        ("run-0", "no_memory", None): 6,
        ("run-1", "truncation", 400): 6,
    }
    for run in runs:
        own = [{name: row[name] for name in TABLES["episodes"].names} for row in rows if row["run"] == run.name]
        assert sorted(own, key=repr) == sorted(
            ({name: row[name] for name in TABLES["episodes"].names} for row in table(run)), key=repr
        )
        for name in ("renderings", "builds", "pieces"):
            mine = [row for row in table(both, name) if row.pop("run") == run.name]
            assert sorted(mine, key=repr) == sorted(table(run, name), key=repr)
    schema = open_table(both / "episodes").schema
    assert {field.name: field.type for field in TABLES["episodes"]}.items() <= {f.name: f.type for f in schema}.items()
    assert [entry["manifest"]["name"] for entry in read_collection(both).values()] == ["test", "test"]


def test_the_same_run_again_replaces_itself(runs: list[Path], tmp_path: Path) -> None:
    both = tmp_path / "both"
    for run in runs:
        collect(run, both)
    before = table(both)
    more = make_table("episodes", [{"episode": "new", "benchmark": "synthetic", "arm": "truncation", "budget": 400}])
    write_parts(runs[1], "more", {"episodes": more})
    again = collect(runs[1], both)
    assert again.replaced
    assert again.rows["episodes"] == 7
    rows = table(both)
    assert len(rows) == len(before) + 1
    files = sorted(path for path in (both / "episodes").rglob("*.parquet"))
    assert sum(pq.read_metadata(path).num_rows for path in files) == len(rows), "older files are gone"


def test_an_interrupted_collection_shows_the_older_rows_and_goes_on(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = tmp_path / "both"
    for run in runs:
        collect(run, both)
    before = sorted(table(both), key=repr)
    with monkeypatch.context() as patch:
        patch.setattr(collection, "record_merge", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            collect(runs[0], both)
    assert sorted(table(both), key=repr) == before
    collect(runs[0], both)
    assert sorted(table(both), key=repr) == before


def test_labels(runs: list[Path], tmp_path: Path) -> None:
    both = tmp_path / "both"
    collect(runs[0], both, "first")
    with pytest.raises(CollectionError, match="label 'first' is another run's"):
        collect(runs[1], both, "first")
    with pytest.raises(CollectionError, match="the run is there as 'first'"):
        collect(runs[0], both, "second")
    with pytest.raises(CollectionError, match="use letters"):
        collect(runs[1], both, "a/b")
    moved = runs[0].rename(tmp_path / "moved")  # a run is known by its id, not by its place
    assert collect(moved, both, "first").replaced


def test_a_run_that_was_copied_is_the_same_run(runs: list[Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(runs[0], copy)
    both = tmp_path / "both"
    collect(runs[0], both)
    with pytest.raises(CollectionError, match="the run is there as 'run-0'"):
        collect(copy, both)


def test_other_folders_are_refused(runs: list[Path], tmp_path: Path) -> None:
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "thesis.tex").write_text("")
    with pytest.raises(CollectionError, match=r"holds other files \(thesis.tex\)"):
        collect(runs[0], strange)
    with pytest.raises(CollectionError, match="is not a folder"):
        collect(runs[0], strange / "thesis.tex")
    with pytest.raises(CollectionError, match="holds other files"):
        collect(runs[0], runs[1])
    with pytest.raises(RunFolderError, match="is not a run folder"):
        collect(strange, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / COLLECTION).write_text("{")
    with pytest.raises(CollectionError, match=r"collection\.json: is damaged"):
        collect(runs[0], damaged)


def test_a_file_that_can_t_be_read_is_named_as_the_run_s_or_the_collection_s(runs: list[Path], tmp_path: Path) -> None:
    both = tmp_path / "both"
    collect(runs[1], both)
    before = table(both)
    torn = parts(runs[0], "episodes")[0]
    torn.write_bytes(torn.read_bytes()[:-100])
    with pytest.raises(TornPartError, match=rf"{torn.name}: can't be read .*; move it away"):
        collect(runs[0], both)
    assert table(both) == before
    record = next((both / "episodes" / "_merges").glob("*.json"))
    record.write_text("{")
    with pytest.raises(CollectionError, match=rf"{record.name}: is damaged .*collect the runs anew"):
        collect(runs[1], both)


def test_a_collection_that_can_t_be_made_is_named(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CollectionError, match=r"can't be made \(Not a directory\); give another folder"):
        collect(runs[0], tmp_path / "file" / "both")


def test_a_run_of_schema_version_1_is_read_collected_and_taken_over(runs: list[Path], tmp_path: Path) -> None:
    old = runs[1]
    manifest = json.loads((old / "manifest.json").read_text())
    del manifest["run_id"]
    (old / "manifest.json").write_text(json.dumps(manifest | {"schema_version": 1}))
    both = tmp_path / "both"
    collect(old, both)
    plan = make_plan(sweep(arms=["truncation"]))
    assert open_manifest(old, plan)["schema_version"] == SCHEMA_VERSION
    assert collect(old, both).replaced
    assert len(parts(old, "episodes")) == 1
    assert pc.all(pc.equal(open_table(both / "episodes").to_table()["run"], "run-1")).as_py()
