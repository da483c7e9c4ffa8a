"""AppWorld's data: what is missing, its digest, and fetching it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from flexmem.benchmarks.appworld import data
from flexmem.benchmarks.appworld.data import ADDRESS, APPS, SPLITS, check, digest, fetch, root, scenario_of, task_ids
from flexmem.benchmarks.appworld.errors import InsideError
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.protocol import DataError, DataMissingError

from .installed import demand_installation, demand_world

TRUTH = ("evaluation.py", "metadata.json", "answer.json", "test_data.json", "public_data.json", "private_data.json")
INSTALLATION = Installation(Path("/python"), Path("/unpacked"))


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A root in which nothing is missing, with two tasks a split."""
    folder = tmp_path / "root" / "data"
    inner = ("api_docs", "supervisor")
    texts = {"version.txt": "0.1.0"}
    texts |= {f"base_dbs/{name}.db": "" for name in (*APPS, *inner, "admin")}
    texts |= {f"api_docs/standard/{name}.json": "{}" for name in (*APPS, *inner)}
    for split in SPLITS:
        ids = [f"{split[:4]}{split[-3:]}_{number}" for number in (1, 2)]
        texts[f"datasets/{split}.txt"] = "\n".join(ids) + "\n"
        for task_id in ids:
            texts |= {f"tasks/{task_id}/{name}": "{}" for name in ("specs.json", "dbs/venmo.jsonl")}
            texts |= {f"tasks/{task_id}/ground_truth/{name}": "{}" for name in TRUTH}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "root"


def test_the_root_is_named_or_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLEXMEM_CACHE", str(tmp_path))
    monkeypatch.delenv("APPWORLD_ROOT", raising=False)
    assert root() == tmp_path / "appworld" / "root"
    monkeypatch.setenv("APPWORLD_ROOT", "/somewhere")
    assert root() == Path("/somewhere")


def test_appworld_cannot_use_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPWORLD_ROOT", "/runs/no_memory/root")
    with pytest.raises(DataError, match="Choose a folder of another name"):
        root()


def test_nothing_is_missing(whole: Path) -> None:
    assert check(whole) == []


def test_everything_is_missing(tmp_path: Path) -> None:
    assert check(tmp_path) == [f"{tmp_path / 'data'} is not there."]


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ("version.txt", "version.txt is not there."),
        ("base_dbs/venmo.db", "base_dbs lacks venmo.db."),
        ("base_dbs", "base_dbs lacks amazon.db, file_system.db, gmail.db and 9 more."),
        ("api_docs/standard/gmail.json", "api_docs/standard lacks gmail.json."),
        ("datasets/dev.txt", "datasets/dev.txt can't be read."),
        ("tasks/traiain_2/specs.json", "tasks: 1 of 2 train tasks lack specs.json (traiain_2)."),
        ("tasks/devdev_1/dbs", "tasks: 1 of 2 dev tasks lack dbs (devdev_1)."),
        ("tasks/devdev_1/ground_truth/answer.json", "1 of 2 dev tasks lack ground_truth/answer.json (devdev_1)."),
    ],
)
def test_what_is_missing_is_told(whole: Path, gone: str, told: str) -> None:
    path = whole / "data" / gone
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    (found,) = check(whole)
    assert found.endswith(told)


def test_ground_truth_is_for_graders(whole: Path) -> None:
    for folder in (whole / "data" / "tasks").glob("*/ground_truth"):
        shutil.rmtree(folder)
    assert check(whole, graded=False) == []
    assert len(check(whole)) == len(SPLITS) * len(TRUTH)


def test_another_version(whole: Path) -> None:
    (whole / "data" / "version.txt").write_text("0.2.0")
    assert check(whole) == [f"{whole / 'data' / 'version.txt'} says '0.2.0'; this AppWorld reads 0.1.0."]


def test_the_tasks_of_a_split(whole: Path) -> None:
    (whole / "data" / "datasets" / "dev.txt").write_text("82e2fac_1\n82e2fac_2:a tag\n\n")
    assert task_ids(whole, "dev") == ["82e2fac_1", "82e2fac_2"]
    assert scenario_of("82e2fac_2") == "82e2fac"
    with pytest.raises(DataMissingError, match="flexmem appworld fetch"):
        task_ids(whole, "other")


def test_the_digest_is_of_what_tasks_ask(whole: Path) -> None:
    first = digest(whole)
    specs = whole / "data" / "tasks" / "devdev_1" / "specs.json"
    os.utime(specs, (1, 1))
    assert digest(whole) == first
    (whole / "data" / "tasks" / "devdev_1" / "ground_truth" / "answer.json").write_text("1")
    assert digest(whole) == first
    specs.write_text('{"instruction": "another"}')
    second = digest(whole)
    assert second != first
    (whole / "data" / "datasets" / "dev.txt").write_text("devdev_1\n")
    assert digest(whole) not in (first, second)


def test_the_digest_is_kept(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = digest(whole)

    def read_bytes(path: Path) -> bytes:
        raise AssertionError(f"{path} was read again")

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert digest(whole) == first


def test_a_damaged_shortcut_does_not_matter(whole: Path) -> None:
    first = digest(whole)
    (whole / "flexmem-digest.json").write_text("{")
    assert digest(whole) == first


def test_no_digest_without_tasks(tmp_path: Path) -> None:
    with pytest.raises(DataMissingError, match="holds no tasks"):
        digest(tmp_path)


def test_what_is_there_is_not_fetched_again(whole: Path) -> None:
    fetch(whole, INSTALLATION)


def test_other_data_is_not_overwritten(whole: Path) -> None:
    (whole / "data" / "version.txt").unlink()
    with pytest.raises(DataError, match="Move it away"):
        fetch(whole, INSTALLATION)


def test_a_network_that_says_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_inside(*arguments: object, **options: object) -> str:
        raise InsideError("loading: ended with 1. Its last lines:\nTraceback\nConnectionError: name not known")

    monkeypatch.setattr(data, "run_inside", run_inside)
    with pytest.raises(DataMissingError) as caught:
        fetch(tmp_path / "root", INSTALLATION)
    assert ADDRESS in str(caught.value)
    assert "APPWORLD_ROOT" in str(caught.value)
    assert caught.value.reason == "ConnectionError: name not known"


def test_a_download_that_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AppWorld prints a refused download and ends well."""
    monkeypatch.setattr(data, "run_inside", lambda *arguments, **options: "Failed to download file. Status code: 403")
    with pytest.raises(DataMissingError, match="is not there") as caught:
        fetch(tmp_path / "root", INSTALLATION)
    assert ADDRESS in str(caught.value)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_the_own_world_lacks_nothing() -> None:
    assert check(demand_world(demand_installation())) == []
