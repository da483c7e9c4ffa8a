"""File systems of a few megabytes, so that a test can fill one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A file system of that size in a new folder. It needs root: without, the test is skipped, in CI it fails."""
    if os.geteuid() != 0:
        how = "it mounts a small tmpfs: run the tests as root to include it"
        if os.environ.get("CI"):
            pytest.fail(how)
        pytest.skip(how)
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, spare_kilobytes: int) -> Path:
    """Take all room of a file system but some; deleting the file gives it back."""
    ballast = folder / "ballast"
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    ballast.write_bytes(bytes(max(0, free - spare_kilobytes * 1024)))
    return ballast
