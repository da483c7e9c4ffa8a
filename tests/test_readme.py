"""The README's examples run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(r"<!-- tested -->\n```python\n(.*?)```", README.read_text("utf-8"), re.S)


def test_the_readme_has_examples() -> None:
    assert len(EXAMPLES) == README.read_text("utf-8").count("```python")
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_the_readme_runs(example: str, tmp_path: Path) -> None:
    environment = {**os.environ, "FLEXMEM_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", example], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
