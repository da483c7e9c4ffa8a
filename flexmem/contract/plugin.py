"""The options of `flexmem.contract.suite`, for pytest's ``-p flexmem.contract.plugin``."""

from __future__ import annotations

import json

import pytest

from flexmem.contract.checks import CHECKS, REDUCED
from flexmem.memory.registry import MethodSpec, UnknownMethodError, find_method


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which methods, in which configuration, and how hard."""
    group = parser.getgroup("flexmem", "the memory contract")
    group.addoption("--memory-method", action="append", default=[], metavar="NAME", help="a method; may be repeated")
    group.addoption("--memory-options", default="{}", metavar="JSON", help="changes to its configuration")
    group.addoption("--memory-examples", type=int, default=25, metavar="N", help="histories drawn for each check")
    group.addoption(
        "--memory-reduced", action="store_true", help="budget, order and failure only: for adapters over other packages"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a method, kind of task and check."""
    if "contract_check" not in metafunc.fixturenames:
        return
    names = metafunc.config.getoption("--memory-method")
    if not names:
        raise pytest.UsageError("name a method: --memory-method NAME (`flexmem methods` lists them)")
    checks = REDUCED if metafunc.config.getoption("--memory-reduced") else CHECKS
    cases = [
        pytest.param(spec, task, check, id=f"{name}-{task}-{check.__name__.removeprefix('check_')}")
        for name in names
        for spec in [_found(name)]
        for task in spec.info.tasks
        for check in checks
    ]
    metafunc.parametrize(("contract_method", "contract_task", "contract_check"), cases)


def _found(name: str) -> MethodSpec:
    try:
        return find_method(name)
    except UnknownMethodError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.fixture
def contract_options(request: pytest.FixtureRequest) -> dict[str, object]:
    """Changes to the methods' configuration."""
    options: dict[str, object] = json.loads(request.config.getoption("--memory-options"))
    return options


@pytest.fixture
def contract_examples(request: pytest.FixtureRequest) -> int:
    """Histories drawn for each check."""
    examples: int = request.config.getoption("--memory-examples")
    return examples
