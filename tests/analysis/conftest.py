from __future__ import annotations

from pathlib import Path

import pytest

from .runs import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")
