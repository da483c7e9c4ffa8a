"""AppWorld's worlds for recording: child processes, since only solutions run in them."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from flexmem.agents.context_bound.plan import Conventions
from flexmem.benchmarks.appworld.environment import AppWorldEnvironment, open_pool
from flexmem.benchmarks.appworld.grading import Grader
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.appworld.places import appworld_cache
from flexmem.benchmarks.appworld.server import AppWorldServer
from flexmem.benchmarks.appworld.settings import EnvironmentSettings
from flexmem.sandbox.labels import run_name
from flexmem.sandbox.pool import SandboxPool

CONVENTIONS = Conventions(
    document="print(apis.api_docs.show_api_doc(app_name='{app}', api_name='{function}'))",
    listing="print([row['name'] for row in apis.api_docs.show_api_descriptions(app_name='{app}')])",
    exempt=frozenset({"api_docs", "supervisor"}),
    failure=r"Execution failed\.|Response status code is [45]\d\d",
    harmless=r"\balready\b",
)
"""How AppWorld speaks. Its prompt documents the two exempt apps."""

_LEASE_S = 600.0
_EXECUTE_S = 120.0


class AppWorldWorlds:
    """See `flexmem.benchmarks.context_bound.worlds.Worlds`; for one event loop, used as a context manager."""

    def __init__(self, root: Path, installation: Installation, servers: int) -> None:
        """``root``: AppWorld's, with ground truth. Nothing is started yet."""
        self._root = root
        self._grader = Grader(root, installation)
        self._folder = tempfile.TemporaryDirectory(prefix="flexmem-recording-")
        self._outputs = Path(self._folder.name)
        settings = EnvironmentSettings(isolation="process", servers=servers, python=installation.python)
        self._pool: SandboxPool[AppWorldServer] = open_pool(
            settings, root=root, cache=appworld_cache(), run=run_name(self._outputs)
        )

    @asynccontextmanager
    async def open(self, task: str) -> AsyncIterator[OpenAppWorld]:
        """See `flexmem.benchmarks.context_bound.worlds.Worlds.open`."""
        async with self._pool.lease(task, _LEASE_S) as server:
            environment = AppWorldEnvironment(server, experiment=uuid.uuid4().hex, outputs=self._outputs)
            await environment.start(task)
            world = OpenAppWorld(environment, self._grader, task)
            yield world
            if not world.ended:
                await server.client.end()

    async def close(self) -> None:
        """End all servers, and the grader."""
        await self._grader.close()
        await self._pool.close()
        self._folder.cleanup()


class OpenAppWorld:
    """See `flexmem.benchmarks.context_bound.worlds.OpenWorld`."""

    def __init__(self, environment: AppWorldEnvironment, grader: Grader, task: str) -> None:
        self._environment = environment
        self._grader = grader
        self._task = task
        self.ended = False

    async def execute(self, code: str) -> str:
        """Run code."""
        return await self._environment.execute(code, _EXECUTE_S)

    async def verdict(self) -> bool:
        """AppWorld's evaluator on what was saved."""
        self.ended = True
        folder = await self._environment.finish()
        return (await self._grader.grade(folder, self._task)).success
