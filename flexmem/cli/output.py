"""How commands speak: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console

from flexmem.errors import FlexmemError

COMPLETE, INCOMPLETE, USAGE = 0, 1, 2
INTERRUPTED = 130  # as a shell has it for SIGINT

LEAST_WIDTH = 110


def console() -> Console:
    """Results; a pipe or a file gets the width that four budgets need."""
    out = Console(soft_wrap=False)
    return out if out.is_terminal else Console(soft_wrap=False, width=LEAST_WIDTH)


def notes() -> Console:
    """Progress, hints and errors."""
    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


def print_json(value: Any) -> None:
    """JSON on standard output, one document."""
    json.dump(value, sys.stdout, indent=2, default=str)
    sys.stdout.write("\n")


@contextmanager
def expected_errors() -> Iterator[None]:
    """Turn what a user can mend into one message and exit code 2."""
    try:
        yield
    except FlexmemError as error:
        notes().print(f"error: {error}")
        raise typer.Exit(USAGE) from None
    except OSError as error:
        if error.filename is None:
            raise
        notes().print(f"error: {error.filename}: {error.strerror}")
        raise typer.Exit(USAGE) from None
