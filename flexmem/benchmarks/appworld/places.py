"""Where AppWorld's things lie on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from flexmem.benchmarks.data import cache_folder
from flexmem.benchmarks.protocol import DataError

__all__ = ["APPWORLD_VERSION", "INSIDE", "ROOT_VARIABLE", "appworld_cache", "refuse_memory", "root"]

APPWORLD_VERSION = "0.1.3.post1"
ROOT_VARIABLE = "APPWORLD_ROOT"
INSIDE = Path(__file__).parent / "inside"
"""Programs that run in AppWorld's own interpreter."""

_TAKEN_FOR_MEMORY = "memory"


def appworld_cache() -> Path:
    """The folder of the installation, of fetched data and of worlds of our own: ``$FLEXMEM_CACHE/appworld``, or in the
    user's cache.
    """
    return cache_folder().parent / "appworld"


def root() -> Path:
    """AppWorld's root, the folder that holds ``data``: ``$APPWORLD_ROOT``, else one in the cache.

    Raises:
        DataError: AppWorld could not use a folder of that name.
    """
    own = os.environ.get(ROOT_VARIABLE)
    found = Path(own).absolute() if own else appworld_cache() / "root"
    refuse_memory(found)
    return found


def refuse_memory(path: Path) -> None:
    """AppWorld takes every path with "memory" in it for a database in memory.

    Raises:
        DataError: this path has it.
    """
    if _TAKEN_FOR_MEMORY in str(path):
        raise DataError(
            f'{path}: AppWorld takes a path with "{_TAKEN_FOR_MEMORY}" in it for a database in memory. Choose a folder '
            f"of another name ({ROOT_VARIABLE}, FLEXMEM_CACHE or TMPDIR)."
        )
