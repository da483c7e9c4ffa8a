"""One AppWorld task as an agent's loop sees it, and the pool that such environments are leased from."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from flexmem.benchmarks.appworld.bare_data import bare_data
from flexmem.benchmarks.appworld.outputs import unpack
from flexmem.benchmarks.appworld.server import AppWorldServer, start_as_child, start_in_container
from flexmem.benchmarks.appworld.settings import EnvironmentSettings
from flexmem.sandbox.errors import EpisodeEndedError, SandboxBrokenError, SandboxError
from flexmem.sandbox.pool import SandboxPool
from flexmem.sandbox.runtime import DockerRuntime
from flexmem.sandbox.starting import StartPolicy

__all__ = ["AppWorldEnvironment", "Supervisor", "TaskStart", "open_pool"]

_POLICY = StartPolicy()
_NAME = re.compile(r"[\w.-]*\w[\w.-]*")


@dataclass(frozen=True, slots=True)
class Supervisor:
    """The person on whose behalf the agent acts."""

    first_name: str
    last_name: str
    email: str
    phone_number: str


@dataclass(frozen=True, slots=True)
class TaskStart:
    """What an agent is told of its task. ``datetime`` is the world's, ISO 8601; ``app_descriptions`` are by app."""

    task_id: str
    instruction: str
    supervisor: Supervisor
    datetime: str
    app_descriptions: Mapping[str, str]


class AppWorldEnvironment:
    """One task in a leased server. Its outputs go to ``outputs/EXPERIMENT/tasks/TASK``, AppWorld's own layout below
    ``experiments/outputs``, when it is finished; until then nothing is on this machine.

    Every method may raise what `flexmem.benchmarks.appworld.client.EnvironmentClient.execute` says; the lease then ends
    with that error, and its server with it.
    """

    def __init__(self, server: AppWorldServer, *, experiment: str, outputs: Path) -> None:
        """``experiment`` is one name, without a slash."""
        if not _NAME.fullmatch(experiment):
            raise ValueError(f"{experiment!r} can't name an experiment's folder")
        self._server, self._experiment, self._outputs = server, experiment, outputs
        self._task_id = ""

    async def start(self, task_id: str) -> TaskStart:
        """Load a task. Once for one environment.

        Raises:
            NoSuchTaskError: the data lacks it.
        """
        if not _NAME.fullmatch(task_id):
            raise ValueError(f"{task_id!r} names no task")
        settings = self._server.settings
        told = await self._server.client.begin(
            task_id, self._experiment, timeout_s=settings.execute_s, deadline_s=settings.begin_s
        )
        self._task_id = task_id
        try:
            return TaskStart(
                task_id=told["task_id"],
                instruction=told["instruction"],
                supervisor=Supervisor(**told["supervisor"]),
                datetime=told["datetime"],
                app_descriptions=told["app_descriptions"],
            )
        except (KeyError, TypeError) as error:
            raise SandboxError(
                f"{self._server.sandbox.name}: tells of a task in a form unknown here ({error!r})."
            ) from error

    async def execute(self, code: str, deadline_s: float) -> str:
        """Run code and give what AppWorld prints for it, bounded. AppWorld's own limit of one execution
        (``execute_s``) is told to the agent in that text; ``deadline_s`` (seconds) ends the episode.

        Raises:
            SandboxDeadlineError: no answer in time.
        """
        return await self._server.client.execute(code, deadline_s)

    async def completed(self) -> bool:
        """Whether the agent has called ``complete_task``."""
        return await self._server.client.completed()

    async def finish(self) -> Path:
        """End the task and save its outputs, in place of earlier ones; gives their folder.

        Raises:
            SandboxBrokenError: the outputs are too large or no sound archive.
        """
        most = self._server.settings.outputs_mb << 20
        packed = await self._server.client.outputs(most)
        folder = self._outputs / self._experiment / "tasks" / self._task_id
        await asyncio.to_thread(unpack, packed, folder, most)
        if not (folder / "dbs").is_dir():
            raise SandboxBrokenError(
                f"{self._server.sandbox.name}: its outputs hold no databases; its code removed them."
            )
        # The task is done and saved. A server that its code spoiled says so, and is not used again.
        with suppress(EpisodeEndedError, SandboxError):
            await self._server.client.end()
        return folder


def open_pool(
    settings: EnvironmentSettings,
    *,
    root: Path,
    cache: Path,
    run: str,
    runtime: DockerRuntime | None = None,
    policy: StartPolicy = _POLICY,
) -> SandboxPool[AppWorldServer]:
    """A pool of servers on this machine, none of them started yet.

    Args:
        settings: how they are run.
        root: AppWorld's root, whose folder ``data`` they read, without its ground truth.
        cache: where the data without ground truth is kept.
        run: whose they are (`flexmem.sandbox.labels.run_name`).
        runtime: of ``docker``; None for this machine's daemon.
        policy: how start-ups are tried.

    Raises:
        DataError: the root holds no tasks, or the cache can't be written.
        SandboxError: ``process`` without an interpreter.
    """
    data = bare_data(root, cache)
    daemon = runtime or DockerRuntime()
    python = settings.python
    if settings.isolation == "process" and python is None:
        raise SandboxError(
            "AppWorld as a child process needs the interpreter that has AppWorld: set `python`, or use `isolation: "
            "docker`."
        )

    async def start() -> AppWorldServer:
        if python is not None and settings.isolation == "process":
            return await start_as_child(settings, data, run, python)
        return await start_in_container(settings, data, run, daemon)

    return SandboxPool(start, size=settings.servers, max_episodes=settings.max_episodes, policy=policy)
