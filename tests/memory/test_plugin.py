"""A method in a package of its own: found through its entry point, run in a sweep, checked with one pytest line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PLUGIN = Path(__file__).parents[1] / "fixtures" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, installed into a folder of its own."""
    source = shutil.copytree(PLUGIN, tmp_path_factory.mktemp("source") / "plugin")  # a build leaves files beside it
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(folder), str(source)], check=True, capture_output=True, text=True)
    return folder


def python(installed: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=cwd, capture_output=True, text=True, check=False
    )


def test_it_is_listed_and_a_broken_one_beside_it_warns(installed: Path, tmp_path: Path) -> None:
    listed = python(installed, "-m", "flexmem", "methods", "--json", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert {"last_words", "flexa_piece"} <= {row["name"] for row in json.loads(listed.stdout)}
    assert "methods of 'flexmem_last_words.broken' are left out" in listed.stderr
    assert "this plug-in is broken" in listed.stderr


def test_it_runs_in_a_sweep(installed: Path, tmp_path: Path) -> None:
    sweep = {
        "name": "plugin",
        "benchmarks": [{"name": "synthetic", "options": {"conversations": 1, "tokens": 3_000, "questions": 4}}],
        "arms": ["last_words", {"method": "last_words", "label": "short", "options": {"piece_tokens": 16}}],
        "budgets": [400],
        "engine": {"workers": 1},
    }
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    ran = python(installed, "-m", "flexmem", "run", "sweep.yaml", "--out", "out", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["counts"] == {"ok": 8}


def test_one_line_checks_it(installed: Path, tmp_path: Path) -> None:
    line = ["-m", "pytest", "-q", "-p", "flexmem.contract.plugin", "--pyargs", "flexmem.contract.suite"]
    checked = python(
        installed,
        *line,
        "--memory-method",
        "last_words",
        "--memory-examples",
        "3",
        "-p",
        "no:cacheprovider",
        cwd=tmp_path,
    )
    assert checked.returncode == 0, checked.stdout
    assert "18 passed" in checked.stdout
    reduced = python(
        installed, *line, "--memory-method", "last_words", "--memory-examples", "1", "--memory-reduced", cwd=tmp_path
    )
    assert "6 passed" in reduced.stdout
    unknown = python(installed, *line, "--memory-method", "last_word", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "did you mean 'last_words'?" in unknown.stderr + unknown.stdout
