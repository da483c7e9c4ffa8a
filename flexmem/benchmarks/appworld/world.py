"""A small world of our own: tasks for AppWorld that need no download, made on this machine with AppWorld's own models.

What is made holds AppWorld's API documentation, which must not be published: it belongs in a cache, never in a
repository.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from pathlib import Path

from flexmem.benchmarks.appworld import data
from flexmem.benchmarks.appworld.inside_process import last_line, run_inside
from flexmem.benchmarks.appworld.installation import REQUIREMENTS, Installation
from flexmem.benchmarks.appworld.locking import locked
from flexmem.benchmarks.appworld.places import INSIDE, appworld_cache, refuse_memory
from flexmem.benchmarks.protocol import DataError

__all__ = ["generator_digest", "is_made", "make_world", "own_root"]

_STAMP = "flexmem-world.json"
_MAKE_S = 1_800.0


def own_root() -> Path:
    """Where this version's world lies in the cache."""
    return appworld_cache() / "worlds" / generator_digest()[:16]


def generator_digest() -> str:
    """SHA-256 of all that a world follows from: the generator and the pinned packages."""
    state = hashlib.sha256()
    for path in [*sorted((INSIDE / "world").rglob("*.py")), REQUIREMENTS]:
        state.update(f"{path.relative_to(INSIDE)}\t{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return state.hexdigest()


def is_made(at: Path) -> bool:
    """Whether a root holds the whole world of this version's generator."""
    stamp = _read_stamp(at)
    return stamp is not None and stamp.get("generator") == generator_digest()


def make_world(
    at: Path | None = None, installation: Installation | None = None, *, deadline_s: float = _MAKE_S
) -> Path:
    """Make the world, unless it is there; gives its root. It takes about a minute of one CPU.

    Processes may race: one makes it, the others wait. A world of another version is replaced.

    Args:
        at: the root; None: `own_root`.
        installation: AppWorld's; None: this machine's.
        deadline_s: seconds.

    Raises:
        DataError: the root holds something else, or can't be written. InsideError: the generator failed.
        InstallationError: AppWorld is not installed.
    """
    at = (at or own_root()).absolute()
    refuse_memory(at)
    if is_made(at):
        return at
    if at.exists() and any(at.iterdir()) and _read_stamp(at) is None:
        raise DataError(f"{at}: holds something that is no world of ours. Name an empty folder, or a new one.")
    installation = installation or Installation.find()
    try:
        with locked(at.with_name(f".{at.name}.lock")):
            if not is_made(at):
                _make(at, installation, deadline_s)
    except OSError as error:
        raise DataError(
            f"{at}: can't be written ({error.strerror or error}). Make room or rights there, or name another folder in "
            "FLEXMEM_CACHE."
        ) from error
    return at


def _make(at: Path, installation: Installation, deadline_s: float) -> None:
    """Make it aside, then rename it: nobody sees a part of a world."""
    part = at.with_name(f".{at.name}.{uuid.uuid4().hex}.part")
    what = f"making a world in {at}"
    try:
        part.mkdir()
        out = run_inside(installation, ["-m", "world", "make", str(part)], root=part, deadline_s=deadline_s, what=what)
        made = last_line(out, what)
        lacks = data.check(part)
        if lacks:
            raise DataError(f"{what}: it came out incomplete. {lacks[0]}")
        stamp = {"generator": generator_digest(), "tasks": made["tasks"], "digest": data.digest(part)}
        (part / _STAMP).write_text(json.dumps(stamp), "utf-8")
        if at.exists():
            shutil.rmtree(at)
        part.rename(at)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _read_stamp(at: Path) -> dict[str, str] | None:
    try:
        stamp = json.loads((at / _STAMP).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None
