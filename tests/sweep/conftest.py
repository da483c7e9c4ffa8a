"""Sweeps of tests see no key, address, data or cache of whoever runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

_FOREIGN = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "FLEXMEM_DATA",
    "RAY_ADDRESS",
)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that this session's tests share: a text is embedded once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    for name in _FOREIGN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FLEXMEM_CACHE", str(cache))
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A run's output folder; it does not exist yet."""
    return tmp_path / "run"
