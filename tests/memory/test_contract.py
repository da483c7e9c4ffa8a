"""Every registered method keeps the contract, on random histories."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem.memory.protocol import TaskKind
from flexmem.memory.registry import ConfiguredMethod, find_method, methods

from .contract import CHECKS, cases, run

BY_MODEL = {"writer": "model"}


def configured(name: str) -> ConfiguredMethod:
    plain, _, by_model = name.partition("+")
    return find_method(plain).configured(BY_MODEL if by_model else None)


NAMES = [*methods(), "flexa_unit+model", "flexa_piece+model", "flexa_unit.merge_level+model"]
PAIRS = [(name, kind) for name in NAMES for kind in configured(name).info.tasks]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_contract_holds(name: str, kind: TaskKind, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    for check in CHECKS:
        run(check, configured(name), case)
