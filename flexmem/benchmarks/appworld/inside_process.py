"""Running our programs in AppWorld's own interpreter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flexmem.benchmarks.appworld.errors import InsideError
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.appworld.places import INSIDE

__all__ = ["inside_environment", "last_line", "run_inside"]

_KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "HTTPS_PROXY", "https_proxy")
_TAIL = 30  # lines of a failed program that a message shows


def inside_environment(installation: Installation, root: Path) -> dict[str, str]:
    """The variables that a program inside is given: AppWorld's, and few of this process."""
    return {
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        "APPWORLD_ROOT": str(root),
        "APPWORLD_CACHE": str(installation.unpacked),
        "PYTHONPATH": str(INSIDE),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",  # evaluation programs lie in the data, which stays as it is
        "PYTHONNOUSERSITE": "1",
        "TZ": "UTC",
    }


def run_inside(
    installation: Installation,
    arguments: Sequence[str],
    *,
    root: Path,
    deadline_s: float,
    what: str,
    given: Any = None,
) -> str:
    """Run ``python ARGUMENTS`` with AppWorld's interpreter and our programs on its path; gives its standard output.

    Args:
        arguments: such as ``["-m", "world", "make", …]``.
        root: AppWorld's root.
        deadline_s: seconds; the program and its children are killed after that.
        what: what it does, for messages: "grading 24 tasks".
        given: what it reads as JSON on its standard input.

    Raises:
        InsideError: it failed or took too long.
    """
    command = [str(installation.python), *arguments]
    try:
        process = subprocess.Popen(
            command,
            env=inside_environment(installation, root),
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise InsideError(f"{what}: {installation.python} can't be started in {root} ({error}).") from error
    try:
        out, err = process.communicate(json.dumps(given), timeout=deadline_s)
    except subprocess.TimeoutExpired as error:
        raise InsideError(f"{what}: took more than {deadline_s:g} s and was ended.") from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0:
        raise InsideError(f"{what}: ended with {process.returncode}. Its last lines:\n{_last_lines(err or out)}")
    return out


def last_line(out: str, what: str) -> Any:
    """The JSON on the last line of a program's output.

    Raises:
        InsideError: there is none.
    """
    lines = out.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError) as error:
        raise InsideError(f"{what}: gave no answer. Its last lines:\n{_last_lines(out)}") from error


def _last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_TAIL:])
