"""Starting AppWorld's environment server, in a container or as a child process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from flexmem.benchmarks.appworld.client import KEEP_BYTES, EnvironmentClient
from flexmem.benchmarks.appworld.connection import Connection, ConnectionLostError, Listener
from flexmem.benchmarks.appworld.settings import EnvironmentSettings
from flexmem.sandbox.child import ChildProcess, ChildSpec
from flexmem.sandbox.errors import SandboxError
from flexmem.sandbox.labels import Mark
from flexmem.sandbox.protocol import Sandbox
from flexmem.sandbox.runtime import DockerRuntime
from flexmem.sandbox.scratch import Scratch
from flexmem.sandbox.spec import Bind, ContainerSpec, Tmpfs

__all__ = ["AppWorldServer", "start_as_child", "start_in_container"]

SERVER = Path(__file__).parent / "inside" / "server.py"

_SOCKET_FOLDER, _SOCKET = "socket", "s"
_INSIDE_SOCKETS, _INSIDE_ROOT, _INSIDE_SERVER = "/run/flexmem", "/appworld", "/opt/flexmem/server.py"
_INSIDE_PYTHON = "/opt/appworld/bin/python"
_USER = "10001:10001"
_SMALL_MB = 32
_VARIABLES = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "TZ": "UTC",
}


@dataclass
class AppWorldServer:
    """A warm server: a `flexmem.sandbox.protocol.Server`. ``expires`` is in Unix seconds."""

    client: EnvironmentClient
    sandbox: Sandbox
    scratch: Scratch
    settings: EnvironmentSettings
    expires: float

    @property
    def doubtful(self) -> str | None:
        """See `flexmem.sandbox.protocol.Server.doubtful`."""
        return self.client.doubtful

    async def check(self, for_s: float) -> None:
        """See `flexmem.sandbox.protocol.Server.check`."""
        if time.time() + for_s > self.expires:
            raise SandboxError(f"{self.sandbox.name}: ends before {for_s:g} s are over.")
        await self.client.ping()

    async def close(self) -> None:
        """See `flexmem.sandbox.protocol.Server.close`."""
        self.client.close()
        try:
            await self.sandbox.kill()
        finally:
            await asyncio.to_thread(self.scratch.remove)


async def start_in_container(
    settings: EnvironmentSettings, data: Path, run: str, runtime: DockerRuntime
) -> AppWorldServer:
    """A warm server in a container that sees ``data`` (`bare_data`) and nothing else of this machine.

    Raises:
        SandboxError: it can't be started, or isn't ready in time.
    """

    async def start(scratch: Scratch, sockets: Path) -> Sandbox:
        spec = ContainerSpec(
            image=settings.image,
            command=(
                _INSIDE_PYTHON,
                _INSIDE_SERVER,
                "--contained",
                "--root",
                _INSIDE_ROOT,
                "--socket",
                f"{_INSIDE_SOCKETS}/{_SOCKET}",
            ),
            lifetime_s=settings.lifetime_s,
            environment={
                **_VARIABLES,
                "HOME": "/tmp",
                "APPWORLD_ROOT": _INSIDE_ROOT,
                "APPWORLD_CACHE": "/tmp/.appworld",
            },
            binds=(Bind(data, f"{_INSIDE_ROOT}/data"), Bind(sockets, _INSIDE_SOCKETS)),
            tmpfs=(Tmpfs("/tmp", _SMALL_MB), Tmpfs(f"{_INSIDE_ROOT}/experiments", settings.outputs_mb)),
            memory_mb=settings.memory_mb,
            pids=settings.pids,
            cpus=settings.cpus,
            user=_USER,
            working_dir=_INSIDE_ROOT,
        )
        return await runtime.start(spec, run=run)

    return await _start(settings, run, start)


async def start_as_child(settings: EnvironmentSettings, data: Path, run: str, python: Path) -> AppWorldServer:
    """A warm server as a child process, which nothing keeps from the rest of this machine. ``python`` is the
    interpreter that has AppWorld.

    Raises:
        SandboxError: it can't be started, or isn't ready in time.
    """

    async def start(scratch: Scratch, sockets: Path) -> Sandbox:
        root = scratch.path / "root"
        root.mkdir()
        (root / "data").symlink_to(data)
        spec = ChildSpec(
            command=(str(python), str(SERVER), "--root", str(root), "--socket", str(sockets / _SOCKET)),
            lifetime_s=settings.lifetime_s,
            environment={
                **_VARIABLES,
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": str(scratch.path),
                "TMPDIR": str(scratch.path),
                "APPWORLD_ROOT": str(root),
                "APPWORLD_CACHE": str(scratch.path / ".appworld"),
            },
            memory_mb=settings.memory_mb,
        )
        return await ChildProcess.start(spec, scratch)

    return await _start(settings, run, start)


async def _start(
    settings: EnvironmentSettings, run: str, start: Callable[[Scratch, Path], Awaitable[Sandbox]]
) -> AppWorldServer:
    expires = time.time() + settings.lifetime_s
    scratch = Scratch.make(Mark.of_this_process(run, expires))
    listener: Listener | None = None
    sandbox: Sandbox | None = None
    try:
        sockets = scratch.path / _SOCKET_FOLDER
        sockets.mkdir(mode=0o755)
        listener = await Listener.open(sockets / _SOCKET)
        sandbox = await start(scratch, sockets)
        connection = await _ready(listener, sandbox, settings.start_s)
        return AppWorldServer(EnvironmentClient(connection, sandbox), sandbox, scratch, settings, expires)
    except BaseException:
        if listener is not None:
            listener.close()
        if sandbox is not None:
            with suppress(SandboxError):  # it carries its mark, so a sweep finds what is left
                await sandbox.kill()
        scratch.remove()
        raise


async def _ready(listener: Listener, sandbox: Sandbox, start_s: float) -> Connection:
    """The connection of a server that has said that it is warm."""

    async def greeted() -> Connection:
        connection = await listener.connection()
        await connection.receive(KEEP_BYTES)
        return connection

    greeting, ended = asyncio.create_task(greeted()), asyncio.create_task(sandbox.wait())
    try:
        await asyncio.wait({greeting, ended}, timeout=start_s, return_when=asyncio.FIRST_COMPLETED)
        if greeting.done():
            return greeting.result()
        what = "ended while it started" if ended.done() else f"was not ready within {start_s:g} s"
    except ConnectionLostError as lost:
        what = f"was not ready: {lost}"
    finally:
        greeting.cancel()
        ended.cancel()
        await asyncio.gather(greeting, ended, return_exceptions=True)
    raise SandboxError(f"AppWorld's server in {sandbox.name} {what}. {await sandbox.ending()}")
