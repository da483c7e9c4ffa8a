"""The data that an agent's sandbox may see: AppWorld's folder without any ``ground_truth``."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from flexmem.benchmarks.protocol import DataError, DataMissingError

__all__ = ["bare_data"]

_SECRET = "ground_truth"
_EVERYONE_READS = 0o444
_LINK_TRIES = (OSError,)  # another file system, or a file that is not ours to link


def bare_data(root: Path, cache: Path) -> Path:
    """The folder ``data`` of an AppWorld root without ground truth, kept in ``cache`` for as long as the root's files
    have the same names, sizes and times. Files are links where the file system allows it, and readable for everyone:
    a container's user is another one.

    Raises:
        DataMissingError: the root holds no tasks. DataError: the cache can't be written.
    """
    data = root / "data"
    if not (data / "tasks").is_dir():
        raise DataMissingError(
            f"{data}: holds no folder `tasks`. Fetch AppWorld's data, or make a world of your own.",
            f"{data} holds no AppWorld tasks",
        )
    files = sorted(_shown(data))
    target = cache / "appworld" / "bare" / _digest(files) / "data"
    if target.is_dir():
        return target
    part = target.parent.with_name(f".{target.parent.name}.{uuid.uuid4().hex}")
    try:
        (part / "data").mkdir(parents=True, mode=0o755)
        for relative in files:
            _place(data / relative[0], part / "data" / relative[0])
        try:
            part.rename(target.parent)
        except OSError:
            if not target.is_dir():  # else another process was faster, with the same content
                raise
    except OSError as error:
        raise DataError(
            f"{part}: can't be written ({error.strerror}). Make room or rights there, or name another folder in "
            "FLEXMEM_CACHE."
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def _shown(data: Path) -> Iterator[tuple[str, int, int]]:
    """Path below ``data``, size and time of every file that may be seen."""
    for folder, folders, names in os.walk(data, followlinks=True):
        folders[:] = [name for name in folders if name != _SECRET]
        for name in names:
            path = Path(folder, name)
            found = path.stat()
            yield str(path.relative_to(data)), found.st_size, found.st_mtime_ns


def _digest(files: list[tuple[str, int, int]]) -> str:
    return hashlib.sha256("\n".join(f"{name}\t{size}\t{time}" for name, size, time in files).encode()).hexdigest()[:24]


def _place(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    if source.stat().st_mode & _EVERYONE_READS == _EVERYONE_READS and not source.is_symlink():
        try:
            target.hardlink_to(source)
        except _LINK_TRIES:
            pass
        else:
            return
    shutil.copyfile(source, target)
    target.chmod(0o644)
