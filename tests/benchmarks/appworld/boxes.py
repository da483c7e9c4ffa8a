"""AppWorld's environments for tests: real containers on a world that is made on this machine."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.appworld.environment import AppWorldEnvironment, open_pool
from flexmem.benchmarks.appworld.image import DEFAULT_BASE, ensure_image
from flexmem.benchmarks.appworld.server import AppWorldServer
from flexmem.benchmarks.appworld.settings import EnvironmentSettings
from flexmem.sandbox.daemon import Daemon
from flexmem.sandbox.errors import DockerUnavailableError
from flexmem.sandbox.labels import Mark
from flexmem.sandbox.pool import SandboxPool
from flexmem.sandbox.runtime import DockerRuntime
from flexmem.sandbox.sweep import Scope, sweep

IMAGE = "flexmem/appworld"
BASE_VARIABLE = "FLEXMEM_TEST_BASE"
RUN = f"appworld-test-{os.getpid()}"
LONG_S = 300.0


def demand_docker() -> None:
    """Skip without a daemon; in CI fail."""
    daemon = Daemon(call_s=10)
    try:
        daemon.do("Docker", lambda client: client.ping())
    except DockerUnavailableError as error:
        how = f"AppWorld's containers need Docker (containers/start-docker.sh starts it on a bare machine): {error}"
        if os.environ.get("CI"):
            pytest.fail(how)
        pytest.skip(how)
    finally:
        daemon.close()


@pytest.fixture(scope="session")
def image() -> str:
    """The image, built if need be on the base that ``FLEXMEM_TEST_BASE`` names."""
    demand_docker()
    asyncio.run(ensure_image(IMAGE, base=os.environ.get(BASE_VARIABLE, DEFAULT_BASE)))
    return IMAGE


@dataclass
class Boxes:
    """A pool of one environment, and a loop that it lives in."""

    runner: asyncio.Runner
    pool: SandboxPool[AppWorldServer]
    runtime: DockerRuntime
    settings: EnvironmentSettings
    root: Path
    outputs: Path
    tasks: list[str]

    @asynccontextmanager
    async def episode(self, deadline_s: float = LONG_S, task: int = 0) -> AsyncIterator[AppWorldEnvironment]:
        """A started task in a leased environment."""
        async with self.pool.lease("e", deadline_s) as server:
            environment = AppWorldEnvironment(server, experiment="x", outputs=self.outputs)
            await environment.start(self.tasks[task])
            yield environment

    def specs(self, task: int) -> dict[str, Any]:
        """What the data says of a task."""
        text = (self.root / "data" / "tasks" / self.tasks[task] / "specs.json").read_text("utf-8")
        found: dict[str, Any] = json.loads(text)
        return found

    async def sound_episode(self) -> None:
        """The next episode finds all as it should be."""
        async with self.episode() as environment:
            assert await environment.execute("print(1 + 1)", LONG_S) == "2\n"
            assert not await environment.completed()
            await environment.execute("apis.supervisor.complete_task()", LONG_S)
            assert await environment.completed()
            folder = await environment.finish()
        assert (folder / "dbs").is_dir()

    async def containers(self) -> list[str]:
        """Of this test run; another run's, in use on this machine, are not to be touched."""
        return [each.identity for each in await self.runtime.labelled() if Mark.parse(each.labels).run == RUN]


def boxes_of(settings: EnvironmentSettings, root: Path, folder: Path) -> Iterator[Boxes]:
    """Boxes that leave nothing, as a fixture's body."""
    runtime = DockerRuntime()
    pool = open_pool(settings, root=root, cache=folder / "cache", run=RUN, runtime=runtime)
    tasks = sorted(path.name for path in (root / "data" / "tasks").iterdir())
    with asyncio.Runner() as runner:
        boxes = Boxes(runner, pool, runtime, settings, root, folder / "outputs", tasks)
        yield boxes
        runner.run(pool.close())
        if settings.isolation == "docker":
            assert runner.run(boxes.containers()) == []
            assert runner.run(sweep(runtime, Scope(run=RUN))) == []
    runtime.daemon.close()
