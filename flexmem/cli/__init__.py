"""The command line: parse, call, print. Exit codes: 0 complete, 1 incomplete or failed, 2 usage."""

from __future__ import annotations

import os

import typer

from flexmem.cli.cache import cache_app
from flexmem.cli.collect import collect
from flexmem.cli.compare import compare
from flexmem.cli.data import data_app
from flexmem.cli.doctor import doctor
from flexmem.cli.methods import methods
from flexmem.cli.rejudge import rejudge
from flexmem.cli.report import report
from flexmem.cli.retry import retry
from flexmem.cli.run import plan, run
from flexmem.cli.status import status

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Memory methods for LLM agents, and the harness that compares them.",
)
app.add_typer(data_app, name="data")
app.add_typer(cache_app, name="cache")
for command in (doctor, methods, plan, run, status, retry, rejudge, report, compare, collect):
    app.command()(command)


def main() -> None:
    """Entry point of the ``flexmem`` command."""
    # Nothing here needs the hub by default; a model of the user's own choice may.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    app()
