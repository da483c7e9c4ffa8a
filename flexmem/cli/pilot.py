"""``flexmem plan --pilot``: run a few instances and tell what the whole sweep will take."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from flexmem.cli.output import INCOMPLETE, console, expected_errors, notes, print_json
from flexmem.cli.progress import shown_progress
from flexmem.cli.status import missing
from flexmem.sweep.config import ConfigError
from flexmem.sweep.plan import LoadedBenchmark, Plan

if TYPE_CHECKING:
    from flexmem.analysis.estimates import Detectable, Expected


def run_pilot(planned: Plan, count: int, out: Path | None, *, as_json: bool) -> int:
    """Run the first ``count`` instances of each benchmark in the sweep's own folder, where they stay: the sweep goes on
    from them. Prints the estimates; returns the exit code.
    """
    from flexmem.analysis.estimates import detectable, estimates
    from flexmem.analysis.frames import load
    from flexmem.sweep.engine import run_sweep
    from flexmem.sweep.status import read_status

    with expected_errors():
        folder = out or (Path(planned.config.out) if planned.config.out else None)
        if folder is None:
            raise ConfigError("a pilot keeps its results: give --out, or `out:` in the sweep's YAML")
        # Ray says what befalls its processes on standard output, which is for results.
        with shown_progress(planned.config.name) as on_progress, redirect_stdout(sys.stderr):
            outcome = run_sweep(first_instances(planned, count), folder, on_progress)
        if not outcome.complete:
            why = outcome.stopped or missing(read_status(folder))
            notes().print(f"error: the pilot did not finish: {why}; the same command resumes")
            return INCOMPLETE
        run = load(folder)
        instances = {loaded.name: len(loaded.instances) for loaded in planned.benchmarks}
        expected, smallest = estimates(run, instances), detectable(run, instances)
    if as_json:
        print_json({"estimates": [asdict(one) for one in expected], "detectable": [asdict(one) for one in smallest]})
        return 0
    table = Table("benchmark", "role", "calls", "tokens in", "tokens out", "USD")
    for one in expected:
        table.add_row(
            one.benchmark,
            one.role,
            *(_range(quantity, "{:,.0f}") for quantity in (one.calls, one.input_tokens, one.output_tokens)),
            _range(one.usd, "{:,.2f}"),
        )
    console().print(table)
    taken = ", ".join(f"{min(count, total):,} of {total:,} instances of {name}" for name, total in instances.items())
    console().print(f"the whole sweep with all arms and budgets, from {taken}; 95 % intervals over them")
    for found in smallest:
        console().print(_shown_by(found))
    return 0


def _shown_by(found: Detectable) -> str:
    """What a sweep's pairs would show, or why that can't be told."""
    if found.clusters < 2:
        return (
            f"{found.benchmark}: one instance shows no difference, however large: there is no interval over fewer than "
            "two; take more into the sweep"
        )
    if found.median is None or found.most is None:
        return (
            f"{found.benchmark}: a pilot of one instance does not tell what difference {found.clusters:,} would show; "
            "run two or more"
        )
    return (
        f"{found.benchmark}: its {found.clusters:,} instances would show a difference of {100 * found.median:.1f} "
        f"points in 80 of 100 sweeps (median of {found.comparisons:,} comparisons; the worst: {100 * found.most:.1f})"
    )


def _range(quantity: Expected, form: str) -> str:
    if quantity.value is None:
        return "unknown"
    if quantity.low is None or quantity.high is None:
        return form.format(quantity.value)
    return f"{form.format(quantity.value)} [{form.format(quantity.low)}, {form.format(quantity.high)}]"


def first_instances(planned: Plan, count: int) -> Plan:
    """The plan with the first instances of each benchmark only."""

    def shortened(loaded: LoadedBenchmark) -> LoadedBenchmark:
        chosen: dict[str, Any] = dict(islice(loaded.instances.items(), count))
        return replace(loaded, instances=chosen)

    return replace(planned, benchmarks=[shortened(loaded) for loaded in planned.benchmarks])
