"""``flexmem compare``: two arms of a run on the questions that both have answered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from flexmem.cli.output import console, expected_errors, print_json


def compare(
    run: Annotated[Path, typer.Argument(help="A run's output folder.")],
    first: Annotated[str, typer.Argument(help="An arm.")],
    second: Annotated[str, typer.Argument(help="The arm that it is set against.")],
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="An array, one object a benchmark, budget and reader.")
    ] = False,
) -> None:
    """Compare two arms on complete pairs; episodes without a partner are counted and left out."""
    from flexmem.analysis.frames import load
    from flexmem.analysis.pairs import compare as pair_up

    with expected_errors():
        found = pair_up(load(run), first, second)
    if as_json:
        print_json(
            [
                {
                    "benchmark": pairs.first.benchmark,
                    "budget": pairs.first.budget if pairs.first.budget is not None else pairs.second.budget,
                    "reader": pairs.first.reader,
                    "first": first,
                    "second": second,
                    "metric": pairs.metric,
                    "questions": len(pairs),
                    "conversations": pairs.conversations,
                    "left_out": pairs.left_out,
                    "score_first": float(pairs.left.mean()) if len(pairs) else None,
                    "score_second": float(pairs.right.mean()) if len(pairs) else None,
                    "difference": pairs.difference,
                    "difference_low": (pairs.interval() or (None, None))[0],
                    "difference_high": (pairs.interval() or (None, None))[1],
                }
                for pairs in found
            ]
        )
        return
    names = (Column(name, overflow="fold") for name in ("metric", "questions", "left out", first, second))
    table = Table("benchmark", "budget", *names, "difference", "95 %")
    for pairs in found:
        budget = pairs.first.budget if pairs.first.budget is not None else pairs.second.budget
        interval = pairs.interval()
        table.add_row(
            pairs.first.benchmark,
            "-" if budget is None else f"{budget:,}",
            pairs.metric,
            f"{len(pairs):,} in {pairs.conversations:,}",
            f"{pairs.left_out:,}",
            *(f"{100 * side.mean():.1f}" if len(pairs) else "-" for side in (pairs.left, pairs.right)),
            "-" if pairs.difference is None else f"{100 * pairs.difference:+.1f}",
            "-" if interval is None else f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f}",
        )
    console().print(table)
    console().print("questions: complete pairs, in so many conversations; left out: episodes without a scored partner")
