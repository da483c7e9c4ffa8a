"""AppWorld's tasks as they lie in its data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flexmem.benchmarks.appworld.data import scenario_of, task_ids
from flexmem.benchmarks.protocol import DataError


@dataclass(frozen=True, slots=True)
class Task:
    """``difficulty`` is "difficulty 1" to "difficulty 3"; "difficulty unknown" where the data does not say."""

    task_id: str
    scenario: str
    split: str
    difficulty: str
    instruction: str


def read_tasks(root: Path, splits: Sequence[str], wanted: Sequence[str] | None = None) -> list[Task]:
    """The tasks of some splits, in AppWorld's order; only those ``wanted``.

    Raises:
        DataMissingError: a split is not there. DataError: a task is malformed, or one that is wanted is in no split.
    """
    places = {task_id: split for split in splits for task_id in task_ids(root, split)}
    unknown = [task_id for task_id in wanted or () if task_id not in places]
    if unknown:
        raise DataError(
            f"AppWorld: no task {unknown[0]!r} in {', '.join(splits)}; see the folder {root / 'data/tasks'}"
        )
    return [
        _read(root, task_id, split) for task_id, split in places.items() if wanted is None or task_id in set(wanted)
    ]


def _read(root: Path, task_id: str, split: str) -> Task:
    folder = root / "data" / "tasks" / task_id
    specs = _json(folder / "specs.json")
    truth = folder / "ground_truth" / "metadata.json"
    difficulty = _json(truth).get("difficulty", "unknown") if truth.exists() else "unknown"
    try:
        instruction = str(specs["instruction"])
    except KeyError as error:
        raise DataError(f"{folder / 'specs.json'}: has no instruction; fetch AppWorld's data again") from error
    return Task(task_id, scenario_of(task_id), split, f"difficulty {difficulty}", instruction)


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror}); fetch AppWorld's data again") from error
    except ValueError as error:
        raise DataError(f"{path}: is no JSON ({error}); fetch AppWorld's data again") from error
    if not isinstance(found, dict):
        raise DataError(f"{path}: is no JSON object; fetch AppWorld's data again")
    return found
