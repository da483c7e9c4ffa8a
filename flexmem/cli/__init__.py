"""The command line: parse, call, print. Exit codes: 0 complete, 1 incomplete or failed, 2 usage."""

from __future__ import annotations

import os

import typer

from flexmem.cli.appworld import appworld_app
from flexmem.cli.cache import cache_app
from flexmem.cli.cleanup import cleanup
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
from flexmem.cli.try_memory import try_memory

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Memory methods for LLM agents, and the harness that compares them.",
)
app.add_typer(data_app, name="data")
app.add_typer(cache_app, name="cache")
app.add_typer(appworld_app, name="appworld")
for command in (doctor, methods, plan, run, status, retry, rejudge, report, compare, collect, cleanup):
    app.command()(command)
app.command("try")(try_memory)


def main() -> None:
    """Entry point of the ``flexmem`` command."""
    # Nothing here needs the hub by default; a model of the user's own choice may.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    app()
