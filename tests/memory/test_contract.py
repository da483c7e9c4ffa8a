"""Every registered method keeps the contract, on random histories."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from flexmem.contract.cases import Case, cases
from flexmem.contract.checks import CHECKS, new_build, read, run, write
from flexmem.memory.protocol import Budget, TaskKind
from flexmem.memory.registry import ConfiguredMethod, find_method, methods

from .examples import TOPICS, history

BY_MODEL = {"writer": "model"}


def configured(name: str) -> ConfiguredMethod:
    plain, _, by_model = name.partition("+")
    return find_method(plain).configured(BY_MODEL if by_model else None)


NAMES = [*methods(), "flexa_unit+model", "flexa_piece+model", "flexa_unit.merge_level+model"]
PAIRS = [(name, kind) for name in NAMES for kind in configured(name).info.tasks]


EXAMPLES = {"raptor": 4}
"""Histories drawn for a method, where not 7: RAPTOR reduces and clusters every one anew."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_the_contract_holds(name: str, kind: TaskKind) -> None:
    @settings(
        max_examples=EXAMPLES.get(name.split(".")[0], 7),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(case=cases(kind))
    def holds(case: Case) -> None:
        for check in CHECKS:
            run(check, configured(name), case)

    holds()


def digest_of_all_renderings() -> str:
    """BLAKE2b of what every method shows of a fixed history."""
    digest = hashlib.blake2b(digest_size=16)
    for name, kind in PAIRS:
        budgets = (Budget(300, 0), Budget(900, 100 if kind == "agent" else 0))
        task = "Find the violin." if kind == "agent" else None
        case = Case(kind, tuple(history(5, kind, 40)), TOPICS[:2], budgets, task, 0)

        async def shown(name: str = name, case: Case = case) -> str:
            method = configured(name)
            build = new_build(method, case)
            await write(build, case.units)
            return repr(await read(method, build, case))

        digest.update(asyncio.run(shown()).encode())
    return digest.hexdigest()


def test_renderings_do_not_depend_on_the_processs_hash_seed() -> None:
    """Python orders sets of strings differently in every process."""
    code = "from tests.memory.test_contract import digest_of_all_renderings as f; print(f())"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert process.stdout.strip() == digest_of_all_renderings(), process.stderr
