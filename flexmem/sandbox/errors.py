"""Failures of sandboxes: whose fault they are, and what is done about them.

    FlexmemError
     ├─ SandboxError                the machine failed                          infrastructure: run again
     │   ├─ DockerUnavailableError  no daemon answers
     │   ├─ ImageMissingError       no such image on this machine               (another try won't help)
     │   ├─ NoSpaceError            the daemon's disk is full                   (another try won't help)
     │   └─ PoolClosedError         leased from a pool that is closed           (another try won't help)
     └─ EpisodeEndedError           what ran inside ended its own episode
         ├─ SandboxDeadlineError    it took too long                            limit: a finished episode
         ├─ SandboxMemoryError      it took too much memory                     limit: a finished episode
         └─ SandboxBrokenError      it ended its server, or left no sound one   agent: a finished episode

``failure`` is the class in a run's table of failures. A message says what happened, in which sandbox, how that ended
and what its log said last.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from flexmem.errors import FlexmemError


class SandboxError(FlexmemError):
    """A sandbox can't be started or used, for a reason outside the episode: it is run again. ``passing``: trying again
    may help without anybody's doing.
    """

    failure: ClassVar[Literal["infrastructure"]] = "infrastructure"
    passing: ClassVar[bool] = True


class DockerUnavailableError(SandboxError):
    """No Docker daemon answers, or the ``docker`` package is not installed."""


class ImageMissingError(SandboxError):
    """The image is not on this machine."""

    passing = False


class NoSpaceError(SandboxError):
    """A disk is full."""

    passing = False


class PoolClosedError(SandboxError):
    """A closed pool leases nothing."""

    passing = False


class EpisodeEndedError(FlexmemError):
    """What ran in the sandbox ended the episode: a failure that counts, and is not run again."""

    failure: ClassVar[Literal["limit", "agent"]] = "limit"


class SandboxDeadlineError(EpisodeEndedError):
    """The episode, or one request of it, took longer than it may."""


class SandboxMemoryError(EpisodeEndedError):
    """The episode took more memory than its sandbox has."""


class SandboxBrokenError(EpisodeEndedError):
    """The episode's code ended the server that it runs in, or left it in a state that can't be trusted."""

    failure = "agent"
