"""How commands speak: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console

from flexmem.analysis.manifest import RunError
from flexmem.benchmarks.protocol import DataError
from flexmem.benchmarks.registry import BenchmarkOptionError
from flexmem.llm.errors import ModelError
from flexmem.memory.protocol import MethodError
from flexmem.retrieval.embedding import EmbeddingError
from flexmem.sweep.config import ConfigError

COMPLETE, INCOMPLETE, USAGE = 0, 1, 2
INTERRUPTED = 130  # as a shell has it for SIGINT

LEAST_WIDTH = 110

# What a user can mend: said in one message, without a traceback.
_EXPECTED = (ConfigError, RunError, DataError, BenchmarkOptionError, MethodError, ModelError, EmbeddingError)


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
    except _EXPECTED as error:
        notes().print(f"error: {error}")
        raise typer.Exit(USAGE) from None
