"""Set-up loops: the same documentation or log-in call three times or more in one episode (FlexA-Mem §6.1;
docs/methods.md E.8). An agent that has forgotten what it looked up does that.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

LOOP = 3


def setup_calls(code: str) -> Iterator[str]:
    """The documentation and log-in calls of an action, by app, function and arguments; log-ins without arguments, whose
    spelling says nothing. Code that can't be parsed has none.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        app = node.func.value
        if not (isinstance(app, ast.Attribute) and isinstance(app.value, ast.Name) and app.value.id == "apis"):
            continue
        if node.func.attr == "login":
            yield f"{app.attr}.login"
        elif app.attr == "api_docs":
            values = sorted(f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in node.keywords)
            values += [ast.unparse(argument) for argument in node.args]
            yield f"api_docs.{node.func.attr}({', '.join(values)})"


def count_setup_loops(actions: Iterable[str]) -> tuple[int, int]:
    """How many different calls an episode repeats `LOOP` times or more, and how many of its set-up calls are repeats
    of an earlier one.
    """
    found = Counter(call for action in actions for call in setup_calls(action))
    return sum(times >= LOOP for times in found.values()), sum(times - 1 for times in found.values())
