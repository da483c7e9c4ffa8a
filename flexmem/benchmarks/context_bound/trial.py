"""A solution's run in a world of its task, from which one learns how many pages and items there are, and what they
hold.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Awaitable, Callable
from typing import Any

from flexmem.agents.context_bound.plan import Conventions
from flexmem.agents.context_bound.witness import tells_failure
from flexmem.benchmarks.context_bound.program import CuttingError

Execute = Callable[[str], Awaitable[str]]
"""Runs code in a world whose variables persist, and gives what it prints."""

_BEGIN, _END = "<<<", ">>>"


class Trial:
    """Statements of the solution under their own names, and questions about their variables."""

    def __init__(self, task: str, conventions: Conventions, execute: Execute) -> None:
        self._task = task
        self._conventions = conventions
        self._execute = execute

    async def run(self, code: str, line: int) -> None:
        """Run code of the solution's line.

        Raises:
            CuttingError: it fails.
        """
        output = await self._execute(code)
        if tells_failure(output, self._conventions):
            raise CuttingError(f"{self._task}: line {line} of its solution fails in the world: {output[-600:]}")

    async def ask(self, expression: ast.expr | str, line: int) -> Any:
        """The value of an expression, as JSON has it.

        Raises:
            CuttingError: it fails.
        """
        code = expression if isinstance(expression, str) else ast.unparse(expression)
        output = await self._execute(f"import json\nprint({_BEGIN!r} + json.dumps({code}, default=str) + {_END!r})")
        start, end = output.find(_BEGIN), output.rfind(_END)
        if start < 0 or end < 0:
            raise CuttingError(f"{self._task}: line {line} of its solution: can't tell what {code} is: {output[-600:]}")
        return json.loads(output[start + len(_BEGIN) : end])
