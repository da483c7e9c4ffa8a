"""Commands of tests see no key, address, data or cache of whoever runs them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from flexmem.cli import app
from flexmem.llm.config import make_model
from flexmem.sweep.judging import judge_run
from flexmem.sweep.manifest import plan_manifest, write_manifest
from flexmem.sweep.plan import make_plan
from tests.sweep.harness import LOCOMO, SYNTHETIC, InProcess, sweep

SWEEP: dict[str, Any] = {
    "name": "test",
    "benchmarks": [SYNTHETIC],
    "arms": ["no_memory", "piece_retrieval", "flexa_piece"],
    "budgets": [400, "1k"],
}

SCRIPTED_JUDGES: list[dict[str, Any]] = [
    {"label": "strict", "model": {"provider": "scripted", "model": "garbage"}},
    {"label": "kind", "model": {"provider": "scripted", "model": "echo"}},
]
READ: dict[str, Any] = {
    "name": "read",
    "benchmarks": [LOCOMO],
    "arms": ["piece_retrieval", "truncation"],
    "budgets": [400],
    "models": {
        "reader": {"model": {"provider": "scripted", "model": "first_sentence"}},
        "judges": SCRIPTED_JUDGES,
    },
}
"""A sweep with a reader and two judges, over two conversations."""

_FOREIGN = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "FLEXMEM_DATA", "RAY_ADDRESS", "COLUMNS", "FORCE_COLOR")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in _FOREIGN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FLEXMEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture(scope="session")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of `SWEEP`, made once."""
    out = tmp_path_factory.mktemp("finished") / "run"
    plan = make_plan(sweep(**SWEEP))
    write_manifest(out, plan_manifest(out, plan))
    InProcess(plan, out).run()
    return out


@pytest.fixture
def finished(_finished: Path, tmp_path: Path) -> Path:
    """A complete run of `SWEEP`, the test's own."""
    return Path(shutil.copytree(_finished, tmp_path / "run"))


@pytest.fixture(scope="session")
def _read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `READ` whose episodes are there and not judged, made once."""
    out = tmp_path_factory.mktemp("read") / "run"
    plan = make_plan(sweep(**READ))
    write_manifest(out, plan_manifest(out, plan))
    InProcess(plan, out).run()
    return out


@pytest.fixture(scope="session")
def _judged(_read: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of `READ`, made once."""
    out = Path(shutil.copytree(_read, tmp_path_factory.mktemp("judged") / "run"))
    plan = make_plan(sweep(**READ))
    judge_run(plan.benchmarks, plan.config.models.judges, out, lambda entry: make_model(entry.model))
    return out


@pytest.fixture
def read(_read: Path, tmp_path: Path) -> Path:
    """A run of `READ` that is not judged yet, the test's own."""
    return Path(shutil.copytree(_read, tmp_path / "read"))


@pytest.fixture
def judged(_judged: Path, tmp_path: Path) -> Path:
    """A complete run of `READ`, the test's own."""
    return Path(shutil.copytree(_judged, tmp_path / "judged"))


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Writes `SWEEP`, or another sweep, with some keys changed, to a YAML file."""

    def write(base: Mapping[str, Any] = SWEEP, **changes: Any) -> Path:
        path = tmp_path / "sweep.yaml"
        path.write_text(yaml.safe_dump({**base, **changes}, sort_keys=False), "utf-8")
        return path

    return write


def flexmem(*arguments: object) -> Result:
    """The command line in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(name="flexmem")
def _flexmem() -> Callable[..., Result]:
    return flexmem
