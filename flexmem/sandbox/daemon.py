"""Talking to the Docker daemon: calls in threads, each with a deadline, and failures as `flexmem.sandbox.errors`."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from flexmem.sandbox.errors import DockerUnavailableError, ImageMissingError, NoSpaceError, SandboxError

if TYPE_CHECKING:
    import docker

__all__ = ["Daemon", "translate"]

T = TypeVar("T")

CALL_S = 60.0
_GRACE_S = 5.0  # the socket's own time-out ends the thread; this ends the wait where even that doesn't
_CONNECTIONS = 32
_DEFAULT_HOST = "unix:///var/run/docker.sock"


class Daemon:
    """The daemon that ``DOCKER_HOST`` names, else this machine's. It is connected at the first call; an instance can be
    pickled, and connects anew where it is unpickled.
    """

    def __init__(self, *, call_s: float = CALL_S) -> None:
        """``call_s``: the most seconds that one call may take."""
        self.call_s = call_s
        self._client: docker.DockerClient | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Callable[..., Daemon], tuple[()], dict[str, Any]]:
        return (Daemon, (), {"call_s": self.call_s})

    async def call(self, what: str, work: Callable[[docker.DockerClient], T]) -> T:
        """Do ``work`` with the client in a thread. ``what`` says in messages what was to be done.

        Raises:
            SandboxError: see `translate`; also when the deadline passes, after which the daemon may still do it.
        """
        try:
            async with asyncio.timeout(self.call_s + _GRACE_S):
                return await asyncio.to_thread(self.do, what, work)
        except TimeoutError:
            raise self._late(what) from None

    def do(self, what: str, work: Callable[[docker.DockerClient], T]) -> T:
        """`call` in the thread of the caller."""
        try:
            _knock(os.environ.get("DOCKER_HOST") or _DEFAULT_HOST, self.call_s)
            return work(self._connected())
        except SandboxError:
            raise
        except Exception as error:
            raise translate(what, error) from error

    def close(self) -> None:
        """Give connections back; the next call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> docker.DockerClient:
        with self._lock:
            if self._client is None:
                self._client = _connect(self.call_s)
            return self._client

    def _late(self, what: str) -> SandboxError:
        return SandboxError(
            f"{what}: the Docker daemon did not answer within {self.call_s:g} s. Look at its log, and whether the "
            "machine is short of memory or disk."
        )


def _connect(call_s: float) -> docker.DockerClient:
    try:
        import docker
    except ModuleNotFoundError:
        raise DockerUnavailableError(
            "the package `docker` is not installed, which containers need: pip install 'flexmem[sandbox]'."
        ) from None
    return docker.from_env(timeout=call_s, max_pool_size=_CONNECTIONS)


def _knock(host: str, call_s: float) -> None:
    """Look whether anybody listens, which takes next to nothing: the SDK leaves a socket open where nobody does."""
    scheme, _, path = host.partition("://")
    if scheme != "unix":
        return
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(call_s)
        door.connect(path)


def translate(what: str, error: Exception) -> SandboxError:
    """The failure of a call as one of ours; what is no failure of the daemon is raised as it is."""
    from docker.errors import APIError, DockerException, ImageNotFound

    text = " ".join(str(error).split())
    if "no space left on device" in text.lower():
        return NoSpaceError(
            f"{what}: the Docker daemon's disk is full. Make room (`docker system df`, `docker image prune`)."
        )
    if isinstance(error, ImageNotFound):
        return ImageMissingError(f"{what}: {text}. Build the image, or name one that this machine has.")
    if isinstance(error, APIError):
        return SandboxError(f"{what}: the Docker daemon refused: {text}")
    if isinstance(error, TimeoutError) or "Read timed out" in text:
        return SandboxError(f"{what}: the Docker daemon did not answer in time ({text}).")
    if isinstance(error, DockerException | OSError):  # what the HTTP library raises is an OSError as well
        return DockerUnavailableError(
            f"{what}: no Docker daemon answers ({text}). Start it (containers/start-docker.sh does on a bare machine), "
            "check DOCKER_HOST, and that this user may use it."
        )
    raise error
