"""What can be wrong with AppWorld on this machine; its data is `flexmem.benchmarks.protocol.DataError`."""

from __future__ import annotations

from flexmem.benchmarks import agent_protocol
from flexmem.errors import FlexmemError

__all__ = ["GradingError", "InsideError", "InstallationError", "InstallationMissingError"]


class InstallationError(FlexmemError):
    """AppWorld could not be installed, or what is installed can't be used."""


class InstallationMissingError(InstallationError):
    """AppWorld is not installed on this machine."""


class InsideError(FlexmemError):
    """A program that runs in AppWorld's own interpreter failed or took too long; carries its last lines."""


class GradingError(agent_protocol.GradingError):
    """AppWorld's evaluator could not grade a task's outputs."""
