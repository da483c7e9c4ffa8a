"""Writing a task's folder: what it starts from, its specification, and its ground truth."""

from __future__ import annotations

import ast
import json
import os
import re
import textwrap
from typing import Any

from appworld.apps import get_all_apps
from appworld.apps.api_lib import set_local_date_and_time
from appworld.apps.model_lib import get_db_home_path
from appworld.collections.models import ModelCollection
from appworld.common.constants import DB_VERSION
from appworld.evaluator import TestTracker

from world.rows import NOW, Rows
from world.running import NO_OP, START, Run, run
from world.scenario import TaskText

_EVALUATION = '''\
import json


def evaluate(test, public_data, private_data, main_user, models, ground_truth_answer):
    """Whether the world has changed as the task asks."""
    task = models.end.supervisor.Task.all()[0]
    test.task_completed = task.status == "success"
    with test("assert that the answers match."):
        test.answer(json.loads(task.answer), ground_truth_answer)
'''


class WorldError(Exception):
    """A task is not as it must be; the message names it and tells what happened."""


def write_task(data: str, task: TaskText) -> None:
    """Write a task's folder below ``data``, run it, and write what only a run can tell.

    Raises:
        WorldError: its solution fails, or its near miss or doing nothing passes.
    """
    folder = os.path.join(data, "tasks", task.task_id)
    _write_databases(data, folder, task)
    _write_texts(folder, task)
    right = run(task.task_id, task.solution + START)
    idle = run(task.task_id, NO_OP)
    wrong = run(task.task_id, task.near_miss + START)
    _refuse_unsound(task, right, idle, wrong)
    truth = os.path.join(folder, "ground_truth")
    _dump(right.requests, os.path.join(truth, "api_calls.json"))
    _dump(_metadata(task, right), os.path.join(truth, "metadata.json"))
    _dump(TestTracker.prepare_test_data(right.passes, idle.passes), os.path.join(truth, "test_data.json"))


def _write_databases(data: str, folder: str, task: TaskText) -> None:
    """The changes to the base world that the task starts from."""
    apps = list(get_all_apps())
    freezer = set_local_date_and_time(NOW)
    try:
        models = ModelCollection.load(
            to_db_home_path=get_db_home_path("memory", "task_input", task.task_id),
            from_db_home_path=os.path.join(data, "base_dbs"),
            load_apps=apps,
        )
        _add_supervisor(models, task)
        task.scenario.arrange(Rows(models, task.supervisor), task.facts)
        models.save(db_home_path=os.path.join(folder, "dbs"), format="changes", app_names=apps, save_model_hashes=True)
        models.close()
    finally:
        freezer.stop()


def _add_supervisor(models: Any, task: TaskText) -> None:
    """The rows that the app ``supervisor`` answers from."""
    user = models.admin.MainUser.by_id(task.supervisor.number)
    shared = ("first_name", "last_name", "email", "phone_number", "birthday", "sex")
    supervisor = models.supervisor.Supervisor.create_save(**{name: getattr(user, name) for name in shared})
    for password in user.account_passwords:
        models.supervisor.AccountPassword.create_save(
            supervisor_id=supervisor.id, account_name=password.account_name, password=password.password
        )
    card_fields = ("owner_name", "card_name", "card_number", "expiry_year", "expiry_month", "cvv_number")
    for card in user.payment_cards:
        models.supervisor.PaymentCard.create_save(
            supervisor_id=supervisor.id, **{name: getattr(card, name) for name in card_fields}
        )
    models.supervisor.Task.create_save(supervisor_id=supervisor.id, instruction=task.instruction)


def _write_texts(folder: str, task: TaskText) -> None:
    truth = os.path.join(folder, "ground_truth")
    os.makedirs(truth)
    me = task.supervisor
    specification = {
        "instruction": task.instruction,
        "supervisor": {
            "first_name": me.first_name,
            "last_name": me.last_name,
            "email": me.email,
            "phone_number": me.phone_number,
        },
        "datetime": NOW.to_datetime_string().replace(" ", "T"),
        "db_version": DB_VERSION,
    }
    _dump(specification, os.path.join(folder, "specs.json"))
    public = {name: value for name, value in task.facts.items() if f"<<{name}>>" in task.scenario.instruction}
    _dump(public, os.path.join(truth, "public_data.json"))
    _dump(task.scenario.private(task.facts), os.path.join(truth, "private_data.json"))
    _dump(task.answer, os.path.join(truth, "answer.json"))
    _dump(sorted(task.scenario.apps), os.path.join(truth, "required_apps.json"))
    _dump(_metadata(task, None), os.path.join(truth, "metadata.json"))
    for name in ("api_calls.json", "test_data.json"):
        _dump(None, os.path.join(truth, name))
    programs = {
        "evaluation.py": _EVALUATION + textwrap.indent(task.evaluation, "    ") + "\n",
        "solution.py": task.solution,
        "compiled_solution.py": task.solution,
        "near_miss.py": task.near_miss,
    }
    for name, text in programs.items():
        with open(os.path.join(truth, name), "w", encoding="utf-8") as file:
            file.write(text)


def _metadata(task: TaskText, right: Run | None) -> dict[str, Any]:
    """As AppWorld counts: apps without the supervisor's, APIs named, calls made, lines of the solution's body."""
    body = ast.parse(task.solution).body[-1]
    assert isinstance(body, ast.FunctionDef)
    lines = sum(len(ast.unparse(statement).splitlines()) for statement in body.body)
    return {
        "mode": "full",
        "difficulty": task.scenario.difficulty,
        "num_apps": len(task.scenario.apps),
        "num_apis": len(set(re.findall(r"apis\.(\w+\.\w+)", task.solution))),
        "num_api_calls": len(right.requests) if right else 0,
        "num_solution_code_lines": lines,
    }


def _refuse_unsound(task: TaskText, right: Run, idle: Run, wrong: Run) -> None:
    if not right.success or not right.completed:
        raise WorldError(f"{task.task_id}: the solution fails: {right.message}\n{_requirements(right)}")
    if idle.success:
        raise WorldError(f"{task.task_id}: doing nothing passes")
    if wrong.success or not wrong.completed:
        raise WorldError(f"{task.task_id}: the near miss passes, or breaks: {wrong.message}")
    apps = {call.name.split(".")[0] for call in right.calls} - {"supervisor", "api_docs"}
    if apps != set(task.scenario.apps):
        raise WorldError(f"{task.task_id}: the solution uses {sorted(apps)}, not {task.scenario.apps}")


def _requirements(failed: Run) -> str:
    return "\n".join(f"{failure['requirement']}\n{failure['trace']}" for failure in failed.failures)


def _dump(content: Any, path: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
