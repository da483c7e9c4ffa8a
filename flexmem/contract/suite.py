"""The contract as pytest tests (`flexmem.contract` says how to run them)."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from flexmem.contract.cases import Case, cases
from flexmem.contract.checks import Check, run
from flexmem.memory.protocol import TaskKind
from flexmem.memory.registry import MethodSpec


def test_contract(
    contract_method: MethodSpec,
    contract_task: TaskKind,
    contract_check: Check,
    contract_options: dict[str, object],
    contract_examples: int,
) -> None:
    """One check of one method over drawn histories."""
    method = contract_method.configured(contract_options)

    @settings(
        max_examples=contract_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(cases(contract_task))
    def holds(case: Case) -> None:
        run(contract_check, method, case)

    holds()
