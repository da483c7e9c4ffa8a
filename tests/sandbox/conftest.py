"""Docker for the tests that need it. They are skipped where none answers, and fail where ``CI`` is set."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from flexmem.sandbox.daemon import Daemon
from flexmem.sandbox.errors import DockerUnavailableError
from flexmem.sandbox.labels import Mark
from flexmem.sandbox.runtime import DockerRuntime
from flexmem.sandbox.spec import ContainerSpec
from flexmem.sandbox.sweep import Scope, sweep_containers

from . import tools_image

RUN = f"test-{os.getpid()}"
"""Of this process's containers: another run's, in use on this machine, are not to be touched."""


def demand_docker() -> None:
    """Skip or fail without a daemon."""
    daemon = Daemon(call_s=10)
    try:
        daemon.do("Docker", lambda client: client.ping())
    except DockerUnavailableError as error:
        how = f"these tests need Docker (containers/start-docker.sh starts it on a bare machine): {error}"
        if os.environ.get("CI"):
            pytest.fail(how)
        pytest.skip(how)
    finally:
        daemon.close()


@pytest.fixture(scope="session")
def tools() -> Iterator[str]:
    """The name of an image with a shell and a few tools."""
    demand_docker()
    daemon = Daemon()
    yield daemon.do("importing the tests' image", tools_image.make)
    daemon.do("removing the tests' image", lambda client: client.images.remove(tools_image.TAG))
    daemon.close()


@pytest.fixture
def runtime(tools: str) -> Iterator[DockerRuntime]:
    """A runtime; whatever the test leaves is a failure, and removed."""
    found = DockerRuntime()
    yield found
    left = asyncio.run(sweep_containers(found, Scope(run=RUN), 0.0))
    found.daemon.close()
    assert left == []


async def own(runtime: DockerRuntime) -> list[str]:
    """Names of the containers of `RUN`."""
    return [each.name for each in await runtime.labelled() if Mark.parse(each.labels).run == RUN]


def shell(script: str, tools: str = tools_image.TAG, **options: object) -> ContainerSpec:
    """A container that runs a script as some user."""
    wanted: dict[str, object] = {"lifetime_s": 120, "user": "10001:10001", **options}
    return ContainerSpec(tools, ("sh", "-c", script), **wanted)  # type: ignore[arg-type]
