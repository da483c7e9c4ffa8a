"""What containers and child processes have in common, and what a pool needs of a server that runs in one."""

from __future__ import annotations

from typing import Protocol

from flexmem.sandbox.ending import Ending


class Sandbox(Protocol):
    """A running container or child process."""

    @property
    def name(self) -> str:
        """As messages and the daemon have it."""
        ...

    async def ending(self) -> Ending:
        """How it ended, or that it still runs. Waits a moment for one that is just ending."""
        ...

    async def wait(self) -> None:
        """Return once it has ended."""
        ...

    async def kill(self) -> None:
        """End it at once with all its processes, and remove what it left. A second call does nothing.

        Raises:
            SandboxError: the daemon doesn't answer, or can't remove it.
        """
        ...


class Server(Protocol):
    """What a pool leases."""

    @property
    def doubtful(self) -> str | None:
        """Why it can't be trusted any more; None while it can."""
        ...

    async def check(self, for_s: float) -> None:
        """Look whether it can serve for another ``for_s`` seconds.

        Raises:
            SandboxError: it can't.
        """
        ...

    async def close(self) -> None:
        """End it at once and leave nothing; works in any state, and a second call does nothing.

        Raises:
            SandboxError: something is left, which `flexmem.sandbox.sweep` removes once its owner is dead.
        """
        ...
