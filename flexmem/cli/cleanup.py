"""``flexmem cleanup``: containers, child processes and folders that runs have left."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from flexmem.cli.output import INCOMPLETE, console, expected_errors, notes, print_json

if TYPE_CHECKING:
    from flexmem.sandbox.sweep import Scope, Swept


def cleanup(
    *,
    run: Annotated[
        Path | None, typer.Option("--run", help="Remove all that this run's folder names as its own, in use or not.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Remove all sandboxes of this user, in use or not.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Remove containers, child processes and folders that killed runs have left. What a living run uses stays."""
    from flexmem.sandbox.labels import run_name
    from flexmem.sandbox.sweep import Scope

    if run is not None and everything:
        raise typer.BadParameter("--run and --all exclude each other")
    with expected_errors():
        swept, problem = asyncio.run(_sweep(Scope(None if run is None else run_name(run), everything)))
    if as_json:
        print_json({"docker": problem, "removed": [asdict(entry) for entry in swept]})
    else:
        _show(swept, problem)
    if any(entry.error for entry in swept):
        raise typer.Exit(INCOMPLETE)


async def _sweep(scope: Scope) -> tuple[list[Swept], str | None]:
    """What was removed, and why containers weren't looked for."""
    from flexmem.sandbox.errors import DockerUnavailableError
    from flexmem.sandbox.runtime import DockerRuntime
    from flexmem.sandbox.sweep import sweep

    runtime = DockerRuntime()
    try:
        return await sweep(runtime, scope), None
    except DockerUnavailableError as error:
        return await sweep(None, scope), str(error)
    finally:
        runtime.daemon.close()


def _show(swept: list[Swept], problem: str | None) -> None:
    if problem is not None:
        notes().print(f"containers were not looked for: {problem}")
    if not swept:
        console().print("nothing was left")
        return
    table = Table("what", "name", "run", "why", "still there because")
    for entry in swept:
        table.add_row(entry.kind, entry.name, entry.run, entry.why, entry.error or "")
    console().print(table)
