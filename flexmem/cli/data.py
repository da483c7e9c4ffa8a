"""``flexmem data``: the public files that benchmarks read."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Column, Table

from flexmem.benchmarks import data
from flexmem.benchmarks.registry import known_files
from flexmem.cli.appworld import fetch_data
from flexmem.cli.output import COMPLETE, INCOMPLETE, USAGE, console, expected_errors, notes, print_json

data_app = typer.Typer(no_args_is_help=True, help="Benchmark data: list, fetch, verify.")

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Names = Annotated[list[str] | None, typer.Argument(help="Files or folders by name, such as locomo; none: all.")]


@data_app.command("list")
def list_files(*, as_json: Json = False) -> None:
    """Show every known file, where it was found and whether it is sound."""
    with expected_errors():
        states = data.states(known_files())
    if as_json:
        print_json([_row(state) for state in states])
        return
    table = Table(Column("file", no_wrap=True), "state", "where", "licence", "bytes")
    for state in states:
        where = str(state.found.path) if state.found else next(iter(state.file.sources), "no public address")
        size = "?" if state.file.size is None else f"{state.file.size:,}"
        table.add_row(state.file.name, state.state, where, state.file.licence, size)
    console().print(table)


@data_app.command()
def fetch(names: Names = None, *, as_json: Json = False) -> None:
    """Download files from their public addresses and check them against their pinned digests. Without names, all that
    have an address: some gigabytes. `appworld` is downloaded by AppWorld itself (`flexmem appworld`).
    """
    if names and "appworld" in names:
        fetch_data(None)  # its own program does that
        names = [name for name in names if name != "appworld"]
        if not names:
            return
    chosen = [file for file in _chosen(names) if names or file.sources]
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
    """Check the files that are here against their pinned digests; fetches nothing. Of an unpinned file it tells the
    digest.
    """
    chosen = _chosen(names)
    with expected_errors():
        states = data.states(chosen)
    if as_json:
        print_json([_row(state) for state in states])
    else:
        for state in states:
            console().print(f"{state.file.name}: {state.problem or state.state}", markup=False)
    raise typer.Exit(COMPLETE if all(state.state in ("good", "unpinned") for state in states) else INCOMPLETE)


def _chosen(names: list[str] | None) -> list[data.DataFile]:
    known = known_files()
    if not names:
        return known
    chosen = []
    for name in names:
        found = [file for file in known if file.name == name or file.name.startswith(name.rstrip("/") + "/")]
        if not found:
            notes().print(f"error: no file {name!r}; known: {', '.join(file.name for file in known)}")
            raise typer.Exit(USAGE)
        chosen += found
    return chosen


def _row(state: data.FileState) -> dict[str, object]:
    return {
        "name": state.file.name,
        "state": state.state,
        "path": str(state.found.path) if state.found else None,
        "addresses": list(state.file.sources),
        "sha256": state.file.sha256,
        "licence": state.file.licence,
        "problem": state.problem,
    }
