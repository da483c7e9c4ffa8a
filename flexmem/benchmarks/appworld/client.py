"""One environment server as its host sees it: requests with deadlines, answers of bounded size, typed errors."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from flexmem.benchmarks.appworld.connection import Answer, Connection, ConnectionLostError
from flexmem.benchmarks.protocol import DataError
from flexmem.sandbox.ending import Ending
from flexmem.sandbox.errors import (
    EpisodeEndedError,
    SandboxBrokenError,
    SandboxDeadlineError,
    SandboxError,
    SandboxMemoryError,
)
from flexmem.sandbox.protocol import Sandbox

__all__ = ["EnvironmentClient", "NoSuchTaskError"]

KEEP_BYTES = 1 << 19
"""Of one output, in all: far above what an agent is shown, far below what 20 MB of print take."""

_ASKED_S = 30.0  # of a request that runs none of an agent's code
_SHOWN = 4_000


class NoSuchTaskError(DataError):
    """The server's data holds no task of that name."""


class EnvironmentClient:
    """Requests to one server. A request that fails leaves it ``doubtful``: it may not be asked again."""

    def __init__(self, connection: Connection, sandbox: Sandbox) -> None:
        self._connection, self._sandbox = connection, sandbox
        self.doubtful: str | None = None

    async def ping(self) -> None:
        """Look whether the server answers.

        Raises:
            SandboxError: it does not.
        """
        try:
            await self._request({"op": "ping"}, b"", _ASKED_S, KEEP_BYTES)
        except EpisodeEndedError as error:  # between two episodes it is nobody's doing
            raise SandboxError(str(error)) from error

    async def begin(self, task_id: str, experiment: str, *, timeout_s: int, deadline_s: float) -> dict[str, Any]:
        """Load a task's world and say what `inside/server.py` says of it. ``timeout_s`` (seconds) is AppWorld's own
        limit of one execution, of which the agent is told.

        Raises:
            NoSuchTaskError: the data lacks the task. SandboxError, EpisodeEndedError: see `execute`.
        """
        fields = {"op": "begin", "task_id": task_id, "experiment": experiment, "timeout_s": timeout_s}
        answer = await self._request(fields, b"", deadline_s, KEEP_BYTES)
        task = answer.fields.get("task")
        if not isinstance(task, dict):
            raise await self._distrust("it answered without a task")
        return task

    async def execute(self, code: str, deadline_s: float) -> str:
        """Run an agent's code and give what AppWorld prints for it: above 512 kB its beginning and its end, with a line
        between them that says how much is left out.

        Raises:
            SandboxDeadlineError: no answer in time.
            SandboxMemoryError: the code took more memory than there is.
            SandboxBrokenError: the code ended the server or broke it.
            SandboxError: the sandbox was ended from outside, or the daemon is gone.
        """
        answer = await self._request({"op": "execute"}, code.encode("utf-8", errors="replace"), deadline_s, KEEP_BYTES)
        if not answer.left_out:
            return answer.head.decode("utf-8", errors="replace")
        head, tail = answer.head.decode("utf-8", errors="ignore"), answer.tail.decode("utf-8", errors="ignore")
        return f"{head}\n[… {answer.left_out:,} bytes left out …]\n{tail}"

    async def completed(self) -> bool:
        """Whether the agent has called ``complete_task``.

        Raises:
            SandboxError, EpisodeEndedError: see `execute`.
        """
        return (await self._request({"op": "completed"}, b"", _ASKED_S, KEEP_BYTES)).fields.get("completed") is True

    async def outputs(self, most: int) -> bytes:
        """The task's folder, a gzipped tar of ``most`` bytes at most.

        Raises:
            SandboxBrokenError: it is larger. SandboxError, EpisodeEndedError: see `execute`.
        """
        answer = await self._request({"op": "outputs"}, b"", _ASKED_S, most)
        if answer.left_out:
            raise await self._distrust(f"its outputs take more than {most:,} bytes")
        return answer.head

    async def end(self) -> None:
        """End the episode; the server is as before it.

        Raises:
            SandboxError, EpisodeEndedError: see `execute`.
        """
        await self._request({"op": "end"}, b"", _ASKED_S, KEEP_BYTES)

    def close(self) -> None:
        """Close the connection."""
        self.doubtful = self.doubtful or "it is closed"
        self._connection.close()

    async def _request(self, fields: dict[str, Any], body: bytes, deadline_s: float, keep: int) -> Answer:
        if self.doubtful is not None:
            raise SandboxError(f"{self._sandbox.name}: can't be asked any more: {self.doubtful}. Lease another one.")
        operation = fields["op"]
        self.doubtful = f"its answer to {operation!r} was never read"
        try:
            async with asyncio.timeout(deadline_s):
                await self._connection.send(fields, body)
                answer = await self._connection.receive(keep)
        except TimeoutError:
            self.doubtful = f"{operation!r} passed its deadline"
            raise SandboxDeadlineError(
                f"{self._sandbox.name}: {operation!r} did not end within {deadline_s:g} s; the sandbox is to be ended."
            ) from None
        except ConnectionLostError as lost:
            raise await self._distrust(str(lost), operation) from None
        if not answer.fields["ok"]:
            message = json.dumps(answer.fields.get("message", ""), ensure_ascii=False)[:_SHOWN]
            if answer.fields.get("error") == "no_such_task":
                self.doubtful = None
                raise NoSuchTaskError(f"{self._sandbox.name}: {message}. Look at the data that it was started with.")
            raise await self._distrust(f"{operation!r} failed: {message}")
        self.doubtful = None
        return answer

    async def _distrust(self, problem: str, operation: str = "") -> SandboxError | EpisodeEndedError:
        """The error for a server that can't be trusted any more, by how its sandbox ended."""
        self.doubtful = problem
        during = f" during {operation!r}" if operation else ""
        try:
            ending = await self._sandbox.ending()
        except SandboxError as error:
            return SandboxError(f"{self._sandbox.name}: {problem}{during}, and how it ended can't be told: {error}")
        return _failure(ending)(f"{self._sandbox.name}: {problem}{during}. {ending}")


def _failure(ending: Ending) -> type[SandboxError] | type[EpisodeEndedError]:
    """Whose fault an end is. The machine's is what happened from outside, or unseen by the daemon."""
    if ending.reason == "memory":
        return SandboxMemoryError
    return SandboxError if ending.reason in ("killed", "lifetime", "unknown") else SandboxBrokenError
