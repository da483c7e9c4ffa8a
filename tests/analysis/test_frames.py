"""Opening a run's folder and reading its tables."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexmem.analysis.frames import COLUMNS, load
from flexmem.analysis.manifest import SCHEMA_VERSIONS, RunError
from flexmem.sweep.tables import SCHEMA_VERSION, TABLES

from .runs import RunFolder, episode


def test_it_reads_what_sweeps_write() -> None:
    assert SCHEMA_VERSION in SCHEMA_VERSIONS
    for table, schema in COLUMNS.items():
        for field in schema:
            assert TABLES[table].field(field.name).type == field.type, (table, field.name)


def test_tables_without_files_are_empty(folder: RunFolder) -> None:
    folder.plan([{"arm": "a", "n": 1}], notes=["Note."])
    run = load(str(folder.path))
    assert run.manifest.notes == ("Note.",)
    assert [len(frame) for frame in (run.episodes, run.renderings, run.builds, run.failures)] == [0, 0, 0, 0]
    assert run.episodes.numbers("score").shape == (0,)
    assert run.episodes.labels("arm").names == ()
    assert run.frame("episodes", extra=["reply"]).table.column_names[-1] == "reply"


def test_columns(folder: RunFolder) -> None:
    folder.plan([{"arm": "a", "n": 3}])
    time = datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)
    folder.write("episodes", [episode("a", "q1", score=0.25, finished_at=time), episode("a", "q2", reader="r")])
    folder.write("episodes", [episode("b", "q3", extractive=None, finished_at=None, reply="Rome")])
    frame = load(folder.path).episodes
    score = frame.numbers("score")
    assert score[0] == 0.25
    assert math.isnan(score[1])
    assert math.isnan(score[2])
    assert frame.flags("extractive").tolist() == [True, True, False]
    assert frame.times("finished_at").tolist()[::2] == [2000, -1]
    arms = frame.labels("arm")
    assert (arms.codes.tolist(), arms.names) == ([0, 0, 1], ("a", "b"))
    readers = frame.labels("reader")
    assert [readers.name(row) for row in range(3)] == [None, "r", None]
    assert "reply" not in frame.table.column_names
    replies = load(folder.path).frame("episodes", extra=["reply"]).table
    assert replies.column("reply").to_pylist() == [None, None, "Rome"]


def test_files_that_writers_are_still_at_are_left_alone(folder: RunFolder) -> None:
    folder.plan([{"arm": "a", "n": 1}])
    folder.write("episodes", [episode("a", "q1")])
    for name in ("part-9.parquet.tmp", ".part-9.parquet"):
        (folder.path / "episodes" / name).write_bytes(b"PAR1 half")
    assert len(load(folder.path).episodes) == 1


class TestNoRun:
    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="nowhere: no such folder"):
            load(tmp_path / "nowhere")

    def test_no_manifest(self, folder: RunFolder) -> None:
        folder.write("episodes", [episode("a", "q1")])
        with pytest.raises(RunError, match="not a run folder"):
            load(folder.path)

    @pytest.mark.parametrize("version", [0, 99, None])
    def test_another_schema_version(self, folder: RunFolder, version: int | None) -> None:
        folder.plan([{"arm": "a", "n": 1}], schema_version=version)
        with pytest.raises(RunError, match=rf"schema version {version}, this flexmem reads 1, 2, 3, 4, 5;"):
            load(folder.path)

    @pytest.mark.parametrize("text", ["{", "", "[1]", "\xff"])
    def test_a_manifest_that_is_none(self, folder: RunFolder, text: str) -> None:
        folder.plan([])
        (folder.path / "manifest.json").write_text(text, encoding="latin-1")
        with pytest.raises(RunError, match=r"manifest\.json"):
            load(folder.path)

    def test_a_malformed_plan_names_the_place(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": "many"}])
        with pytest.raises(RunError, match=r"planned\.0\.n"):
            load(folder.path)

    def test_a_cell_planned_twice(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1}, {"arm": "a", "n": 2}])
        with pytest.raises(RunError, match=r"lists a cell twice.*'a'"):
            load(folder.path)

    def test_an_arm_that_nothing_is_said_about(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1}], arms={})
        with pytest.raises(RunError, match="nothing about a"):
            load(folder.path)

    def test_other_keys_are_ignored(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1, "later": 1}], later={"x": 1})
        assert load(folder.path).manifest.planned[0].n == 1


class TestDamage:
    @pytest.mark.parametrize("keep", [0, 3, 100, -10])
    def test_a_torn_file_is_named(self, folder: RunFolder, keep: int) -> None:
        folder.plan([{"arm": "a", "n": 2}])
        folder.write("episodes", [episode("a", "q1")])
        torn = folder.write("episodes", [episode("a", "q2")])
        torn.write_bytes(torn.read_bytes()[:keep])
        with pytest.raises(RunError, match=rf"{torn.name}: can't be read .*: it is torn"):
            _ = load(folder.path).episodes

    def test_damage_inside_is_named(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1}])
        part = folder.write("episodes", [episode("a", f"q{number}") for number in range(500)])
        content = bytearray(part.read_bytes())
        content[4:2000] = bytes(1996)
        part.write_bytes(content)
        with pytest.raises(RunError, match=part.name):
            _ = load(folder.path).episodes

    def test_a_missing_column_is_named(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1}])
        part = folder.write("episodes", [episode("a", "q1")])
        pq.write_table(pq.read_table(part).drop_columns(["usd", "score"]), part)
        with pytest.raises(RunError, match=rf"{part.name}: lacks the columns score, usd"):
            _ = load(folder.path).episodes

    def test_a_column_of_another_type(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1}])
        part = folder.write("episodes", [episode("a", "q1")])
        table = pq.read_table(part).drop_columns(["score"]).append_column("score", pa.array(["high"]))
        pq.write_table(table, part)
        with pytest.raises(RunError, match=rf"{part.name}: column score is of another type: string, not double"):
            _ = load(folder.path).episodes

    def test_a_row_without_a_key(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1}])
        folder.write("episodes", [episode("a", "q1", episode=None)])
        with pytest.raises(RunError, match="rows without episode"):
            _ = load(folder.path).episodes


class TestRowsWrittenTwice:
    EARLY = datetime(2026, 1, 1, tzinfo=UTC)
    LATE = datetime(2026, 1, 2, tzinfo=UTC)

    def test_the_first_to_finish_stays_whatever_the_files(self, folder: RunFolder) -> None:
        late = episode("a", "q1", score=0.9, finished_at=self.LATE)
        early = episode("a", "q1", score=0.1, finished_at=self.EARLY)
        other = episode("a", "q2", score=0.5)
        untimed = episode("a", "q1", score=0.0, finished_at=None)
        for number, parts in enumerate(([[late, other], [early, untimed]], [[untimed], [early], [other, late]])):
            one = RunFolder(folder.path / str(number))
            one.plan([{"arm": "a", "n": 2}])
            for rows in parts:
                one.write("episodes", rows)
            frame = load(one.path).episodes
            assert sorted(frame.numbers("score")) == [0.1, 0.5]
            assert frame.duplicates == 2

    def test_between_equals_content_decides(self, folder: RunFolder) -> None:
        rows = [episode("a", "q1", score=score) for score in (0.75, 0.25)]
        kept = set()
        for number, order in enumerate((rows, rows[::-1])):
            one = RunFolder(folder.path / str(number))
            one.plan([{"arm": "a", "n": 1}])
            one.write("episodes", order)
            kept.add(tuple(load(one.path).episodes.numbers("score")))
        assert kept == {(0.25,)}

    def test_keys_of_the_other_tables(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1}])
        folder.write(
            "renderings", [{"episode": name, "call": int(call)} for name, call in ("x0", "x1", "y0", "x1", "y0")]
        )
        folder.write("failures", [{"episode": "x"}, {"episode": "x"}])
        run = load(folder.path)
        renderings = run.renderings.table
        pairs = zip(renderings.column("episode").to_pylist(), renderings.column("call").to_pylist(), strict=True)
        assert sorted(pairs) == [("x", 0), ("x", 1), ("y", 0)]
        assert run.renderings.duplicates == 2
        assert len(run.failures) == 2  # two attempts


def test_the_manifest_is_read_once_and_tables_when_asked(folder: RunFolder) -> None:
    folder.plan([{"arm": "a", "n": 1}])
    torn = folder.write("renderings", [{"episode": "x", "call": 0}])
    torn.write_bytes(b"")
    folder.write("episodes", [episode("a", "q1")])
    run = load(folder.path)
    (folder.path / "manifest.json").write_text(json.dumps({}))
    assert len(run.episodes) == 1
    with pytest.raises(RunError, match="renderings"):
        _ = run.renderings
