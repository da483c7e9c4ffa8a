"""Folders of sandboxes on this machine: each holds a socket or a child process's files, and says whose it is."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from flexmem.sandbox.errors import NoSpaceError, SandboxError
from flexmem.sandbox.labels import Mark
from flexmem.sandbox.owner import Process

__all__ = ["Left", "Scratch", "left_folders", "scratch_root"]

_RECORD = "owner.json"
_NO_SPACE = 28  # errno


def scratch_root() -> Path:
    """Where this user's folders lie: below ``TMPDIR``."""
    return Path(tempfile.gettempdir()) / f"flexmem-{os.getuid()}"


@dataclass(frozen=True, slots=True)
class Scratch:
    """A fresh folder that only this user can enter."""

    path: Path
    mark: Mark

    @classmethod
    def make(cls, mark: Mark) -> Self:
        """Make one.

        Raises:
            SandboxError: the folder for temporary files can't be written, or is another user's.
        """
        root = scratch_root()
        try:
            root.mkdir(mode=0o700, exist_ok=True)
            if root.stat().st_uid != os.getuid():
                raise SandboxError(
                    f"{root}: belongs to another user. Remove it, or set TMPDIR to a folder of your own."
                )
            made = cls(Path(tempfile.mkdtemp(prefix="s", dir=root)), mark)
            made.record(None)
        except OSError as error:
            kind = NoSpaceError if error.errno == _NO_SPACE else SandboxError
            raise kind(
                f"{root}: can't be written ({error.strerror}). Make room or rights there, or set TMPDIR."
            ) from error
        return made

    def record(self, child: Process | None) -> None:
        """Write whose folder it is, and of which child process."""
        content = {**self.mark.labels(), "child": None if child is None else str(child)}
        part = self.path / f".{_RECORD}"
        part.write_text(json.dumps(content), "utf-8")
        part.replace(self.path / _RECORD)

    def remove(self) -> None:
        """Remove the folder with all in it; one that is gone is fine."""
        remove_folder(self.path)


@dataclass(frozen=True, slots=True)
class Left:
    """A folder that lies there. ``mark`` is None where none can be read, ``child`` where it has none."""

    path: Path
    mark: Mark | None
    child: Process | None


def left_folders() -> Iterator[Left]:
    """All folders of this user's sandboxes, in use or not."""
    root = scratch_root()
    if not root.is_dir():
        return
    for path in sorted(root.iterdir()):
        try:
            content = json.loads((path / _RECORD).read_text("utf-8"))
            child = content["child"]
            yield Left(path, Mark.parse(content), None if child is None else Process.parse(child))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            yield Left(path, None, None)  # being made, being removed, or torn by a kill


def remove_folder(path: Path) -> None:
    """Remove a folder with all in it; one that is gone is fine.

    Raises:
        SandboxError: something in it can't be removed.
    """
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SandboxError(f"{path}: can't be removed ({error}). Remove it by hand.") from error
