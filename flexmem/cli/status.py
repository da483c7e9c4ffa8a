"""``flexmem status``: where a run stands, told from its folder, whoever runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from flexmem.cli.output import COMPLETE, INCOMPLETE, console, expected_errors, print_json
from flexmem.sweep.stall import Stall


def status(
    run: Annotated[Path, typer.Argument(help="A run's output folder.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Show planned, done and failed episodes by cell, judgements, and errors; exit 1 if episodes or judgements are
    missing, or if a method broke.
    """
    from flexmem.sweep.status import read_status

    with expected_errors():
        found = read_status(run)
    if as_json:
        print_json(found)
    else:
        table = Table("benchmark", "arm", "budget", "planned", "done", "failed")
        for cell in found["cells"]:
            budget = "-" if cell["budget"] is None else f"{cell['budget']:,}"
            numbers = (f"{cell[key]:,}" for key in ("planned", "done", "failed"))
            table.add_row(cell["benchmark"], cell["arm"], budget, *numbers)
        console().print(table)
        for line in error_lines(found):
            console().print(line, markup=False, highlight=False)
        if found["running"]:
            for line in (running_line(found), *activity_lines(found)):
                console().print(line, markup=False, highlight=False, soft_wrap=True)
        for line in cost_lines(found):
            console().print(line, markup=False, highlight=False)
        for line in judge_lines(found):
            console().print(line, markup=False, highlight=False)
        console().print(f"{found['done']:,} of {found['planned']:,} episodes done, {found['failed']:,} of them failed")
    raise typer.Exit(exit_code(found))


def error_lines(found: dict[str, Any]) -> list[str]:
    """What went wrong, most frequent first."""
    return [f"{error['times']:,} x {error['class']}: {error['error']}" for error in found["errors"]]


def running_line(found: dict[str, Any]) -> str:
    """How fast the stage goes on that a run is at."""
    judging = found["judgements"] is not None and found["judgements"]["running"]
    stage, verb, of = (found["judgements"], "judging", "judgements") if judging else (found, "running", "episodes")
    to_go = f", {stage['eta_s']:.0f} s to go" if stage["eta_s"] else ""
    return f"{verb}: {stage['rate']:.1f} {of}/s over the last minute{to_go}"


def judge_lines(found: dict[str, Any]) -> list[str]:
    """What each judge has judged of the replies that are there."""
    lines = []
    for judge in (found["judgements"] or {"by_judge": []})["by_judge"]:
        failed = f", {judge['failed']:,} of them without a verdict" if judge["failed"] else ""
        lines.append(f"judge {judge['judge']}: {judge['done']:,} of {judge['planned']:,} replies judged{failed}")
    return lines


def missing(found: dict[str, Any]) -> str:
    """What a run lacks that is not complete."""
    parts = []
    if left := sum(max(0, cell["planned"] - cell["done"]) for cell in found["cells"]):
        parts.append(f"{left:,} of {found['planned']:,} episodes are still to run")
    judged = found["judgements"]
    if judged and judged["done"] < judged["planned"]:
        parts.append(f"{judged['planned'] - judged['done']:,} of {judged['planned']:,} judgements are missing")
    return " and ".join(parts)


def activity_lines(found: dict[str, Any]) -> list[str]:
    """What a run that goes on is doing, as its driver said last."""
    if found["heartbeat_s"] is None:
        return []
    ago = f"{found['heartbeat_s']:.0f} s ago"
    if found["in_flight"] is None:
        return [f"in flight: not known, the driver spoke last {ago}"]
    stages = ", ".join(f"{number:,} {stage}" for stage, number in found["in_flight"].items())
    lines = [f"in flight, {ago}: {stages or 'nothing'}"]
    if workers := found["workers"]:
        memory = f", up to {workers['memory_mb']:,} MB each" if workers["memory_mb"] else ""
        starting, recycled = workers["starting"], found["recycled"]
        lines.append(f"workers: {workers['number']}, {starting} of them starting, {recycled} recycled{memory}")
    if found["stall"]:
        lines.append(f"stalled: {Stall(**found['stall'])}")
    return lines


def cost_lines(found: dict[str, Any]) -> list[str]:
    """Tokens of the models that were called, and what they cost where that is known."""
    lines = []
    for role in ("reader", "memory"):
        used = [found["tokens"][f"{role}_{kind}_tokens"] for kind in ("input", "output")]
        if any(number != 0 for number in used):
            read, written = ("unknown" if number is None else f"{number:,}" for number in used)
            usd = f", {found['usd']:.2f} USD" if role == "reader" and found["usd"] is not None else ""
            lines.append(f"{role} model: {read} tokens in, {written} out{usd}")
    return lines


def exit_code(found: dict[str, Any]) -> int:
    """0 only for a run that is complete, judgements included, and in which no method broke: its own code is then what
    must be looked at.
    """
    broken = any(error["class"] == "method" for error in found["errors"])
    return COMPLETE if found["complete"] and not broken else INCOMPLETE
