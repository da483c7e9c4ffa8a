"""Parts on disk: whole or not at all, and what is said of a torn one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flexmem.sweep.recovery import remove_leftovers, set_torn_aside
from flexmem.sweep.results import (
    WRITE_ORDER,
    FolderBusyError,
    TornPartError,
    finished_keys,
    lock_for_writing,
    make_table,
    parts,
    write_parts,
)
from flexmem.sweep.sink import RowSink
from flexmem.sweep.tables import TABLES

from .harness import contents, rows


def episodes(*keys: str) -> dict[str, pa.Table]:
    return {"episodes": make_table("episodes", [{"episode": key, "outcome": "ok"} for key in keys])}


def test_rows_come_back_as_they_were_and_what_a_row_lacks_is_null(out: Path) -> None:
    row: dict[str, Any] = {"episode": "k", "score": 0.5, "budget": 4_000, "scores": [{"metric": "f1", "value": 0.5}]}
    assert write_parts(out, "p", {"episodes": make_table("episodes", [row])}) == 1
    (found,) = rows(out, "episodes")
    assert {name: value for name, value in found.items() if value is not None} == row
    assert found.keys() == set(TABLES["episodes"].names)


def test_a_column_that_the_schema_lacks_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"table episodes has no columns \['speed'\]"):
        make_table("episodes", [{"episode": "k", "speed": 1}])


def test_every_table_has_a_place_in_the_order_of_writing_and_episodes_come_last() -> None:
    assert set(WRITE_ORDER) == set(TABLES)
    assert WRITE_ORDER[-1] == "episodes"


def test_the_same_part_again_replaces_itself(out: Path) -> None:
    for _ in range(2):
        write_parts(out, "a", episodes("k1", "k2"))
    write_parts(out, "b", episodes("k3"))
    assert finished_keys(out) == {"k1", "k2", "k3"}
    assert [path.name for path in parts(out, "episodes")] == ["part-a.parquet", "part-b.parquet"]
    assert len(rows(out, "episodes")) == 3


def test_an_empty_table_leaves_no_file(out: Path) -> None:
    assert write_parts(out, "a", {"failures": make_table("failures", [])} | episodes("k")) == 1
    assert not (out / "failures").exists()
    assert finished_keys(out / "nowhere") == set()


def test_a_write_that_fails_leaves_no_part_and_what_was_there_stays(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parts(out, "a", episodes("k1"))
    before = contents(out)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("flexmem.sweep.durable.pq.write_table", full)
    with pytest.raises(OSError, match="No space left"):
        write_parts(out, "b", episodes("k2"))
    assert finished_keys(out) == {"k1"}
    assert contents(out) == before


def test_leftovers_of_an_interrupted_run_are_no_results_and_are_removed(out: Path) -> None:
    write_parts(out, "a", episodes("k1"))
    before = contents(out)
    (out / "episodes" / ".tmp-b.parquet").write_bytes(b"PAR1 half a part")
    assert finished_keys(out) == {"k1"}
    assert remove_leftovers(out) == 1
    assert contents(out) == before


@pytest.mark.parametrize("keep", [0, 4, 40, -1, -300])
def test_a_torn_part_is_named_with_what_to_do(keep: int, out: Path) -> None:
    write_parts(out, "a", episodes("k1"))
    write_parts(out, "b", episodes("k2"))
    torn = out / "episodes" / "part-b.parquet"
    torn.write_bytes(torn.read_bytes()[:keep])
    with pytest.raises(TornPartError) as raised:
        finished_keys(out)
    assert str(raised.value).startswith(f"{torn}: can't be read (")
    assert str(raised.value).endswith("move it away, and its episodes run again")
    torn.rename(out / "torn.parquet")
    assert finished_keys(out) == {"k1"}


def test_a_part_with_damaged_pages_is_named_too(out: Path) -> None:
    write_parts(out, "a", episodes(*(f"{key:032x}" for key in range(2_000))))
    (part,) = parts(out, "episodes")
    content = bytearray(part.read_bytes())
    content[100:4_000] = bytes(3_900)
    part.write_bytes(content)
    with pytest.raises(TornPartError, match="part-a"):
        finished_keys(out)


@pytest.mark.parametrize("table", ["episodes", "renderings"])
def test_a_torn_part_is_set_aside_with_what_was_written_with_it(table: str, out: Path) -> None:
    renderings = make_table("renderings", [{"episode": "k2"}])
    write_parts(out, "a", episodes("k1"))
    write_parts(out, "b", {**episodes("k2"), "renderings": renderings})
    torn = out / table / "part-b.parquet"
    torn.write_bytes(torn.read_bytes()[:-20])
    moved = set_torn_aside(out)
    assert sorted(path.relative_to(out).parts for path in moved) == [
        ("torn", "episodes", "part-b.parquet"),
        ("torn", "renderings", "part-b.parquet"),
    ]
    assert all(path.is_file() for path in moved)
    assert finished_keys(out) == {"k1"}
    assert set_torn_aside(out) == []


def test_one_at_a_time_may_write_into_a_folder(out: Path) -> None:
    out.mkdir()
    with lock_for_writing(out), pytest.raises(FolderBusyError, match=r"run: another run writes into it"):
        lock_for_writing(out, wait_s=0.0)
    with lock_for_writing(out, wait_s=0.0):
        assert finished_keys(out) == set()


def test_a_lock_ends_with_the_process_that_held_it(out: Path) -> None:
    out.mkdir()
    code = (
        "import sys, time; from pathlib import Path; from flexmem.sweep.results import lock_for_writing; "
        "held = lock_for_writing(Path(sys.argv[1])); print('held', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(FolderBusyError):
            lock_for_writing(out, wait_s=0.0)
        holder.kill()
        with lock_for_writing(out):  # waits for the end of the holder
            assert holder.wait(60) != 0


# ---------------------------------------------------------------- batches


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Delivered:
    """Keeps what a sink delivers."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, dict[str, int]]] = []

    async def __call__(self, part: str, tables: Mapping[str, pa.Table]) -> int:
        self.parts.append((part, {name: table.num_rows for name, table in tables.items()}))
        return 0


def test_a_sink_delivers_full_batches_old_batches_and_the_rest() -> None:
    clock, delivered = Clock(), Delivered()
    sink = RowSink(delivered, "s", rows=2, seconds=5.0, clock=clock)

    async def play() -> None:
        await sink.deliver_if_due()
        sink.add("pieces", {"digest": "d"})
        await sink.deliver_if_due()  # nothing is finished yet
        for key in ("a", "b"):
            sink.add("episodes", {"episode": key})
            await sink.deliver_if_due()
        sink.add("failures", {"episode": "c"})
        await sink.deliver_if_due()
        clock.now = 5.0
        await sink.deliver_if_due()
        sink.add("builds", {"build": "x"})
        await sink.deliver()
        await sink.deliver()

    asyncio.run(play())
    assert delivered.parts == [
        ("s-000000", {"pieces": 1, "episodes": 2}),
        ("s-000001", {"failures": 1}),
        ("s-000002", {"builds": 1}),
    ]
