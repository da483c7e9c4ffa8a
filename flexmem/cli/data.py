"""``flexmem data``: the public files that benchmarks read."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from flexmem.benchmarks import data
from flexmem.benchmarks.registry import known_files
from flexmem.cli.output import COMPLETE, INCOMPLETE, USAGE, console, expected_errors, notes, print_json

data_app = typer.Typer(no_args_is_help=True, help="Benchmark data: list, fetch, verify.")

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Names = Annotated[list[str] | None, typer.Argument(help="Files by name; none: all.")]


@data_app.command("list")
def list_files(*, as_json: Json = False) -> None:
    """Show every known file, where it was found and whether it is sound."""
    with expected_errors():
        states = data.states(known_files())
    if as_json:
        print_json([_row(state) for state in states])
        return
    table = Table("file", "state", "where", "licence", "bytes")
    for state in states:
        where = str(state.found.path) if state.found else state.file.addresses[0]
        table.add_row(state.file.name, state.state, where, state.file.licence, f"{state.file.size:,}")
    console().print(table)


@data_app.command()
def fetch(names: Names = None, *, as_json: Json = False) -> None:
    """Download files from their public addresses and check them against their pinned digests."""
    chosen = _chosen(names)
    rows = []
    for file in chosen:
        with expected_errors():
            path = data.fetch(file)
        rows.append({"name": file.name, "path": str(path)})
        if not as_json:
            console().print(f"{file.name}: {path}")
    if as_json:
        print_json(rows)


@data_app.command()
def verify(names: Names = None, *, as_json: Json = False) -> None:
    """Check the files that are here against their pinned digests; fetches nothing."""
    chosen = _chosen(names)
    with expected_errors():
        states = data.states(chosen)
    if as_json:
        print_json([_row(state) for state in states])
    else:
        for state in states:
            console().print(f"{state.file.name}: {state.problem or state.state}", markup=False)
    raise typer.Exit(COMPLETE if all(state.state == "good" for state in states) else INCOMPLETE)


def _chosen(names: list[str] | None) -> list[data.DataFile]:
    known = {file.name: file for file in known_files()}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        notes().print(f"error: no file {unknown[0]!r}; known: {', '.join(known)}")
        raise typer.Exit(USAGE)
    return [known[name] for name in names] if names else list(known.values())


def _row(state: data.FileState) -> dict[str, object]:
    return {
        "name": state.file.name,
        "state": state.state,
        "path": str(state.found.path) if state.found else None,
        "addresses": list(state.file.addresses),
        "sha256": state.file.sha256,
        "licence": state.file.licence,
        "problem": state.problem,
    }
