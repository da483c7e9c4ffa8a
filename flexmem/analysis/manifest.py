"""A run's ``manifest.json``: what was planned and what a report must say about it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from flexmem.errors import FlexmemError

SCHEMA_VERSIONS = (1, 2, 3, 4, 5)
"""Versions of the tables that this package reads."""


class RunError(FlexmemError):
    """A folder is no run, or a file of the run can't be used; the message names the file and what to do."""


class CellKey(NamedTuple):
    """What identifies a cell of a report; repeats are averaged. ``budget`` is in tokens, None for arms without one."""

    benchmark: str
    arm: str
    budget: int | None
    reader: str | None


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class PlannedCell(_Part):
    """A planned cell; ``n`` counts its episodes over all repeats."""

    benchmark: str
    arm: str
    budget: int | None
    reader: str | None
    repeats: int
    n: int

    @property
    def key(self) -> CellKey:
        return CellKey(self.benchmark, self.arm, self.budget, self.reader)


class ArmInfo(_Part):
    """What a report must know of an arm. ``rewrites_text``: evidence visibility does not apply (docs/methods.md
    E.6b). ``asks_per_call``: what the memory model costs in reading is each question's own (E.8).
    """

    rewrites_text: bool
    asks_per_call: bool = False
    family: str = ""
    control: bool = False


class Manifest(_Part):
    """The part of the manifest that analysis uses; other keys are ignored."""

    schema_version: int
    config: Any = None
    data_digests: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    planned: tuple[PlannedCell, ...]
    arms: dict[str, ArmInfo]
    judges: dict[str, Any] = {}
    """Judges by label, the primary one first, with what shapes their words."""
    judged: dict[str, tuple[str, ...]] = {}
    """The question types of a benchmark that judges score; others keep the benchmark's own score."""

    @model_validator(mode="after")
    def _consistent(self) -> Manifest:
        twice = [key for key, count in Counter(cell.key for cell in self.planned).items() if count > 1]
        if twice:
            raise ValueError(f"`planned` lists a cell twice: {tuple(twice[0])}")
        unknown = sorted({cell.arm for cell in self.planned} - set(self.arms))
        if unknown:
            raise ValueError(f"`arms` says nothing about {', '.join(unknown)}")
        return self


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the run in ``folder``.

    Raises:
        RunError: no such folder, no run folder, another schema version, or a manifest that can't be understood.
    """
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder")
    path = folder / "manifest.json"
    if not path.is_file():
        raise RunError(f"{folder} is not a run folder: it holds no manifest.json")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} can't be read: {error}") from error
    version = content.get("schema_version") if isinstance(content, dict) else None
    if version not in SCHEMA_VERSIONS:
        readable = ", ".join(map(str, SCHEMA_VERSIONS))
        raise RunError(
            f"{path}: the run's tables have schema version {version!r}, this flexmem reads {readable}; "
            "use the flexmem version that wrote the run"
        )
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'manifest'}: {problem['msg']}" for problem in error.errors()
        )
        raise RunError(f"{path}: {problems}") from error
