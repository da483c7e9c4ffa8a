"""AppWorld's installation: found, refused, made once, and safe against a half-made one."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.appworld import installation
from flexmem.benchmarks.appworld.errors import InstallationError, InstallationMissingError
from flexmem.benchmarks.appworld.installation import PYTHON_VARIABLE, REQUIREMENTS, Installation, install
from flexmem.benchmarks.appworld.places import APPWORLD_VERSION

from .installed import ask_inside, demand_installation

Answer = Callable[[list[str]], int]


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FLEXMEM_CACHE", str(tmp_path))
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    monkeypatch.setattr(installation, "_PAUSE_S", 0.0)
    return tmp_path


class Commands:
    """Stands for `subprocess.run`: makes the interpreter that `venv` would make, and fails where it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ran: list[list[str]] = []
        self.failures = 0
        monkeypatch.setattr(subprocess, "run", self._run)

    def _run(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        self.ran.append(command)
        if command[1:3] == ["-m", "venv"]:
            python = Path(command[3]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.touch()
        if command[1:3] == ["-m", "pip"] and self.failures:
            self.failures -= 1
            return subprocess.CompletedProcess(command, 1, "", "no route to the registry")
        return subprocess.CompletedProcess(command, 0, "", "")

    @property
    def kinds(self) -> list[str]:
        return [command[2] for command in self.ran]


def test_nothing_is_installed(cache: Path) -> None:
    with pytest.raises(InstallationMissingError, match="flexmem appworld install"):
        Installation.find()


def test_an_interpreter_that_is_not_there(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, "/nowhere/python")
    with pytest.raises(InstallationError, match="can't be run") as caught:
        Installation.find()
    assert not isinstance(caught.value, InstallationMissingError)  # what was named must not be taken for nothing


def test_an_interpreter_without_appworld(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, sys.executable)
    with pytest.raises(InstallationError, match="has no AppWorld"):
        Installation.find()


def test_an_interpreter_with_another_appworld(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 0.0.1 unpacked\n")
    python.chmod(0o755)
    monkeypatch.setenv(PYTHON_VARIABLE, str(python))
    with pytest.raises(InstallationError, match=f"AppWorld 0.0.1; this is for {APPWORLD_VERSION}"):
        Installation.find()


def test_an_interpreter_whose_apps_are_packed(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho {APPWORLD_VERSION} packed\n")
    python.chmod(0o755)
    monkeypatch.setenv(PYTHON_VARIABLE, str(python))
    with pytest.raises(InstallationError, match=r"appworld\.cli install"):
        Installation.find()


def test_it_is_made_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch)
    made = install()
    assert commands.kinds == ["venv", "pip", "appworld.cli"]
    assert install() == made == Installation.find()
    assert len(commands.ran) == 3


def test_a_half_made_one_is_made_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv = cache / "appworld" / APPWORLD_VERSION / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").touch()
    (venv / "left").touch()
    with pytest.raises(InstallationMissingError, match="not fully installed"):
        Installation.find()
    Commands(monkeypatch)
    install()
    assert not (venv / "left").exists()
    Installation.find()


def test_other_pins_make_it_anew(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands = Commands(monkeypatch)
    install()
    other = tmp_path / "requirements.txt"
    other.write_text(REQUIREMENTS.read_text("utf-8") + "# another\n")
    monkeypatch.setattr(installation, "REQUIREMENTS", other)
    with pytest.raises(InstallationMissingError, match="another version of flexmem"):
        Installation.find()
    install()
    assert commands.kinds == ["venv", "pip", "appworld.cli"] * 2


def test_the_registry_is_asked_five_times(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch)
    commands.failures = 4
    install()
    assert commands.kinds.count("pip") == 5


def test_a_registry_that_never_answers(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch)
    commands.failures = 5
    with pytest.raises(InstallationError, match="no route to the registry"):
        install()
    with pytest.raises(InstallationMissingError):
        Installation.find()
    install()
    Installation.find()


def test_processes_may_race(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch)
    threads = [threading.Thread(target=install) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert commands.kinds == ["venv", "pip", "appworld.cli"]


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FLEXMEM_CACHE", str(tmp_path / "file"))
    with pytest.raises(InstallationError, match="can't be written"):
        install()


def test_every_package_is_pinned() -> None:
    lines = [line for line in REQUIREMENTS.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert all(line.count("==") == 1 for line in lines)
    assert f"appworld=={APPWORLD_VERSION}" in lines
    assert len({line.split("==")[0].lower() for line in lines}) == len(lines) > 60


@pytest.mark.slow
def test_the_installation_on_this_machine(tmp_path: Path) -> None:
    code = (
        "import json, importlib.metadata as m; "
        "print(json.dumps({d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()}))"
    )
    found = ask_inside(code, demand_installation(), tmp_path)
    pinned = [line.split("==") for line in REQUIREMENTS.read_text("utf-8").splitlines() if "==" in line]
    assert {name: found.get(name.lower().replace("_", "-")) for name, _ in pinned} == dict(pinned)
