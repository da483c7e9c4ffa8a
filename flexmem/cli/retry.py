"""``flexmem retry``: another try for failed episodes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from flexmem.cli.output import expected_errors, notes
from flexmem.cli.run import execute_sweep
from flexmem.sweep.config import parse_config


class Retried(StrEnum):
    """Failures that a run takes for final, until it is told otherwise."""

    METHOD = "method"
    LIMIT = "limit"
    AGENT = "agent"


def retry(
    run: Annotated[Path, typer.Argument(help="A run's output folder.")],
    error: Annotated[Retried, typer.Option("--error", help="The class of failures to try again.")],
    workers: Annotated[int | None, typer.Option(min=1, help="Episode workers; default one a CPU.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Run failed episodes of one class again, with the run's own configuration; kept replies are not paid again.

    Infrastructure failures need no retry: `flexmem run` runs them anyway.
    """
    from flexmem.sweep.manifest import read_manifest
    from flexmem.sweep.retry import set_aside

    with expected_errors():
        sweep = parse_config(read_manifest(run)["config"], f"{run}/manifest.json")
        moved = set_aside(run, error.value)
    notes().print(
        f"{moved:,} episodes that failed with class {error.value} are run again; their rows are in {run}/retried"
    )
    raise typer.Exit(execute_sweep(sweep, run, workers, as_json=as_json))
