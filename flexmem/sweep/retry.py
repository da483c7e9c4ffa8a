"""Giving failed episodes another try: their rows are set aside, so that the sweep finds them missing."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from flexmem.sweep.durable import write_table
from flexmem.sweep.failures import FINAL, ErrorClass
from flexmem.sweep.results import lock_for_writing, parts, read_part

RETRIED = "retried"


def set_aside(out: Path, error_class: ErrorClass) -> int:
    """Move the rows of episodes that failed with that class, and their renderings, to ``retried/``; returns how many.

    A row is in ``retried/`` before it leaves its table, so an interruption loses none; done again, it goes on.

    Raises:
        FolderBusyError: a run writes into the folder. TornPartError: a part can't be read.
    """
    if error_class not in FINAL:
        return 0  # those have no row: the sweep runs them anyway
    with lock_for_writing(out):
        failed = [
            key
            for path in parts(out, "episodes")
            for key in _failed(read_part(path, "episodes"), error_class)["episode"].to_pylist()
        ]
        wanted = pa.array(sorted(set(failed)), type=pa.string())
        for name in ("renderings", "episodes"):  # the episode's row is what makes it finished: it goes last
            for path in parts(out, name):
                move_rows(out / RETRIED, name, path, wanted)
    return len(wanted)


def move_rows(aside: Path, name: str, path: Path, episodes: pa.Array) -> None:
    """Move the rows of some episodes from one file of a table to a folder of that table below ``aside``."""
    table = read_part(path, name)
    leaving = pc.is_in(table["episode"], value_set=episodes)
    if not pc.any(leaving).as_py():
        return
    (aside / name).mkdir(parents=True, exist_ok=True)
    write_table(aside / name / f"part-{uuid.uuid4().hex}.parquet", table.filter(leaving))
    write_table(path, table.filter(pc.invert(leaving)))


def _failed(table: pa.Table, error_class: ErrorClass) -> pa.Table:
    return table.filter(
        pc.and_kleene(pc.equal(table["outcome"], "failed"), pc.equal(table["error_class"], error_class))
    )
