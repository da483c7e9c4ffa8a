"""What an interrupted run left behind, put right before another goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from flexmem.dataset import merge_of
from flexmem.sweep.durable import TEMPORARY, write_table
from flexmem.sweep.merging import finish_merges
from flexmem.sweep.results import TornPartError, parts, read_columns, read_part
from flexmem.sweep.retry import move_rows
from flexmem.sweep.tables import TABLES

TORN = "torn"


def recover(out: Path) -> list[Path]:
    """Remove temporary files and rows of unfinished episodes, finish or undo merges, and set torn files aside; returns
    those. Only while nobody writes into the folder.

    Raises:
        TornPartError: a record of merges is damaged.
    """
    remove_leftovers(out)
    for name in TABLES:
        parts(out, name)  # a damaged record is named before anything is removed
        finish_merges(out, name)
    moved = set_torn_aside(out)
    drop_unfinished(out)
    return moved


def drop_unfinished(out: Path) -> int:
    """Remove renderings of episodes that have no row: a kill came between the two, and the episode is done again.
    Returns how many. Only while nobody writes.
    """
    tables = read_columns(out, "episodes", ["episode"])
    finished = pa.concat_tables(tables).column("episode") if tables else pa.array([], pa.string())
    dropped = 0
    for path in parts(out, "renderings"):
        ended = pc.is_in(read_part(path, "renderings", ["episode"])["episode"], value_set=finished)
        missing = pc.sum(pc.invert(ended)).as_py() or 0
        if missing:
            write_table(path, read_part(path, "renderings").filter(ended))
        dropped += missing
    return dropped


def remove_leftovers(out: Path) -> int:
    """Delete temporary files of an interrupted run; returns how many there were. Only while nobody writes."""
    leftovers = [path for name in TABLES for path in (out / name).rglob(f"{TEMPORARY}*")]
    for path in leftovers:
        path.unlink()
    return len(leftovers)


def set_torn_aside(out: Path) -> list[Path]:
    """Move files that can't be read to ``torn/``; returns where they are now. Only while nobody writes.

    With a fresh part go the parts of other tables that were written with it. Of a merged file nobody knows what was
    written with it: episodes that it held have no row then, and finished episodes whose rendering it held lose theirs
    (to ``torn/`` as well), so both run again. Lost rows of ``builds`` and ``pieces`` come back as far as episodes do.

    Raises:
        TornPartError: a record of merges is damaged.
    """
    broken = [(name, path) for name in TABLES for path in parts(out, name) if not _readable(path, name)]
    names = {path.name for _, path in broken if merge_of(path) is None}
    together = [(name, path) for name in TABLES for path in parts(out, name) if path.name in names]
    moved = [_move(out, name, path) for name, path in dict.fromkeys([*broken, *together])]
    if any(name == "renderings" and merge_of(path) is not None for name, path in broken):
        _take_back_unrendered(out)
    return moved


def _move(out: Path, name: str, path: Path) -> Path:
    aside = out / TORN / name / path.relative_to(out / name)
    aside.parent.mkdir(parents=True, exist_ok=True)
    os.replace(path, aside)
    return aside


def _take_back_unrendered(out: Path) -> None:
    """Set aside the rows of episodes that ended well and whose rendering is gone."""
    tables = read_columns(out, "renderings", ["episode"])
    rendered = pa.concat_tables(tables).column("episode") if tables else pa.array([], pa.string())
    for path in parts(out, "episodes"):
        table = read_part(path, "episodes", ["episode", "outcome"])
        shown = pc.is_in(table["episode"], value_set=rendered)
        lost = table.filter(pc.and_(pc.equal(table["outcome"], "ok"), pc.invert(shown)))
        move_rows(out / TORN, "episodes", path, lost.column("episode").combine_chunks())


def _readable(path: Path, name: str) -> bool:
    """Whether footer and keys can be read; a page that is damaged elsewhere is found by whoever reads it."""
    try:
        read_part(path, name, TABLES[name].names[:1])
    except TornPartError:
        return False
    return True
