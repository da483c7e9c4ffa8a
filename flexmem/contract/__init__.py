"""What every memory method promises (docs/methods.md 0.3), as checks over any method and random histories.

A package of one's own is checked with one line, once its methods are registered (CONTRIBUTING.md, "Add a method"):

    pytest -p flexmem.contract.plugin --pyargs flexmem.contract.suite --memory-method my_method

In a test file of one's own, the same checks run over drawn cases:

    @settings(max_examples=25, deadline=None)
    @given(cases("reader"))
    def test_my_method_keeps_the_contract(case: Case) -> None:
        for check in CHECKS:
            run(check, find_method("my_method").configured(), case)

Needs the extra ``flexmem[contract]`` (pytest and Hypothesis).
"""

from flexmem.contract.cases import Case, WordEmbedder, cases, conversations, services, trajectories
from flexmem.contract.checks import CHECKS, REDUCED, Check, run

__all__ = [
    "CHECKS",
    "REDUCED",
    "Case",
    "Check",
    "WordEmbedder",
    "cases",
    "conversations",
    "run",
    "services",
    "trajectories",
]
