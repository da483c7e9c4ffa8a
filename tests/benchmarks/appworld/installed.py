"""AppWorld's installation and a world of our own, for tests that run AppWorld itself."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.appworld.errors import InstallationMissingError
from flexmem.benchmarks.appworld.inside_process import last_line, run_inside
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.appworld.world import make_world

PROGRAMS = ("right", "near_miss", "no_op")


def demand_installation() -> Installation:
    """Skip where AppWorld is not installed; in CI fail."""
    try:
        return Installation.find()
    except InstallationMissingError as error:
        how = f"this runs AppWorld itself: {error}"
        if os.environ.get("CI"):
            pytest.fail(how)
        pytest.skip(how)


def demand_world(installation: Installation) -> Path:
    """The own world's root in the cache, made if need be (a minute or so)."""
    return make_world(installation=installation)


@cache
def solved(world: Path, installation: Installation, folder: Path) -> tuple[dict[str, dict[str, str]], Path]:
    """Every program of every task, run once for all tests: what AppWorld printed, by program and task, and AppWorld's
    outputs folder, with an experiment for each program.
    """
    at = folder / "solved"
    at.mkdir()
    (at / "data").symlink_to(world / "data")
    arguments = ["-m", "world", "solve", str(at), *PROGRAMS]
    out = run_inside(installation, arguments, root=at, deadline_s=900, what="solving")
    printed: dict[str, dict[str, str]] = last_line(out, "solving")
    return printed, at / "experiments" / "outputs"


def ask_inside(code: str, installation: Installation, root: Path) -> Any:
    """The JSON that a program prints in AppWorld's interpreter."""
    return last_line(run_inside(installation, ["-c", code], root=root, deadline_s=300, what="asking"), "asking")
