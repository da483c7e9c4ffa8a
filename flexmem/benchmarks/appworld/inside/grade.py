"""Grades saved outputs with AppWorld's own evaluator. Runs under AppWorld's own interpreter.

Reads a request a line from its standard input and answers with a line each:

    {"task_id": …, "experiment": …}   {"grade": what AppWorld's tracker says}
                                      or {"error": text, "ended": whether this process ends now}
    {"individual": {task_id: grade}}  {"aggregate": AppWorld's own, "report": its table}

It ends with its input. Outputs may have been shaped by an agent's code, so that what they hold of SQL is looked at
before AppWorld carries it out here.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any, TextIO

_CHANGES = ("INSERT INTO ", "UPDATE ", "DELETE FROM ")  # what AppWorld's tracker notes
_TRACE = 4_000  # characters


class OutputsError(Exception):
    """A task's outputs are not what AppWorld writes."""


def main() -> None:
    """Answer until the input ends."""
    root = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what AppWorld prints is no answer
    os.environ["APPWORLD_ROOT"] = root
    from appworld import update_root

    update_root(root)
    import appworld.evaluator  # noqa: F401 - all that takes time, before it is said that we are ready

    _answer(answers, {"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        if "individual" in request:
            _answer(answers, _aggregate(request["individual"]))
            continue
        folder = os.path.join(root, "experiments", "outputs", request["experiment"], "tasks", request["task_id"], "dbs")
        try:
            _check_outputs(folder)
        except (OSError, OutputsError) as error:
            _answer(answers, {"error": str(error), "ended": False})
            continue
        try:
            grade = _grade(request["task_id"], request["experiment"])
        except Exception as error:  # noqa: BLE001 - told to the host, which starts another process
            _answer(answers, {"error": f"{error!r}\n{traceback.format_exc()[-_TRACE:]}", "ended": True})
            break
        _answer(answers, {"grade": grade})
    os._exit(0)  # AppWorld's exit handlers may hang


def _grade(task_id: str, experiment: str) -> dict[str, Any]:
    from appworld.apps.model_lib import CachedDBHandler
    from appworld.evaluator import evaluate_task

    tracker = evaluate_task(task_id=task_id, experiment_name=experiment, save_report=False)
    CachedDBHandler.reset()
    return dict(tracker.to_dict())


def _check_outputs(folder: str) -> None:
    """Refuse databases that are whole or linked, and changes that are more than rows added, altered and removed."""
    names = os.listdir(folder)
    if not any(name.endswith(".jsonl") for name in names):
        raise OutputsError(f"{folder} holds no changes of databases")
    for name in names:
        path = os.path.join(folder, name)
        if os.path.islink(path) or name.endswith(".db"):
            raise OutputsError(f"{name} is a link or a whole database")
        if name.endswith(".jsonl"):
            with open(path, encoding="utf-8", errors="replace") as file:
                for line in file:
                    _check_change(name, line)


def _check_change(name: str, line: str) -> None:
    try:
        statement = json.loads(line)[0]
    except (ValueError, LookupError, TypeError) as error:
        raise OutputsError(f"{name} holds a line that is no change: {line[:80]!r}") from error
    if not isinstance(statement, str) or not statement.startswith(_CHANGES):
        raise OutputsError(f"{name} holds a statement that is no change of rows: {str(statement)[:80]!r}")


def _aggregate(individual: dict[str, Any]) -> dict[str, Any]:
    from appworld.common.utils import table_data_to_string
    from appworld.evaluator import Metric

    metrics = Metric._compute_metrics(individual)
    return {"aggregate": metrics["aggregate"], "report": table_data_to_string(Metric.build_report(metrics))}


def _answer(answers: TextIO, content: dict[str, Any]) -> None:
    answers.write(json.dumps(content, default=str) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
