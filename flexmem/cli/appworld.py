"""``flexmem appworld``: AppWorld on this machine, in an environment of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from flexmem.cli.output import COMPLETE, INCOMPLETE, console, expected_errors, print_json

appworld_app = typer.Typer(no_args_is_help=True, help="AppWorld: install it, get its data or a small world, check.")

Root = Annotated[
    Path | None, typer.Option("--root", help="AppWorld's root folder; else APPWORLD_ROOT, else one in the cache.")
]


@appworld_app.command()
def install() -> None:
    """Install AppWorld in an environment of its own in the cache: it needs other packages than flexmem. It grades."""
    from flexmem.benchmarks.appworld.installation import install as make

    with expected_errors():
        found = make(lambda line: console().print(line, markup=False))
    console().print(f"AppWorld: {found.python}", markup=False)


@appworld_app.command()
def fetch(*, root: Root = None) -> None:
    """Download AppWorld's data with its own program, and check it."""
    fetch_data(root)


@appworld_app.command()
def world(*, root: Root = None) -> None:
    """Make a small world of our own, to try things without AppWorld's data (benchmark option `world: own`)."""
    from flexmem.benchmarks.appworld.world import make_world, own_root

    with expected_errors():
        made = make_world(root or own_root())
    console().print(f"world: {made}", markup=False)


@appworld_app.command()
def image(
    *,
    name: Annotated[str, typer.Option(help="Its name.")] = "flexmem/appworld",
    base: Annotated[str, typer.Option(help="An image with Python 3.11.")] = "python:3.11-slim",
) -> None:
    """Build the image that episodes run in, unless it is there and of this version."""
    from flexmem.benchmarks.appworld.image import ensure_image

    with expected_errors():
        built = asyncio.run(ensure_image(name, base=base))
    console().print(f"{name}: {'built' if built else 'is there'}", markup=False)


@appworld_app.command()
def check(*, root: Root = None, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Say what is there of AppWorld and what is missing."""
    from flexmem.benchmarks.appworld.data import check as look
    from flexmem.benchmarks.appworld.data import root as default_root
    from flexmem.benchmarks.appworld.environments import check_isolation
    from flexmem.benchmarks.appworld.installation import Installation
    from flexmem.benchmarks.appworld.settings import EnvironmentSettings
    from flexmem.errors import FlexmemError

    with expected_errors():
        lacks = look(root or default_root())
    for found in (lambda: Installation.find(), lambda: check_isolation(EnvironmentSettings())):
        try:
            found()
        except FlexmemError as error:
            lacks.append(str(error))
    if as_json:
        print_json({"missing": lacks})
    else:
        for line in lacks or ["nothing is missing"]:
            console().print(line, markup=False)
    raise typer.Exit(INCOMPLETE if lacks else COMPLETE)


def fetch_data(root: Path | None) -> None:
    """Also ``flexmem data fetch appworld``."""
    from flexmem.benchmarks.appworld.data import fetch as load
    from flexmem.benchmarks.appworld.data import root as default_root

    with expected_errors():
        at = root or default_root()
        load(at)
    console().print(f"appworld: {at}", markup=False)
