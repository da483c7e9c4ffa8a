"""A daemon that goes away and comes back, tried on a daemon of the test's own."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flexmem.sandbox.container import Container
from flexmem.sandbox.daemon import Daemon
from flexmem.sandbox.errors import DockerUnavailableError, SandboxError
from flexmem.sandbox.pool import SandboxPool
from flexmem.sandbox.runtime import DockerRuntime
from flexmem.sandbox.starting import StartPolicy
from flexmem.sandbox.sweep import Scope, sweep_containers

from . import tools_image
from .conftest import RUN, demand_docker, shell

ANSWERS_S = 120.0


class OwnDaemon:
    """A Docker daemon that nobody else uses."""

    def __init__(self, folder: Path) -> None:
        self.host = f"unix://{folder}/d.sock"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers; one that ends over what its forerunner left is started again, as a
        service manager does.
        """
        options = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
        command = ["dockerd", "--host", self.host, "--bridge=none", "--iptables=false", "--ip6tables=false"]
        command += [f"--{name}={self._folder / folder}" for name, folder in options.items()]
        last = time.monotonic() + ANSWERS_S
        while not self.answers():
            if time.monotonic() > last:
                pytest.fail(f"dockerd does not start:\n{(self._folder / 'log').read_text()[-3_000:]}")
            if self._process is None or self._process.poll() is not None:
                (self._folder / "pid").unlink(missing_ok=True)
                with (self._folder / "log").open("ab") as log:
                    self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            time.sleep(0.2)

    def answers(self) -> bool:
        try:
            DockerRuntime(Daemon(call_s=5)).daemon.do("Docker", lambda client: client.ping())
        except SandboxError:
            return False
        return True

    def end(self, number: signal.Signals) -> None:
        """Send it a signal and wait for its end; the kernel ends its containerd with it."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(ANSWERS_S)
            self._process = None


@pytest.fixture
def own_daemon(monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnDaemon]:
    demand_docker()
    if os.getuid() != 0 or shutil.which("dockerd") is None:
        how = "a daemon of the test's own needs root and dockerd"
        if os.environ.get("CI"):
            pytest.fail(how)
        pytest.skip(how)
    folder = Path(tempfile.mkdtemp(prefix="fd", dir="/tmp"))  # a socket's path must be short
    daemon = OwnDaemon(folder)
    monkeypatch.setenv("DOCKER_HOST", daemon.host)
    try:
        daemon.start()
        maker = Daemon()
        maker.do("importing", tools_image.make)
        maker.close()
        yield daemon
    finally:
        daemon.end(signal.SIGTERM)
        # One that was killed has left what it mounted.
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted((each for each in mounts if each.startswith(f"{folder}/")), reverse=True):
            subprocess.run(["umount", "--lazy", mount], check=True)
        shutil.rmtree(folder)


class Box:
    """The least that a pool can lease: a container."""

    doubtful: str | None = None

    def __init__(self, container: Container) -> None:
        self.container = container

    async def check(self, for_s: float) -> None:
        ending = await self.container.ending()
        if ending.reason != "running":
            raise SandboxError(str(ending))

    async def close(self) -> None:
        await self.container.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_pool_goes_on_after_its_daemon_was_started_anew(own_daemon: OwnDaemon, number: signal.Signals) -> None:
    runtime = DockerRuntime(Daemon(call_s=20))

    async def start() -> Box:
        return Box(await runtime.start(shell("sleep 600", lifetime_s=600), run=RUN))

    async def run() -> None:
        pool = SandboxPool(start, size=1, policy=StartPolicy(attempts=10, first_wait_s=0.5))
        async with pool.lease("e1", 300) as box:
            first = box.container.name
        await asyncio.to_thread(own_daemon.end, number)
        with pytest.raises(DockerUnavailableError):
            await runtime.check()
        waiting = asyncio.create_task(lease(pool))
        await asyncio.sleep(1)
        await asyncio.to_thread(own_daemon.start)
        assert await waiting != first
        await pool.close()
        # Whatever the first one has become, a sweep of the run leaves nothing.
        await sweep_containers(runtime, Scope(run=RUN), 0.0)
        assert await runtime.labelled() == []

    async def lease(pool: SandboxPool[Box]) -> str:
        async with pool.lease("e2", 300) as box:
            return box.container.name

    asyncio.run(run())
    runtime.daemon.close()
