"""Recordings on disk: a folder with a JSON file for each task and seed, and an index that tells what was recorded.

What they hold comes from a world's documentation and data, so they belong into a cache, never into a repository.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from flexmem.agents.context_bound.plan import Conventions, Mark, Plan, Series, Step, Value
from flexmem.benchmarks.context_bound.recording import Recording, Reply
from flexmem.benchmarks.protocol import DataError, DataMissingError

FORMAT = 1
"""Raised when the same solutions would be cut or recorded in another way."""

_INDEX = "index.json"


@dataclass(frozen=True)
class Index:
    """What a folder is about: ``source`` tells whose solutions they are, ``tasks`` which there are, ``refused`` why
    some of them can't be cut.
    """

    source: str
    tasks: tuple[str, ...]
    refused: Mapping[str, str] = field(default_factory=dict)


def recording_path(folder: Path, task: str, seed: int) -> Path:
    """Where a recording lies."""
    return folder / f"{task}.{seed}.json"


def write_recording(folder: Path, recording: Recording) -> None:
    """Put a recording in its place.

    Raises:
        DataError: the folder can't be written.
    """
    content = asdict(recording)
    content["plan"]["conventions"]["exempt"] = sorted(recording.plan.conventions.exempt)
    content["changes"], content["spoiling"] = sorted(recording.changes), sorted(recording.spoiling)
    _write(recording_path(folder, recording.plan.task, recording.seed), {"format": FORMAT, **content})


@lru_cache(maxsize=64)
def read_recording(path: Path, digest: str) -> Recording:
    """The recording in a file, which must have the digest that a plan was made with.

    Raises:
        DataMissingError: there is no such file. DataError: it is damaged, or another one.
    """
    raw = _read(path)
    if hashlib.sha256(raw).hexdigest() != digest:
        raise DataError(f"{path}: is another recording than the one that this run was planned with; start a new run")
    try:
        content = json.loads(raw)
        return Recording(
            plan=_plan(content["plan"]),
            seed=content["seed"],
            replies=_replies(content["replies"]),
            reread=_replies(content["reread"]),
            repeated=content["repeated"],
            tokens={cell: tuple(tokens) for cell, tokens in content["tokens"].items()},
            log_ins=content["log_ins"],
            changes=frozenset(content["changes"]),
            spoiling=frozenset(content["spoiling"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: is no recording of format {FORMAT} ({error!r}); remove it and record anew") from error


def recording_digest(path: Path) -> str:
    """SHA-256 of a recording's file.

    Raises:
        DataMissingError: there is none.
    """
    return hashlib.sha256(_read(path)).hexdigest()


def write_index(folder: Path, index: Index) -> None:
    """Put a folder's index in its place.

    Raises:
        DataError: the folder can't be written.
    """
    _write(folder / _INDEX, {"format": FORMAT, **asdict(index)})


def read_index(folder: Path) -> Index | None:
    """A folder's index; None where there is none.

    Raises:
        DataError: it is damaged, or of another format.
    """
    path = folder / _INDEX
    if not path.is_file():
        return None
    try:
        content = json.loads(_read(path))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}")
        return Index(content["source"], tuple(content["tasks"]), dict(content["refused"]))
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}: no index of format {FORMAT} ({error!r}); remove the folder and record anew"
        ) from error


def _plan(content: dict[str, Any]) -> Plan:
    conventions = content["conventions"]
    return Plan(
        task=content["task"],
        instruction=content["instruction"],
        steps=tuple(_step(step) for step in content["steps"]),
        goals=tuple(content["goals"]),
        final=content["final"],
        conventions=Conventions(**{**conventions, "exempt": frozenset(conventions["exempt"])}),
    )


def _replies(content: dict[str, list[dict[str, Any]]]) -> dict[str, tuple[Reply, ...]]:
    return {cell: tuple(Reply(**reply) for reply in replies) for cell, replies in content.items()}


def _step(content: dict[str, Any]) -> Step:
    marks = tuple(Mark(**{**mark, "arguments": tuple(mark["arguments"])}) for mark in content["marks"])
    literals = tuple(Value(**value) for value in content["literals"])
    series = Series(**content["series"]) if content["series"] is not None else None
    return Step(**{**content, "marks": marks, "literals": literals, "series": series})


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataMissingError(f"{path}: can't be read ({error.strerror})", f"{path} can't be read") from error


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all, so that processes may race."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise DataError(
            f"{path}: can't be written ({error.strerror}). Make room or rights there, or name another folder in "
            "FLEXMEM_CACHE."
        ) from error
