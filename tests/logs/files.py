"""Logs for tests: the fixtures, and small ones written on the spot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flexmem.logs import Log, LogFormat, load_log
from flexmem.logs.files import LogFile
from flexmem.logs.loading import log_of

FOLDER = Path(__file__).parents[1] / "fixtures" / "logs"
TRAJECTORY = FOLDER / "trajectory.traj"
INSPECT = FOLDER / "inspect.json"
CHAT = FOLDER / "chat.jsonl"
TOOL_CALLS = FOLDER / "tool-calls.json"
BLOCKS = FOLDER / "blocks.json"


def content(path: Path) -> Any:
    """A fixture's JSON, to be changed at will."""
    return json.loads(path.read_text("utf-8"))


def load(value: Any, log_format: LogFormat | None = None, sample: str | None = None) -> Log:
    """A log of a JSON value, called ``log``."""
    return log_of(LogFile("log", value), log_format, sample)


def loaded(path: Path, sample: str | None = None) -> Log:
    """A fixture's log."""
    return load_log(path, sample=sample)
