"""``flexmem plan`` and ``flexmem run``."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from flexmem.cli.output import INCOMPLETE, INTERRUPTED, console, expected_errors, notes, print_json
from flexmem.cli.progress import shown_progress
from flexmem.cli.status import error_lines, exit_code, missing
from flexmem.sweep.config import ConfigError, SweepConfig, load_config
from flexmem.sweep.plan import Plan, make_plan

if TYPE_CHECKING:
    from flexmem.sweep.progress import OnProgress, SweepOutcome

ConfigPath = Annotated[Path, typer.Argument(help="The sweep's YAML.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def plan(
    config: ConfigPath,
    pilot: Annotated[
        int | None, typer.Option(min=1, help="Run so many instances of each benchmark, and tell what all would take.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="With --pilot: the sweep's output folder, which keeps them.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Show what a sweep would run; reads the data, makes no model call without --pilot."""
    with expected_errors():
        planned = make_plan(load_config(config))
    if pilot is not None:
        from flexmem.cli.pilot import run_pilot

        raise typer.Exit(run_pilot(planned, pilot, out, as_json=as_json))
    cells = planned.cells()
    if as_json:
        print_json({"cells": cells, "episodes": sum(cell["n"] for cell in cells), "notes": planned.notes()})
        return
    table = Table("benchmark", "arm", "budget", "reader", "episodes")
    for cell in cells:
        budget = "-" if cell["budget"] is None else f"{cell['budget']:,}"
        table.add_row(cell["benchmark"], cell["arm"], budget, cell["reader"] or "-", f"{cell['n']:,}")
    console().print(table)
    console().print(f"{sum(cell['n'] for cell in cells):,} episodes in {planned.size()[0]:,} builds")
    _print_notes(planned)


def run(
    config: ConfigPath,
    out: Annotated[
        Path | None, typer.Option(help="Output folder, else `out:` in the YAML; the same one resumes.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Episode workers; default one a CPU.")] = None,
    replay: Annotated[
        Path | None, typer.Option(help="A finished run's folder: all replies come from there, nothing is sent.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Run a sweep, or go on with one; prints its report."""
    raise typer.Exit(execute(config, out, workers, as_json=as_json, replay=replay))


def execute(config: Path, out: Path | None, workers: int | None, *, as_json: bool, replay: Path | None = None) -> int:
    """What `run` does, for `ray_jobs/sweep.py` as well; returns the exit code."""
    with expected_errors():
        sweep = load_config(config)
        folder = out or (Path(sweep.out) if sweep.out else None)
        if folder is None:
            raise ConfigError("no output folder: give --out, or `out:` in the sweep's YAML")
    return execute_sweep(sweep, folder, workers, as_json=as_json, replay=replay)


def execute_sweep(
    sweep: SweepConfig, folder: Path, workers: int | None, *, as_json: bool, replay: Path | None = None
) -> int:
    """Run what is missing of a sweep in its folder and print the report; returns the exit code."""
    from flexmem.cli.report import show_report
    from flexmem.sweep.status import read_status

    with expected_errors():
        sweep = _with_workers(sweep, workers)
        planned = make_plan(sweep)
        _print_notes(planned)
        # Ray says what befalls its processes on standard output, which is for results.
        with shown_progress(sweep.name) as on_progress, redirect_stdout(sys.stderr):
            outcome = _run(planned, folder, on_progress, replay)
        found = read_status(folder)
    summary = {
        "run": str(folder),
        "planned": outcome.planned,
        "done": outcome.done,
        "complete": outcome.complete,
        "counts": outcome.counts,
        "failed": found["failed"],
        "errors": found["errors"],
        "stopped": outcome.stopped or None,
        "lost": list(outcome.lost),
        "torn": list(outcome.torn),
        "judging": None
        if outcome.judging is None
        else {
            "wanted": outcome.judging.wanted,
            "done": outcome.judging.done,
            "errors": dict(outcome.judging.errors),
        },
        "recycled": outcome.recycled,
    }
    if as_json:
        print(json.dumps(summary))
    else:
        show_report(folder)
        console().print(f"results: {folder}", soft_wrap=True, markup=False, highlight=False)
    for torn in outcome.torn:
        notes().print(f"note: torn part set aside, its episodes have run again: {torn}")
    for note in outcome.notes:
        notes().print(f"note: {note}")
    for line in error_lines(found):
        notes().print(f"error: {line}")
    if outcome.stopped:
        notes().print(f"error: the run stopped: {outcome.stopped}")
    for lost in outcome.lost:
        notes().print(f"error: given up after its workers died: {lost}")
    if outcome.judging is not None:
        for error, times in outcome.judging.errors.items():
            notes().print(f"error: judging, {times:,} x {error}")
    if not outcome.complete:
        left = outcome.planned - outcome.done
        what = f"{left:,} of {outcome.planned:,} episodes are still to run"
        if not left and outcome.judging is not None:
            what = f"{outcome.judging.wanted - outcome.judging.done:,} replies are still to be judged"
        notes().print(f"incomplete: {what}; the same command resumes")
    elif not found["complete"]:  # the folder's plan and judges may be more than this sweep's
        notes().print(f"incomplete: {missing(found)}, of what other sweeps planned in this folder")
    return exit_code(found) if outcome.complete else INCOMPLETE


def _run(planned: Plan, folder: Path, on_progress: OnProgress, replay: Path | None) -> SweepOutcome:
    """Run the sweep; an interrupt ends it with one line."""
    from flexmem.sweep.engine import run_sweep

    try:
        return run_sweep(planned, folder, on_progress, replay=replay)
    except KeyboardInterrupt:
        notes().print("interrupted: what is finished is kept, and the same command resumes")
        raise typer.Exit(INTERRUPTED) from None


def _with_workers(sweep: SweepConfig, workers: int | None) -> SweepConfig:
    if workers is None:
        return sweep
    return sweep.model_copy(update={"engine": sweep.engine.model_copy(update={"workers": workers})})


def _print_notes(planned: Plan) -> None:
    for loaded in planned.benchmarks:
        if loaded.replaced:
            notes().print(f"note: {loaded.replaced}")
