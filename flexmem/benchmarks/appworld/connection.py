"""Messages between this process and an environment's server (`inside/server.py` tells their form)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flexmem.sandbox.errors import SandboxError

__all__ = ["Answer", "Connection", "ConnectionLostError", "Listener"]

_LONGEST_PATH = 107  # bytes of a Unix socket's address
_LENGTH = 4
_LINE = 1 << 22  # bytes of an answer's JSON at most
_CHUNK = 1 << 16


class ConnectionLostError(Exception):
    """The server has closed the connection, or sent what is no message; the message is half a sentence."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's fields, and its body: all of it in ``head``, or the first and the last bytes, with how many between
    them were left out.
    """

    fields: Mapping[str, Any]
    head: bytes
    tail: bytes = b""
    left_out: int = 0


class Connection:
    """One connection to one server, for one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, fields: Mapping[str, Any], body: bytes = b"") -> None:
        """Send a request.

        Raises:
            ConnectionLostError: nobody listens any more.
        """
        line = json.dumps({**fields, "body": len(body)}).encode()
        try:
            self._writer.write(len(line).to_bytes(_LENGTH, "big") + line + body)
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLostError(f"the connection broke off ({error.strerror or error})") from error

    async def receive(self, keep: int) -> Answer:
        """The next answer, of whose body ``keep`` bytes at most are held in memory: half of it from its beginning, half
        from its end.

        Raises:
            ConnectionLostError: it broke off, or was no answer.
        """
        size = int.from_bytes(await self._exactly(_LENGTH), "big")
        if size > _LINE:
            raise ConnectionLostError(f"it sent {size:,} bytes where a short line was due")
        try:
            fields = json.loads(await self._exactly(size))
            body = fields["body"]
            if not isinstance(fields["ok"], bool) or not isinstance(body, int) or body < 0:
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise ConnectionLostError("it sent what is no answer") from None
        if body <= keep:
            return Answer(fields, await self._exactly(body))
        half = keep // 2
        head = await self._exactly(half)
        return Answer(fields, head, await self._last(body - half, half), body - 2 * half)

    def close(self) -> None:
        """Close it, which ends a server that waits for a request."""
        self._writer.close()

    async def _exactly(self, size: int) -> bytes:
        try:
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError):
            raise ConnectionLostError("it closed the connection") from None

    async def _last(self, size: int, keep: int) -> bytes:
        """Read ``size`` bytes and hold the last ``keep``."""
        kept = bytearray()
        while size:
            part = await self._exactly(min(size, _CHUNK))
            size -= len(part)
            kept += part
            del kept[:-keep]
        return bytes(kept)


class Listener:
    """A Unix socket on which one server is awaited.

    The server connects here, and not the other way round: its sandbox sees the socket in a folder that it can't write,
    so that code in it can't fill this machine's disk.
    """

    def __init__(self, server: asyncio.Server, arrived: asyncio.Future[Connection]) -> None:
        """For `open`."""
        self._server, self._arrived = server, arrived

    @classmethod
    async def open(cls, path: Path) -> Listener:
        """Listen at ``path``, for any user who can reach it: the folders above decide who can.

        Raises:
            SandboxError: the path is too long for a socket, or can't be made.
        """
        if len(str(path).encode()) > _LONGEST_PATH:
            raise SandboxError(
                f"{path}: longer than the {_LONGEST_PATH} bytes of a socket's path. Set TMPDIR to a short one."
            )
        arrived: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if arrived.done():
                writer.close()
            else:
                arrived.set_result(Connection(reader, writer))

        try:
            server = await asyncio.start_unix_server(accept, path)
            path.chmod(0o666)  # noqa: ASYNC240 - a system call that waits for nothing
        except OSError as error:
            raise SandboxError(f"{path}: no socket can be made there ({error.strerror}).") from error
        return cls(server, arrived)

    async def connection(self) -> Connection:
        """The first one that comes; nobody else is let in after it."""
        connection = await asyncio.shield(self._arrived)
        self._server.close()
        return connection

    def close(self) -> None:
        """Listen no more, and close a connection that nobody asked for."""
        self._server.close()
        if self._arrived.done():
            with suppress(asyncio.CancelledError):
                self._arrived.result().close()
        else:
            self._arrived.cancel()
