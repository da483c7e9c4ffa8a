"""Merging parts: every row once, whatever is interrupted, and one schema whatever the partitions hold."""

from __future__ import annotations

import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem.analysis.frames import COLUMNS
from flexmem.dataset import (
    MERGES,
    NULL_KEY,
    TableFileError,
    each_file,
    live_files,
    merge_of,
    open_table,
    partition_keys,
    read_file,
)
from flexmem.sweep.merging import merge_parts, merged_parts
from flexmem.sweep.recovery import drop_unfinished, recover
from flexmem.sweep.results import TornPartError, finished_keys, make_table, parts, read_columns, write_parts
from flexmem.sweep.tables import PARTITIONS, TABLES

ARMS = ["flexa_piece", "no_memory", "a/b=c %41", "µ", "7"]
BUDGETS = [None, 1_000, 4_000]


def episode(number: int, arm: str = "flexa_piece", budget: int | None = 1_000, **other: Any) -> dict[str, Any]:
    return {"episode": f"k{number}", "benchmark": "bench", "arm": arm, "budget": budget, "outcome": "ok", **other}


def write(out: Path, part: str, rows: Sequence[dict[str, Any]]) -> None:
    rendered = [{"episode": row["episode"], "call": 0} for row in rows]
    write_parts(
        out, part, {"episodes": make_table("episodes", list(rows)), "renderings": make_table("renderings", rendered)}
    )


def fill(out: Path, parts_written: int = 6) -> list[dict[str, Any]]:
    rows = []
    for number in range(parts_written):
        new = [episode(10 * number + i, ARMS[i % 5], BUDGETS[i % 3], score=i / 10) for i in range(10)]
        write(out, f"{number:03d}", new)
        rows += new
    return rows


def found(out: Path, name: str = "episodes") -> list[dict[str, Any]]:
    return [row for table in read_columns(out, name, TABLES[name].names) for row in table.to_pylist()]


def keyed(rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("episode", "benchmark", "arm", "budget", "score")
    return sorted((tuple(row.get(name) for name in names) for row in rows), key=repr)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=st.lists(
        st.lists(st.tuples(st.sampled_from(ARMS), st.sampled_from(BUDGETS)), min_size=1, max_size=5),
        min_size=1,
        max_size=6,
    ),
    whole=st.booleans(),
)
def test_rows_stay_as_they_were(cells: list[list[tuple[str, int | None]]], whole: bool, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.rmtree(out, ignore_errors=True)
    rows = []
    for part, places in enumerate(cells):
        new = [episode(100 * part + i, arm, budget, score=i / 8) for i, (arm, budget) in enumerate(places)]
        write(out, f"{part:03d}", new)
        rows += new
        merge_parts(out, "episodes", least=2, whole=whole)
    merge_parts(out, "episodes", least=1, whole=True)
    assert keyed(found(out)) == keyed(rows)
    assert len(parts(out, "episodes")) == len({(row["arm"], row["budget"]) for row in rows})
    assert sorted((out / "episodes").rglob("*.parquet")) == sorted(parts(out, "episodes"))


def test_merged_files_lie_in_hive_partitions_and_leave_their_keys_out(out: Path) -> None:
    fill(out)
    assert merge_parts(out, "episodes", least=1) == 6
    folders = {tuple(partition_keys(path).items()) for path in parts(out, "episodes")}
    assert (("benchmark", "bench"), ("arm", "a/b=c %41"), ("budget", "4000")) in folders
    assert (("benchmark", "bench"), ("arm", "no_memory"), ("budget", None)) in folders
    assert (out / "episodes" / "benchmark=bench" / "arm=no_memory" / f"budget={NULL_KEY}").is_dir()
    assert not any({"benchmark", "arm", "budget"} & set(pq.read_schema(path).names) for path in parts(out, "episodes"))
    merge_parts(out, "renderings", least=1)
    assert [path.parent for path in parts(out, "renderings")] == [out / "renderings"]


def test_few_parts_wait(out: Path) -> None:
    fill(out, 3)
    assert merge_parts(out, "episodes", least=4) == 0
    assert {merge_of(path) for path in parts(out, "episodes")} == {None}


class Killed(BaseException):
    """Stands for a kill -9: nothing catches it."""


def kill_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Raise before the step-th change of the file system from now on; the function says how many there were."""
    count = 0

    def guard(function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == step:
                raise Killed
            return function(*args, **kwargs)

        return guarded

    monkeypatch.setattr(os, "replace", guard(os.replace))
    monkeypatch.setattr(os, "fsync", guard(os.fsync))
    monkeypatch.setattr(Path, "unlink", guard(Path.unlink))
    monkeypatch.setattr(pq, "write_table", guard(pq.write_table))
    return lambda: count


def test_a_merge_killed_at_any_step_leaves_every_row_once(out: Path, tmp_path: Path) -> None:
    rows = fill(out, 3)
    merge_parts(out, "episodes", least=1)  # the next one meets files of an earlier merge, and replaces them
    more = [episode(100 + i, ARMS[i % 5]) for i in range(5)]
    write(out, "x", more)
    whole = keyed([*rows, *more])
    step = survived = 0
    while not survived:
        step += 1
        run = tmp_path / f"killed-{step}"
        shutil.copytree(out, run)
        with pytest.MonkeyPatch.context() as patch:
            kill_at(step, patch)
            with suppress(Killed):
                merge_parts(run, "episodes", least=1, whole=True)
                survived = 1
        assert keyed(found(run)) == whole, f"as a reader meets it after step {step}"
        recover(run)
        assert keyed(found(run)) == whole
        assert sorted((run / "episodes").rglob("*.parquet")) == sorted(parts(run, "episodes")), "nothing is left over"
        assert not list(run.rglob(".tmp-*"))
    assert step > 20


def test_a_recovery_killed_at_any_step_goes_on(out: Path, tmp_path: Path) -> None:
    rows = fill(out, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            merge_parts(out, "episodes", least=1)
    for step in range(1, 20):
        run = tmp_path / f"killed-{step}"
        shutil.copytree(out, run)
        with pytest.MonkeyPatch.context() as patch:
            kill_at(step, patch)
            try:
                recover(run)
            except Killed:
                assert keyed(found(run)) == keyed(rows)
        recover(run)
        assert keyed(found(run)) == keyed(rows)
        assert sorted((run / "episodes").rglob("*.parquet")) == sorted(parts(run, "episodes"))


def test_a_part_that_was_merged_is_not_written_again(out: Path) -> None:
    rows = fill(out, 2)
    merge_parts(out, "episodes", least=1)
    merged = {name: merged_parts(out, name) for name in TABLES}
    assert merged["episodes"] == {"part-000.parquet", "part-001.parquet"}
    assert merged["renderings"] == set()
    rendering = make_table("renderings", [{"episode": "k0"}])
    write_parts(out, "000", {"episodes": make_table("episodes", rows[:10]), "renderings": rendering}, merged)
    assert keyed(found(out)) == keyed(rows)
    assert len(found(out, "renderings")) == 11  # not merged, so its part was replaced


def test_readers_see_every_row_once_while_parts_are_merged(out: Path) -> None:
    rows = fill(out, 4)
    stop, problems, reads = threading.Event(), [], 0

    def look() -> None:
        nonlocal reads
        while not stop.is_set():
            keys = Counter(key for table in read_columns(out, "episodes", ["episode"]) for key in table[0].to_pylist())
            reads += 1
            if any(times > 1 for times in keys.values()) or not {row["episode"] for row in rows} <= keys.keys():
                problems.append(keys)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for number in range(60):
            write(out, f"y{number:03d}", [episode(1_000 + 10 * number + i, ARMS[i % 5]) for i in range(10)])
            merge_parts(out, "episodes", least=4, whole=number % 5 == 0)
    finally:
        stop.set()
        reader.join()
    assert not problems
    assert reads > 3
    assert len(finished_keys(out)) == 640


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"files": []}', b"\xff"])
def test_a_damaged_record_is_named_and_nothing_is_removed(content: bytes, out: Path) -> None:
    fill(out, 2)
    merge_parts(out, "episodes", least=1)
    (record,) = (out / "episodes" / MERGES).glob("*.json")
    record.write_bytes(content)
    files = sorted(out.rglob("*"))
    for look in (lambda: live_files(out / "episodes"), lambda: parts(out, "episodes"), lambda: recover(out)):
        with pytest.raises((TableFileError, TornPartError), match=rf"{record.name}: is damaged"):
            look()
    assert sorted(out.rglob("*")) == files


def test_a_torn_merged_file_is_set_aside_and_its_episodes_run_again(out: Path) -> None:
    rows = fill(out)
    merge_parts(out, "episodes", least=1)
    torn = next(path for path in parts(out, "episodes") if partition_keys(path)["arm"] == "µ")
    gone = {row["episode"] for row in rows if (row["arm"], str(row["budget"])) == ("µ", partition_keys(torn)["budget"])}
    torn.write_bytes(torn.read_bytes()[:-9])
    (moved,) = recover(out)
    assert moved == out / "torn" / torn.relative_to(out)
    assert gone
    assert finished_keys(out) == {row["episode"] for row in rows} - gone
    assert recover(out) == []


def test_episodes_run_again_whose_rendering_a_torn_merged_file_held(out: Path) -> None:
    fill(out, 2)
    merge_parts(out, "renderings", least=1)
    write(out, "z", [episode(500), episode(501, outcome="failed")])
    write_parts(out, "y", {"episodes": make_table("episodes", [episode(502, outcome="failed")])})
    (torn,) = [path for path in parts(out, "renderings") if merge_of(path)]
    torn.write_bytes(torn.read_bytes()[:40])
    recover(out)
    assert finished_keys(out) == {"k500", "k501", "k502"}  # a failed episode may have had no rendering
    kept = [pq.read_table(path) for path in (out / "torn" / "episodes").glob("*.parquet")]
    assert sum(table.num_rows for table in kept) == 20


def test_renderings_of_episodes_without_a_row_go(out: Path) -> None:
    """A part's episodes are written last; a kill may come before."""
    rows = fill(out, 2)
    merge_parts(out, "renderings", least=1)
    orphans = [{"episode": key, "call": 0} for key in ("never", "k0", "neither")]
    write_parts(out, "z", {"renderings": make_table("renderings", orphans)})
    assert drop_unfinished(out) == 2
    assert Counter(row["episode"] for row in found(out, "renderings")) == Counter([*(r["episode"] for r in rows), "k0"])
    assert drop_unfinished(out) == 0


def test_one_schema_though_columns_are_null_throughout_and_keys_are_null(out: Path) -> None:
    rows = fill(out)
    merge_parts(out, "episodes", least=1)
    write(out, "z", [episode(900, "7", None)])  # a fresh part beside them, all scores null
    untyped = out / "episodes" / "part-null.parquet"
    null_score = read_file(parts(out, "episodes")[0], TABLES["episodes"]).drop_columns("score")
    null_score = null_score.set_column(0, "episode", pa.array(["k901"]))
    pq.write_table(null_score.append_column("score", pa.nulls(1)), untyped)
    table = open_table(out / "episodes").to_table()
    assert table.num_rows == len(rows) + 2
    assert {name: table.schema.field(name).type for name in TABLES["episodes"].names} == {
        field.name: field.type for field in TABLES["episodes"]
    }
    assert keyed(table.to_pylist()) == keyed([*rows, episode(900, "7", None), episode(901, "7", None)])
    assert table.filter(pc.is_null(table["budget"])).num_rows == sum(row["budget"] is None for row in rows) + 2
    assert keyed(found(out)) == keyed(table.to_pylist())
    without_budget = open_table(out / "episodes").to_table(filter=pc.is_null(pc.field("budget")))
    assert without_budget.num_rows == sum(row["budget"] is None for row in rows) + 2
    seven = open_table(out / "episodes").to_table(filter=pc.field("arm") == "7")
    assert {row["arm"] for row in seven.to_pylist()} == {"7"}


def test_an_empty_folder_is_no_table(out: Path) -> None:
    out.mkdir()
    with pytest.raises(FileNotFoundError, match="holds no Parquet files"):
        open_table(out)


def test_a_reader_that_always_meets_merges_gives_up(out: Path) -> None:
    fill(out, 1)

    def vanished(path: Path) -> None:
        raise FileNotFoundError(path)

    with pytest.raises(Exception, match="merged again and again"):
        each_file(out / "episodes", vanished)


def test_partitions_are_columns_of_their_tables() -> None:
    for name, keys in PARTITIONS.items():
        assert set(keys) <= set(TABLES[name].names)
        assert set(keys) <= set(COLUMNS[name].names)
