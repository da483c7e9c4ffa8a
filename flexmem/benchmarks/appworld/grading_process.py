"""A process that grades saved outputs with AppWorld's own evaluator, one task after the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from flexmem.benchmarks.appworld.errors import GradingError
from flexmem.benchmarks.appworld.inside_process import inside_environment
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.appworld.places import INSIDE, refuse_memory

__all__ = ["GradingProcess"]

_PROGRAM = INSIDE / "grade.py"
_START_S = 300.0
_END_S = 10.0
_TAIL = 3_000  # bytes of its standard error that a message shows


class GradingProcess:
    """Started at once; not for several threads. AppWorld sees a root of links, so that neither the names of runs and
    arms nor where they lie matter to it (`places.refuse_memory`).
    """

    def __init__(self, root: Path, installation: Installation) -> None:
        """
        Raises:
            GradingError: it can't be started. DataError: the folder for temporary files has an unusable name.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="appworld-grading-")
        at = Path(self._folder.name)
        self._outputs = at / "experiments" / "outputs"
        self._errors = at / "stderr"
        self._number = 0
        self._usable = True
        try:
            refuse_memory(at)
            self._outputs.mkdir(parents=True)
            (at / "data").symlink_to(root.absolute() / "data")
            with self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    [str(installation.python), str(_PROGRAM), str(at)],
                    env=inside_environment(installation, at),
                    cwd=at,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
        except OSError as error:
            self._folder.cleanup()
            raise GradingError(f"AppWorld's grader can't be started with {installation.python} ({error}).") from error
        except BaseException:
            self._folder.cleanup()
            raise
        try:
            self._receive(_START_S, "starting AppWorld's grader")
        except BaseException:
            self.close()
            raise

    def grade(self, folder: Path, task_id: str, deadline_s: float) -> dict[str, Any]:
        """What AppWorld's tracker says of the outputs in a task's folder.

        Raises:
            GradingError: they can't be graded, or not in time; look at `alive` then.
        """
        if not folder.is_dir():
            raise GradingError(f"{folder}: there are no outputs of task {task_id}.")
        self._number += 1
        experiment = f"e{self._number}"
        tasks = self._outputs / experiment / "tasks"
        tasks.mkdir(parents=True)
        (tasks / task_id).symlink_to(folder.absolute())
        answer = self._ask({"task_id": task_id, "experiment": experiment}, deadline_s, f"grading {folder}")
        if "error" in answer:
            if answer["ended"]:
                self.close()
            raise GradingError(f"{folder}: AppWorld could not grade it: {answer['error']}")
        grade: dict[str, Any] = answer["grade"]
        return grade

    def aggregate(self, individual: dict[str, dict[str, Any]], deadline_s: float) -> dict[str, Any]:
        """AppWorld's own summary of grades: ``aggregate`` and ``report``."""
        return self._ask({"individual": individual}, deadline_s, "summing up grades")

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._usable and self._process.poll() is None

    def close(self) -> None:
        """End it and remove its folder."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(_END_S)
        except (OSError, subprocess.TimeoutExpired):
            self._kill()
            self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()

    def __enter__(self) -> GradingProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, request: dict[str, Any], deadline_s: float, what: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            self._usable = False
            raise GradingError(f"{what}: AppWorld's grader is gone.{self._last_words()}") from error
        return self._receive(deadline_s, what)

    def _receive(self, deadline_s: float, what: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            self._kill()

        timer = threading.Timer(deadline_s, end)
        timer.daemon = True
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            self._usable = False  # its end may not have been noticed yet
            how = f"took more than {deadline_s:g} s" if late.is_set() else "AppWorld's grader ended"
            raise GradingError(f"{what}: {how}.{self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _last_words(self) -> str:
        try:
            said = self._errors.read_bytes()[-_TAIL:].decode("utf-8", errors="replace").strip()
        except OSError:
            said = ""
        return f" Its last lines:\n{said}" if said else ""
