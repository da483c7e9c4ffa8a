"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says more of the machine than of the code.
settings.register_profile("flexmem", deadline=None)
settings.load_profile("flexmem")

_WITH_RAY = ("sweep", "cli", "faults", "test_readme.py", "test_plugin.py")
"""Where tests start clusters, which get in each other's way: they run beside other tests, but not beside each other."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tell pytest-xdist which tests stay together."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if set(_WITH_RAY) & set(item.path.parts):
                item.add_marker(pytest.mark.xdist_group("ray"))


_DATA = os.environ.get("FLEXMEM_DATA")


@pytest.fixture(scope="session")
def flexmem_data() -> Path:
    """The folder with the real benchmark files; without it the test is skipped, in CI it fails."""
    if _DATA:
        return Path(_DATA)
    how = "set FLEXMEM_DATA to a folder that holds the benchmark files (such as locomo/locomo10.json.xz)"
    if os.environ.get("CI"):
        pytest.fail(f"CI runs the tests on real data: {how}")
    pytest.skip(f"{how} to run this test")
