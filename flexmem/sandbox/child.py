"""A child process in place of a container: no isolation at all, only an end that is certain.

It runs as this user, sees this machine's files and network, and can harm both. It is for machines without Docker, and
for code that is trusted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from flexmem.sandbox.ending import Ending, ending_of
from flexmem.sandbox.errors import SandboxError
from flexmem.sandbox.log_tail import LogTail
from flexmem.sandbox.owner import Process, fate, identify
from flexmem.sandbox.scratch import Scratch

__all__ = ["ChildProcess", "ChildSpec", "end_group"]

_KILL_AFTER_S = 5
_FILE_MB = 256  # of one file that it writes
_ENDED_S = 10.0
_LOOK_S = 0.05
_READ = 65_536


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A command with the whole of its environment variables. ``memory_mb`` (MiB) bounds the memory of each process of
    it; Linux can bound processes by user only, so their number is bounded for none.
    """

    command: tuple[str, ...]
    lifetime_s: float
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_mb: int = 1_024


class ChildProcess:
    """A started child, leader of a session of its own: a `flexmem.sandbox.protocol.Sandbox`.

    ``timeout`` stands before the command and ends it when its lifetime is over, whether or not this process lives.
    """

    def __init__(self, process: asyncio.subprocess.Process, identity: Process, *, expires: float) -> None:
        """For `start`."""
        self.name = f"child process {process.pid}"
        self._process, self._identity, self._expires = process, identity, expires
        self._tail = LogTail()
        self._reading = asyncio.create_task(self._read(), name=f"log of {self.name}")

    @classmethod
    async def start(cls, spec: ChildSpec, scratch: Scratch) -> ChildProcess:
        """Start it in its scratch folder, which remembers it for a sweep.

        Raises:
            SandboxError: the command can't be run.
        """
        limits = f'ulimit -c 0 && ulimit -d {spec.memory_mb << 10} && ulimit -f {_FILE_MB << 11} && exec "$@"'
        expires = time.time() + spec.lifetime_s
        guard = ("timeout", "-k", str(_KILL_AFTER_S), str(max(1, round(spec.lifetime_s))))
        try:
            process = await asyncio.create_subprocess_exec(
                *("sh", "-c", limits, "sh"),
                *guard,
                *spec.command,
                cwd=scratch.path,
                env=dict(spec.environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(f"sh, which starts child processes, can't be run ({error.strerror}).") from error
        try:
            identity = identify(process.pid)
            scratch.record(identity)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            raise
        return cls(process, identity, expires=expires)

    async def ending(self) -> Ending:
        """See `flexmem.sandbox.protocol.Sandbox.ending`. Who ended it can't be told."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S * 10):
                await self._process.wait()
                await self._reading
        status = self._process.returncode
        if status is None:
            return Ending("running", None, self._tail.text())
        code = 128 - status if status < 0 else status
        event = {"Action": "die", "Actor": {"Attributes": {"exitCode": str(code)}}}
        return ending_of([event], self._tail.text(), outlived=time.time() >= self._expires)

    async def wait(self) -> None:
        """See `flexmem.sandbox.protocol.Sandbox.wait`."""
        await self._process.wait()

    async def kill(self) -> None:
        """See `flexmem.sandbox.protocol.Sandbox.kill`. What left the process group stays."""
        await asyncio.to_thread(end_group, self._identity)
        await self._process.wait()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while chunk := await stream.read(_READ):
            self._tail.write(chunk)


def end_group(leader: Process) -> None:
    """Kill all processes of a group at once; one whose leader is gone has been ended with it, or is not ours to tell.

    Raises:
        SandboxError: it may not be killed.
    """
    if fate(leader, same_node=True) != "alive":
        return
    try:
        os.killpg(leader.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise SandboxError(f"process group {leader.pid}: may not be killed ({error.strerror}).") from error
    last = time.monotonic() + _ENDED_S
    while fate(leader, same_node=True) == "alive":
        if time.monotonic() > last:
            raise SandboxError(f"process group {leader.pid}: still there {_ENDED_S:g} s after it was killed.")
        time.sleep(_LOOK_S)
