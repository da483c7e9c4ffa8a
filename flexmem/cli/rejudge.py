"""``flexmem rejudge``: stored replies before other judges; no reader is asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flexmem.cli.output import COMPLETE, INCOMPLETE, INTERRUPTED, console, expected_errors, notes, print_json
from flexmem.cli.progress import shown_progress
from flexmem.cli.report import show_report
from flexmem.sweep.config import ConfigError


def rejudge(
    run: Annotated[Path, typer.Argument(help="A run's output folder.")],
    config: Annotated[Path, typer.Argument(help="A sweep's YAML whose models.judges are to judge.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Have the replies of a run judged by the judges of a YAML, beside those that have judged them; prints its report
    with each method's score by each judge.
    """
    from flexmem.llm.accounts import budget_for, local_budgets
    from flexmem.llm.config import make_model
    from flexmem.sweep.config import load_config
    from flexmem.sweep.judging import judge_run
    from flexmem.sweep.manifest import add_judges, read_manifest
    from flexmem.sweep.plan import load_benchmarks
    from flexmem.sweep.preflight import check_endpoints, check_prices
    from flexmem.sweep.progress import tell_judging

    with expected_errors():
        sweep = load_config(config)
        judges = sweep.models.judges
        if not judges:
            raise ConfigError(f"{config}: names no judges (models.judges)")
        read_manifest(run)
        check_prices((entry.model for entry in judges), sweep.engine.max_usd)
        check_endpoints(entry.model for entry in judges)  # before the run is said to have these judges
        benchmarks = load_benchmarks(sweep)
        add_judges(run, benchmarks, judges)
        budgets = local_budgets(entry.model for entry in judges)
        try:
            with shown_progress(sweep.name) as on_progress:
                outcome = judge_run(
                    benchmarks,
                    judges,
                    run,
                    lambda entry: make_model(entry.model, budget_for(entry.model, budgets)),
                    in_flight=sweep.engine.in_flight,
                    max_usd=sweep.engine.max_usd,
                    on_judged=tell_judging(on_progress),
                )
        except KeyboardInterrupt:
            notes().print("interrupted: what is judged is kept, and the same command goes on")
            raise typer.Exit(INTERRUPTED) from None
    summary = {
        "wanted": outcome.wanted,
        "done": outcome.done,
        "errors": dict(outcome.errors),
        "stopped": outcome.stopped or None,
    }
    if as_json:
        print_json(summary)
    else:
        show_report(run)
        console().print(f"{outcome.done:,} of {outcome.wanted:,} judgements")
    if not outcome.wanted:
        notes().print(f"note: {run} has no reply that a judge scores")
    for error, times in outcome.errors.items():
        notes().print(f"error: {times:,} x {error}")
    if outcome.stopped:
        notes().print(f"error: judging stopped: {outcome.stopped}")
    raise typer.Exit(COMPLETE if outcome.complete else INCOMPLETE)
