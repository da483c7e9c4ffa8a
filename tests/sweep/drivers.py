"""Runs in processes of their own, watched and killed from outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from flexmem.sweep.plan import make_plan
from flexmem.sweep.results import finished_keys

from .harness import sweep
from .ray_harness import ENVIRONMENT

SLOWLY = {
    "benchmarks": [{"name": "synthetic", "options": {"conversations": 2, "tokens": 3_000, "questions": 4}}],
    "arms": ["no_memory", "piece_retrieval", "flexa_piece"],
    "budgets": [300, 600],
    "models": {"reader": {"model": {"provider": "scripted", "model": "first_sentence", "latency_s": 0.4}}},
    "engine": {"workers": 2, "in_flight": 1, "rows_per_part": 1},
}


class Driver:
    """Starts runs of a configuration in an output folder, with a Ray temporary folder by which its processes are
    known.
    """

    def __init__(self, folder: Path, cache: Path, **changes: Any) -> None:
        self.out = folder / "run"
        self.plan = make_plan(sweep(**{**SLOWLY, **changes}))
        self.config = folder / "sweep.yaml"
        self.config.write_text(self.plan.config.model_dump_json())
        self.temporary = Path(tempfile.mkdtemp(prefix="rt", dir="/tmp"))
        self.environment = {**os.environ, **ENVIRONMENT, "RAY_TMPDIR": str(self.temporary), "FLEXMEM_CACHE": str(cache)}

    @property
    def command(self) -> list[str]:
        code = "from flexmem.cli import main; main()"
        return [sys.executable, "-c", code, "run", str(self.config), "--out", str(self.out), "--json"]

    def start(self, command: list[str] | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command or self.command,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, command: list[str] | None = None) -> tuple[int, str, str]:
        """Run to the end; exit code, standard output, standard error."""
        with self.start(command) as process:
            output, errors = process.communicate(timeout=200)
        return process.returncode, output, errors

    def until(self, process: subprocess.Popen[str], episodes: int) -> None:
        """Wait until that many episodes are on disk while the run goes on."""
        deadline = time.monotonic() + 120
        while len(finished_keys(self.out)) < episodes:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "no result"
            time.sleep(0.05)
        assert process.poll() is None

    def actor(self, name: str, process: subprocess.Popen[str]) -> psutil.Process:
        """The process of an actor of that class, once it is there."""
        deadline = time.monotonic() + 120
        while True:
            assert process.poll() is None, process.communicate()
            for found in self.processes():
                with suppress(psutil.Error):
                    if " ".join(found.cmdline()).startswith(f"ray::{name}"):
                        return found
            assert time.monotonic() < deadline, f"no {name}"
            time.sleep(0.05)

    def processes(self) -> list[psutil.Process]:
        """All that runs with this driver's temporary folder."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("RAY_TMPDIR") == str(self.temporary):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def keys(self) -> set[str]:
        return {task.key for group in self.plan.groups() for task in group.episodes}

    def clean_up(self) -> None:
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()
        shutil.rmtree(self.temporary, ignore_errors=True)
