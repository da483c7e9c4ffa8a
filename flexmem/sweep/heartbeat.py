"""``activity.json``: what a run is doing while it goes on, for whoever looks at its folder."""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flexmem.sweep.durable import TEMPORARY, write_json

ACTIVITY = "activity.json"
STALE_S = 30.0
"""A heartbeat of that age, in seconds, says nothing of now: a driver writes one every few seconds."""
_LAST_WRITE_S = 10.0
_REPEAT_S = STALE_S / 6


class Heartbeat:
    """Writes a run's activity file; it is there while the driver is."""

    def __init__(self, out: Path) -> None:
        self._path = out / ACTIVITY
        self._writing: threading.Thread | None = None
        self._path.unlink(missing_ok=True)  # a killed driver's

    def beat(self, content: Mapping[str, Any]) -> None:
        """Put the content with time, host and process into the file, off this thread: a driver whose disk hangs must
        be able to say so. Nothing is written while the last is on its way.
        """
        if self._writing is not None and self._writing.is_alive():
            return
        now = {"time": datetime.now(UTC).isoformat(), "host": platform.node(), "pid": os.getpid()}
        self._writing = threading.Thread(target=self._write, args=({**now, **content},), daemon=True)
        self._writing.start()

    @contextmanager
    def repeated(self, content: Mapping[str, Any]) -> Iterator[None]:
        """Beat with one content until the block ends, then remove the file: for what says nothing itself."""
        ended = threading.Event()

        def repeat() -> None:
            self.beat(content)
            while not ended.wait(_REPEAT_S):
                self.beat(content)

        thread = threading.Thread(target=repeat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.end()

    def end(self) -> None:
        """Remove the file."""
        if self._writing is not None:
            self._writing.join(_LAST_WRITE_S)
        with suppress(OSError):
            for path in (self._path, self._path.with_name(f"{TEMPORARY}{ACTIVITY}")):
                path.unlink(missing_ok=True)

    def _write(self, content: Mapping[str, Any]) -> None:
        with suppress(OSError):  # results go to the same disk, and say what is wrong with it
            write_json(self._path, content)


def read_heartbeat(out: Path, now: datetime) -> tuple[float, dict[str, Any]] | None:
    """The age in seconds of a run's last heartbeat, and its content: empty if it is `STALE_S` old or its driver is
    known to be dead. None where there is none. Whether a run goes on is not told here
    (`flexmem.sweep.results.is_written`).
    """
    try:
        content = json.loads((out / ACTIVITY).read_text("utf-8"))
        age = max(0.0, (now - datetime.fromisoformat(content["time"])).total_seconds())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return age, content if age < STALE_S and not _is_dead(content) else {}


def _is_dead(content: Mapping[str, Any]) -> bool:
    """Whether its driver ran on this machine and does not any more."""
    if content.get("host") != platform.node():
        return False
    try:
        os.kill(int(content["pid"]), 0)
    except ProcessLookupError:
        return True
    except (KeyError, OSError, ValueError):
        return False
    return False
