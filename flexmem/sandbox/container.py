"""One running container."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from flexmem.sandbox.daemon import Daemon
from flexmem.sandbox.ending import Ending, ending_of
from flexmem.sandbox.errors import SandboxError
from flexmem.sandbox.log_tail import LogTail

if TYPE_CHECKING:
    import docker

__all__ = ["Container", "remove_container"]

_LINGER_S = 3.0  # how long the daemon may take to tell of an end whose effect is already seen
_LOOK_S = 0.1
_GONE_S = 20.0
_EVENTS_OVERLAP_S = 2.0  # the daemon stamps events by its own clock


class Container:
    """A started container: a `flexmem.sandbox.protocol.Sandbox`. `flexmem.sandbox.runtime` makes it."""

    def __init__(self, daemon: Daemon, name: str, identity: str, *, created: float, expires: float) -> None:
        """``created`` and ``expires`` (the end of its lifetime) are in Unix seconds."""
        self.name, self.identity = name, identity
        self.expires = expires
        self._daemon, self._created = daemon, created
        self._tail = LogTail()
        self._killed = False
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()

    def follow(self, attached: Any) -> None:
        """Keep the end of what it writes; the thread ends with the container. ``attached`` is the SDK's socket."""
        threading.Thread(target=self._read, args=(attached,), name=f"log of {self.name}", daemon=True).start()

    async def wait(self) -> None:
        """See `flexmem.sandbox.protocol.Sandbox.wait`: its output has come to its end, or the daemon has."""
        await self._ended.wait()

    async def ending(self) -> Ending:
        """See `flexmem.sandbox.protocol.Sandbox.ending`.

        Raises:
            SandboxError: the daemon doesn't answer.
        """
        last = time.monotonic() + _LINGER_S
        while True:
            events = await self._daemon.call(f"container {self.name}", self._events)
            running = await self._daemon.call(f"container {self.name}", self._runs)
            actions = {event.get("Action") for event in events}
            settled = "die" in actions if not running else "oom" in actions
            if settled or time.monotonic() > last:
                break
            await asyncio.sleep(_LOOK_S)
        found = ending_of(events, self._tail.text(), outlived=time.time() >= self.expires)
        return Ending("running", None, found.log) if running and found.reason == "unknown" else found

    async def kill(self) -> None:
        """See `flexmem.sandbox.protocol.Sandbox.kill`."""
        if not self._killed:
            await remove_container(self._daemon, self.identity, self.name)
            self._killed = True

    def _read(self, attached: Any) -> None:
        from docker.utils.socket import frames_iter

        try:
            for _, chunk in frames_iter(attached, tty=False):
                self._tail.write(chunk)
        except Exception as error:  # noqa: BLE001 - the log says that it broke off; the container's end is told elsewhere
            self._tail.write(f"\n[the log broke off: {error!r}]\n".encode())
        attached._response.close()  # all that closes the connection, which else stays open until it is collected
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            self._loop.call_soon_threadsafe(self._ended.set)

    def _events(self, client: docker.DockerClient) -> list[Mapping[str, Any]]:
        found = client.events(
            since=f"{self._created - _EVENTS_OVERLAP_S:.6f}",
            until=f"{time.time():.6f}",
            filters={"container": self.identity, "event": ["oom", "kill", "die"]},
            decode=True,
        )
        return list(found)

    def _runs(self, client: docker.DockerClient) -> bool:
        from docker.errors import NotFound

        try:
            return bool(client.api.inspect_container(self.identity)["State"]["Running"])
        except NotFound:
            return False


async def remove_container(daemon: Daemon, identity: str, name: str) -> None:
    """Kill and remove a container, and wait until it is gone; one that is gone already is fine.

    Raises:
        SandboxError: the daemon doesn't answer, or it is still there after 20 s.
    """
    await daemon.call(f"removing container {name}", lambda client: _remove(client, identity, name))


def _remove(client: docker.DockerClient, identity: str, name: str) -> None:
    from docker.errors import APIError, NotFound

    last = time.monotonic() + _GONE_S
    while True:
        try:
            client.api.remove_container(identity, force=True, v=True)
        except NotFound:
            return
        except APIError as error:
            if error.status_code != 409:  # it is being removed already
                raise
        try:
            client.api.inspect_container(identity)
        except NotFound:
            return
        if time.monotonic() > last:
            raise SandboxError(
                f"container {name} is still there {_GONE_S:g} s after it was removed. Look at the Docker daemon's log."
            )
        time.sleep(_LOOK_S)
