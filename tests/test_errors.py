"""Every exception of the package is one that a user can mend, or a named one that no user sees."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

import pytest
import typer

import flexmem
from flexmem.benchmarks.protocol import DataError
from flexmem.cli.output import USAGE, expected_errors
from flexmem.dataset import DatasetBusyError, TableFileError
from flexmem.errors import FlexmemError
from flexmem.llm.committer import ReplyStoreError
from flexmem.memory.registry import UnknownMethodError

INTERNAL = {
    "flexmem.benchmarks.appworld.connection.ConnectionLostError": "the client tells whose fault it is",
    "flexmem.benchmarks.archives.ArchiveError": "half a sentence; `data` makes a DataError of it",
    "flexmem.benchmarks.data._Failed": "half a sentence; `data` makes a DataError of it",
    "flexmem.retrieval.bm25.FrozenIndexError": "a defect in the code of a method: its traceback is wanted",
    "flexmem.retrieval.index.IndexStateError": "a defect in the code of a method: its traceback is wanted",
    "flexmem.sweep.episodes.ServiceFailedError": "the driver gives the group out again",
    "flexmem.sweep.episodes.StopRun": "the driver ends the run with its message as `stopped`",
    "flexmem.sweep.plan._ModelNeededError": "caught where budgets are checked",
    "flexmem.sweep.pool.WorkerMemoryError": "the driver replaces the worker",
}


def exceptions() -> dict[str, type[BaseException]]:
    """All exception classes that modules of the package define."""
    modules = [import_module(found.name) for found in pkgutil.walk_packages(flexmem.__path__, "flexmem.")]
    return {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, BaseException) and value.__module__ == module.__name__
    }


def test_an_exception_is_one_that_a_user_can_mend_or_is_named_here() -> None:
    found = exceptions()
    assert len(found) > 30
    assert {name for name, kind in found.items() if not issubclass(kind, FlexmemError)} == INTERNAL.keys()


@pytest.mark.parametrize(
    "error",
    [
        TableFileError("part-1.parquet: is torn"),
        DatasetBusyError("run: its files are merged again and again"),
        ReplyStoreError("replies.sqlite: holds no replies"),
        DataError("locomo10.json: is missing"),
        UnknownMethodError("unknown method 'x'"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_it_is_said_in_one_message_and_a_command_ends_with_2(
    error: FlexmemError, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, expected_errors():
        raise error
    assert ended.value.exit_code == USAGE
    assert capsys.readouterr() == ("", f"error: {error.args[0]}\n")


def test_a_defect_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), expected_errors():
        raise ZeroDivisionError
