"""AppWorld's installation, a world of our own, and the image of its server, made once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from .boxes import image
from .installed import demand_installation, demand_world

__all__ = ["appworld_python", "image", "world_root"]


@pytest.fixture(scope="session")
def appworld_python() -> Path:
    """The interpreter that has AppWorld."""
    return demand_installation().python


@pytest.fixture(scope="session")
def world_root() -> Path:
    """The own world's root."""
    return demand_world(demand_installation())
