"""AppWorld in an environment of its own: it needs pydantic 1, and alters the process that imports it.

It is looked for in ``$FLEXMEM_APPWORLD_PYTHON`` (an interpreter of yours that has AppWorld, unpacked), then in the
cache (``appworld/VERSION/venv``), where `install` makes it from the pinned ``inside/requirements.txt``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flexmem.benchmarks.appworld.errors import InstallationError, InstallationMissingError
from flexmem.benchmarks.appworld.locking import locked
from flexmem.benchmarks.appworld.places import APPWORLD_VERSION, INSIDE, appworld_cache

__all__ = ["PYTHON_VARIABLE", "REQUIREMENTS", "Installation", "install"]

PYTHON_VARIABLE = "FLEXMEM_APPWORLD_PYTHON"
REQUIREMENTS = INSIDE / "requirements.txt"

_PYTHON = (3, 11)  # what the requirements are pinned for, and what the container has
_HOW = "Run `flexmem appworld install`, or let FLEXMEM_APPWORLD_PYTHON name an interpreter that has AppWorld."
_STAMP = "flexmem.json"
_TRIES = 5
_PAUSE_S = 2.0
_PROBE_S = 60.0
_STEP_S = 1_800.0
_TAIL = 2_000  # characters of a failed command that a message shows

_PROBE = """
import importlib.metadata, importlib.util, os
folder = importlib.util.find_spec("appworld").submodule_search_locations[0]
unpacked = os.path.isfile(os.path.join(folder, "apps", "spotify", "apis.py"))
print(importlib.metadata.version("appworld"), "unpacked" if unpacked else "packed")
"""


@dataclass(frozen=True, slots=True)
class Installation:
    """An interpreter that has AppWorld. ``unpacked`` is the folder in which AppWorld keeps what is of no use here."""

    python: Path
    unpacked: Path

    @classmethod
    def find(cls) -> Installation:
        """The installation on this machine.

        Raises:
            InstallationMissingError: there is none.
            InstallationError: the one that was named, or was made, can't be used.
        """
        own = os.environ.get(PYTHON_VARIABLE)
        if own:
            return cls(_checked(Path(own)), appworld_cache() / "unpacked")
        venv = _venv()
        if not venv.is_dir():
            raise InstallationMissingError(f"AppWorld {APPWORLD_VERSION} is not installed ({venv}). {_HOW}")
        if not _is_complete(venv):
            raise InstallationMissingError(
                f"{venv}: not fully installed, or by another version of flexmem. Run `flexmem appworld install`."
            )
        return cls(_python(venv), appworld_cache() / "unpacked")


def install(say: Callable[[str], None] = lambda line: None) -> Installation:
    """Make the installation in the cache, unless it is there; several processes may try at once.

    Args:
        say: told what is being done, in a line each.

    Raises:
        InstallationError: no Python 3.11, no registry in five tries, no space.
    """
    venv = _venv()
    try:
        with locked(venv.parent / "lock"):
            if not _is_complete(venv):
                _make(venv, say)
    except OSError as error:
        raise InstallationError(
            f"{venv.parent}: can't be written ({error.strerror or error}). Make room or rights there, or name another "
            "folder in FLEXMEM_CACHE."
        ) from error
    return Installation(_python(venv), appworld_cache() / "unpacked")


def _make(venv: Path, say: Callable[[str], None]) -> None:
    """Make the environment where it stays, as its scripts name their own place; the stamp comes last."""
    base = _base_python()
    shutil.rmtree(venv, ignore_errors=True)
    say(f"making {venv}")
    _run([base, "-m", "venv", str(venv)], "python can't make virtual environments; on Debian: install python3-venv")
    python = str(_python(venv))
    say(f"installing AppWorld {APPWORLD_VERSION} and what it needs, 75 packages")
    _retried([python, "-m", "pip", "install", "--quiet", "--no-input", "--retries", "5", "-r", str(REQUIREMENTS)])
    say("unpacking AppWorld's apps")
    _run([python, "-m", "appworld.cli", "install"], "AppWorld could not unpack its apps")
    stamp = {"requirements": _requirements_digest(), "appworld": APPWORLD_VERSION}
    (venv / _STAMP).write_text(json.dumps(stamp), "utf-8")


def _retried(command: list[str]) -> None:
    for attempt in range(1, _TRIES + 1):
        try:
            _run(command, "pip could not install AppWorld; check that it reaches its registry")
        except InstallationError:
            if attempt == _TRIES:
                raise
            time.sleep(_PAUSE_S * 2**attempt)
        else:
            return


def _run(command: list[str], advice: str) -> None:
    """Run a step of the installation with the user's own settings for pip, but for no other Python."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    environment = {**kept, "APPWORLD_CACHE": str(appworld_cache() / "unpacked"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_STEP_S, cwd=appworld_cache()
        )
    except subprocess.TimeoutExpired as error:
        raise InstallationError(f"{advice}: {' '.join(command)} took more than {_STEP_S:g} s.") from error
    if done.returncode != 0:
        raise InstallationError(
            f"{advice}: {' '.join(command)} failed:\n{(done.stdout + done.stderr)[-_TAIL:].strip()}"
        )


def _checked(python: Path) -> Path:
    try:
        done = subprocess.run([str(python), "-c", _PROBE], capture_output=True, text=True, timeout=_PROBE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallationError(f"{PYTHON_VARIABLE} names {python}, which can't be run ({error}).") from error
    if done.returncode != 0:
        raise InstallationError(f"{PYTHON_VARIABLE} names {python}, which has no AppWorld. {_HOW}")
    version, state = done.stdout.split()
    if version != APPWORLD_VERSION:
        raise InstallationError(
            f"{PYTHON_VARIABLE} names {python}, which has AppWorld {version}; this is for {APPWORLD_VERSION}. {_HOW}"
        )
    if state != "unpacked":
        raise InstallationError(f"{python}: AppWorld's apps are not unpacked. Run `{python} -m appworld.cli install`.")
    return python


def _base_python() -> str:
    if sys.version_info[:2] == _PYTHON:
        return sys.executable
    found = shutil.which("python3.11")
    if found is None:
        raise InstallationError(
            "AppWorld's packages are pinned for Python 3.11, and no python3.11 is on the PATH. Install it, or let "
            f"{PYTHON_VARIABLE} name an interpreter that has AppWorld {APPWORLD_VERSION}."
        )
    return found


def _venv() -> Path:
    return appworld_cache() / APPWORLD_VERSION / "venv"


def _python(venv: Path) -> Path:
    return venv / "bin" / "python"


def _is_complete(venv: Path) -> bool:
    try:
        stamp = json.loads((venv / _STAMP).read_text("utf-8"))
        return bool(stamp["requirements"] == _requirements_digest()) and _python(venv).exists()
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _requirements_digest() -> str:
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
