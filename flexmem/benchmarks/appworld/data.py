"""AppWorld's data on this machine: where it lies, what it lacks, how it is fetched, and its digest.

A root is the folder that AppWorld calls so: it holds ``data``. The public data is fetched by AppWorld itself; a world
of our own needs no download (`flexmem.benchmarks.appworld.world`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from flexmem.benchmarks.appworld.errors import InsideError
from flexmem.benchmarks.appworld.inside_process import run_inside
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.appworld.places import ROOT_VARIABLE, refuse_memory, root
from flexmem.benchmarks.protocol import DataError, DataMissingError

__all__ = [
    "ADDRESS",
    "APPS",
    "DATA_VERSION",
    "SPLITS",
    "check",
    "digest",
    "fetch",
    "root",
    "scenario_of",
    "task_ids",
]

ADDRESS = "https://s3.us-west-2.amazonaws.com/appworld.dev/data-0.1.0.bundle"
"""What `fetch` loads; the address is AppWorld's own."""

DATA_VERSION = "0.1.0"
SPLITS = ("train", "dev", "test_normal", "test_challenge")
APPS = ("amazon", "file_system", "gmail", "phone", "simple_note", "splitwise", "spotify", "todoist", "venmo")
_INNER_APPS = ("api_docs", "supervisor")
_DATABASES = (*APPS, *_INNER_APPS, "admin")
_TASK = ("specs.json", "dbs")
_TRUTH = ("evaluation.py", "metadata.json", "answer.json", "test_data.json", "public_data.json", "private_data.json")
_DOWNLOAD = "from appworld.download import download_data; download_data()"  # what `appworld download data` does
_FETCH_S = 1_800.0
_DIGEST_FILE = "flexmem-digest.json"


def check(at: Path, *, graded: bool = True) -> list[str]:
    """What a root lacks, a sentence each; empty where nothing is missing. Contents are not looked into.

    Args:
        at: the root.
        graded: whether the ground truth has to be there, which grading needs and an agent must not see.
    """
    data = at / "data"
    if not data.is_dir():
        return [f"{data} is not there."]
    found = [*_version(data)]
    for folder, names in (
        ("base_dbs", [f"{name}.db" for name in _DATABASES]),
        ("api_docs/standard", [f"{name}.json" for name in (*APPS, *_INNER_APPS)]),
    ):
        missing = [name for name in names if not (data / folder / name).is_file()]
        if missing:
            found.append(f"{data / folder} lacks {_some(missing)}.")
    for split in SPLITS:
        found += _split(data, split, graded)
    return found


def task_ids(at: Path, split: str) -> list[str]:
    """The tasks of a split, in AppWorld's order.

    Raises:
        DataMissingError: the root has no such split.
    """
    path = at / "data" / "datasets" / f"{split}.txt"
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise DataMissingError(
            f"{path}: can't be read ({error.strerror}). AppWorld's splits are {', '.join(SPLITS)}; {_how()}",
            f"{path} can't be read",
        ) from error
    return [line.partition(":")[0].strip() for line in lines if line.strip()]


def scenario_of(task_id: str) -> str:
    """The scenario that a task is a variant of."""
    return task_id.rpartition("_")[0]


def fetch(at: Path, installation: Installation | None = None, *, deadline_s: float = _FETCH_S) -> None:
    """Load AppWorld's public data into a root that has none, and check it.

    Raises:
        DataError: the folder can't be used, or holds other data. DataMissingError: the network says no.
        InstallationError: AppWorld is not installed.
    """
    refuse_memory(at)
    if (at / "data").exists():
        lacks = check(at)
        if lacks:  # AppWorld would remove what lies there
            raise DataError(
                f"{at / 'data'}: not AppWorld's data, or damaged: {lacks[0]} Move it away, then fetch again."
            )
        return
    installation = installation or Installation.find()
    at.mkdir(parents=True, exist_ok=True)
    what = f"loading {ADDRESS} to {at}"
    try:
        run_inside(installation, ["-c", _DOWNLOAD], root=at, deadline_s=deadline_s, what=what)
    except InsideError as error:
        raise _unfetched(str(error).strip().splitlines()[-1]) from error
    lacks = check(at)
    if lacks:
        raise _unfetched(lacks[0])


def digest(at: Path) -> str:
    """SHA-256 of what tasks ask and of the splits: names and contents of ``specs.json`` and of ``datasets``.

    It is kept in the root's ``flexmem-digest.json`` for as long as those files have the same sizes and times; where
    that can't be written, it is taken anew.

    Raises:
        DataMissingError: the root holds no tasks.
    """
    files = sorted(_digested(at))
    if not files:
        raise DataMissingError(f"{at / 'data'}: holds no tasks. {_how()}", f"{at / 'data'} holds no tasks")
    state = hashlib.sha256()
    for path in files:
        found = path.stat()
        state.update(f"{path.relative_to(at)}\t{found.st_size}\t{found.st_mtime_ns}\n".encode())
    kept = at / _DIGEST_FILE
    known = _kept_digest(kept, state.hexdigest())
    if known is not None:
        return known
    content = hashlib.sha256()
    for path in files:
        content.update(f"{path.relative_to(at)}\t{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    _keep(kept, {"state": state.hexdigest(), "digest": content.hexdigest()})
    return content.hexdigest()


def _version(data: Path) -> Iterator[str]:
    path = data / "version.txt"
    try:
        version = path.read_text("utf-8").strip()
    except OSError:
        yield f"{path} is not there."
        return
    if version != DATA_VERSION:
        yield f"{path} says {version!r}; this AppWorld reads {DATA_VERSION}."


def _split(data: Path, split: str, graded: bool) -> Iterator[str]:
    try:
        ids = task_ids(data.parent, split)
    except DataMissingError as error:
        yield f"{error.reason}."
        return
    wanted = [*_TASK, *(f"ground_truth/{name}" for name in _TRUTH if graded)]
    for name in wanted:
        missing = [task_id for task_id in ids if not (data / "tasks" / task_id / name).exists()]
        if missing:
            yield f"{data / 'tasks'}: {len(missing)} of {len(ids)} {split} tasks lack {name} ({_some(missing)})."


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _how() -> str:
    return (
        f"Run `flexmem appworld fetch` where the network reaches {ADDRESS}, or let {ROOT_VARIABLE} name a folder that "
        "holds AppWorld's `data`, or make a world of your own with `flexmem appworld world`."
    )


def _unfetched(why: str) -> DataMissingError:
    return DataMissingError(f"AppWorld's data could not be loaded from {ADDRESS}: {why}\n{_how()}", why)


def _digested(at: Path) -> Iterator[Path]:
    yield from (at / "data" / "tasks").glob("*/specs.json")
    yield from (at / "data" / "datasets").glob("*.txt")


def _kept_digest(path: Path, state: str) -> str | None:
    try:
        kept = json.loads(path.read_text("utf-8"))
        return str(kept["digest"]) if kept["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it is only a shortcut


def _keep(path: Path, content: dict[str, str]) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(json.dumps(content), "utf-8")
        part.replace(path)
    except OSError:
        return  # a folder of somebody else's: taken anew each time
