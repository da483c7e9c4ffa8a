"""Faults are tried on the sweeps of `tests.sweep`, in the same bare environment."""

from ..sweep.conftest import bare_environment, cache, out

__all__ = ["bare_environment", "cache", "out"]
