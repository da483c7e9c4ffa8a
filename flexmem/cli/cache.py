"""``flexmem cache``: the replies that a run has paid for."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from flexmem.cli.output import console, expected_errors, print_json
from flexmem.sweep.ledger import REPLIES

cache_app = typer.Typer(no_args_is_help=True, help="Replies that runs have paid for and keep.")

RunFolder = Annotated[Path, typer.Argument(help="A run's output folder.")]


@cache_app.command("list")
def list_replies(
    run: RunFolder,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Show kept replies by role and model: how many, their tokens and USD, and when they were made."""
    from flexmem.llm.reply_cache import kept_replies
    from flexmem.sweep.manifest import read_manifest

    with expected_errors():
        read_manifest(run)  # a wrong folder is named as such
        found = kept_replies(run / REPLIES)
    if as_json:
        print_json([asdict(entry) for entry in found])
        return
    table = Table("role", "model", "replies", "tokens in", "tokens out", "USD", "oldest", "newest")
    for entry in found:
        table.add_row(
            entry.role,
            entry.model,
            f"{entry.replies:,}",
            f"{entry.input_tokens:,}",
            f"{entry.output_tokens:,}",
            "unknown" if entry.usd is None else f"{entry.usd:.4f}",
            _day(entry.oldest),
            _day(entry.newest),
        )
    console().print(table)


@cache_app.command("prune")
def prune_replies(
    run: RunFolder,
    role: Annotated[str | None, typer.Option(help="Only replies of this role (reader, memory, judge).")] = None,
    model: Annotated[str | None, typer.Option(help="Only replies of this model.")] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, only say what would go.")] = False,
) -> None:
    """Delete kept replies: a run that needs them again pays for them again. Its results and its ledger stay."""
    from flexmem.llm.reply_cache import prune
    from flexmem.sweep.manifest import read_manifest
    from flexmem.sweep.results import lock_for_writing

    with expected_errors():
        read_manifest(run)
        with lock_for_writing(run):
            gone = prune(run / REPLIES, role=role, model=model, dry=not yes)
    console().print(f"{gone:,} replies {'deleted' if yes else 'would be deleted; --yes does it'}")


def _day(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")
