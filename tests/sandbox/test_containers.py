"""Real containers: their limits hold, their ends are told, and nothing is left of them."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from flexmem.sandbox.container import Container
from flexmem.sandbox.daemon import Daemon
from flexmem.sandbox.ending import Ending
from flexmem.sandbox.errors import DockerUnavailableError, ImageMissingError
from flexmem.sandbox.labels import Mark
from flexmem.sandbox.owner import this_process
from flexmem.sandbox.runtime import DockerRuntime
from flexmem.sandbox.spec import Bind, ContainerSpec, Tmpfs

from .conftest import RUN, own, shell


def ended(runtime: DockerRuntime, spec: ContainerSpec) -> Ending:
    """How a container ends that is left to itself."""

    async def run() -> Ending:
        container = await runtime.start(spec, run=RUN)
        await container.wait()
        ending = await container.ending()
        await container.kill()
        return ending

    return asyncio.run(run())


def while_it_runs(runtime: DockerRuntime, spec: ContainerSpec, body: Callable[[Container], Awaitable[None]]) -> None:
    async def run() -> None:
        container = await runtime.start(spec, run=RUN, episode="e1")
        try:
            await body(container)
        finally:
            await container.kill()

    asyncio.run(run())


@pytest.mark.slow
def test_a_container_carries_its_mark_while_it_runs_and_is_gone_when_it_is_killed(runtime: DockerRuntime) -> None:
    async def body(container: Container) -> None:
        assert (await container.ending()).reason == "running"
        (found,) = [each for each in await runtime.labelled() if each.name == container.name]
        mark = Mark.parse(found.labels)
        assert (mark.run, mark.episode, mark.owner) == (RUN, "e1", this_process())
        assert 0 < mark.deadline - time.time() <= 120
        await container.kill()
        assert await own(runtime) == []

    while_it_runs(runtime, shell("sleep 600"), body)


@pytest.mark.slow
def test_how_a_container_ended_is_told_although_it_is_gone(runtime: DockerRuntime) -> None:
    ending = ended(runtime, shell("echo first; echo last >&2; exit 7"))
    assert (ending.reason, ending.code) == ("exit", 7)
    assert sorted(ending.log.split()) == ["first", "last"]


@pytest.mark.slow
def test_a_container_ends_by_itself_when_its_lifetime_is_over(runtime: DockerRuntime) -> None:
    ending = ended(runtime, shell("sleep 600", lifetime_s=1))
    assert (ending.reason, ending.code) == ("lifetime", 124)
    assert asyncio.run(own(runtime)) == []


@pytest.mark.slow
def test_a_lifetime_ends_what_does_not_want_to_end(runtime: DockerRuntime) -> None:
    assert ended(runtime, shell("trap '' TERM; while :; do sleep 1; done", lifetime_s=1)).reason == "lifetime"


@pytest.mark.slow
def test_a_kill_from_outside_is_told_from_one_from_inside(runtime: DockerRuntime) -> None:
    async def body(container: Container) -> None:
        await runtime.daemon.call("docker kill", lambda client: client.api.kill(container.identity))
        await container.wait()
        assert (await container.ending()).reason == "killed"

    while_it_runs(runtime, shell("sleep 600"), body)
    inside = ended(runtime, shell("kill -9 $$"))
    assert (inside.reason, inside.code) == ("exit", 137)


@pytest.mark.slow
def test_memory_is_bounded(runtime: DockerRuntime) -> None:
    assert ended(runtime, shell("tail /dev/zero", memory_mb=64)).reason == "memory"


@pytest.mark.slow
def test_processes_are_bounded(runtime: DockerRuntime) -> None:
    ending = ended(runtime, shell("i=0; while [ $i -lt 100 ]; do sleep 60 & i=$((i+1)); done; echo all", pids=20))
    assert "all" not in ending.log.split()
    assert "fork" in ending.log.lower()


@pytest.mark.slow
def test_nothing_can_be_written_but_what_may_be_and_that_is_bounded(runtime: DockerRuntime, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    script = """
        touch /x 2>/dev/null && echo root; touch /seen/x 2>/dev/null && echo bind
        dd if=/dev/zero of=/tmp/x bs=1M count=64 2>/dev/null && echo tmpfs
        touch /open/x && echo open
        ls -l /tmp
    """
    binds = (Bind(tmp_path, "/seen"), Bind(tmp_path, "/open", writable=True))
    ending = ended(runtime, shell(script, binds=binds, tmpfs=(Tmpfs("/tmp", 8),)))
    assert [word for word in ending.log.split() if word in ("root", "bind", "tmpfs", "open")] == ["open"]
    assert f"{8 << 20}" in ending.log


@pytest.mark.slow
def test_there_is_no_network_no_capability_and_no_root(runtime: DockerRuntime) -> None:
    log = ended(runtime, shell("id -u; ls /sys/class/net; cat /proc/self/status | tail -n 24")).log
    assert log.split()[:2] == ["10001", "lo"]
    wanted = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}
    capabilities = dict(line.split(":\t") for line in log.splitlines() if line.split(":")[0] in wanted)
    assert capabilities == dict.fromkeys(capabilities, "0" * 16)
    assert len(capabilities) == 5
    assert "NoNewPrivs:\t1" in log


@pytest.mark.slow
def test_a_flood_of_output_takes_neither_memory_nor_disk(runtime: DockerRuntime) -> None:
    async def body(container: Container) -> None:
        path = (await runtime.daemon.call("inspect", lambda client: client.api.inspect_container(container.identity)))[
            "LogPath"
        ]
        await asyncio.sleep(2)
        assert Path(path).stat().st_size < 4 << 20  # noqa: ASYNC240
        assert len((await container.ending()).log) <= 8_192

    while_it_runs(runtime, shell("yes"), body)


@pytest.mark.slow
def test_a_start_that_is_cancelled_leaves_nothing(runtime: DockerRuntime) -> None:
    async def run() -> None:
        for wait_s in (0.0, 0.01, 0.05, 0.2):
            task = asyncio.create_task(runtime.start(shell("sleep 600"), run=RUN))
            await asyncio.sleep(wait_s)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await own(runtime) == []

    asyncio.run(run())


@pytest.mark.slow
def test_an_image_that_is_not_there_is_told(runtime: DockerRuntime) -> None:
    with pytest.raises(ImageMissingError, match="flexmem/no-such-image"):
        asyncio.run(runtime.start(shell("true", "flexmem/no-such-image"), run=RUN))
    assert asyncio.run(runtime.image_labels("flexmem/no-such-image")) is None


def test_a_daemon_that_is_not_there_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    runtime = pickle.loads(pickle.dumps(DockerRuntime(Daemon(call_s=3))))
    assert runtime.daemon.call_s == 3
    with pytest.raises(DockerUnavailableError, match=r"start-docker\.sh"):
        asyncio.run(runtime.check())
    with pytest.raises(DockerUnavailableError):
        asyncio.run(runtime.start(shell("true"), run=RUN))


@pytest.mark.parametrize("amount", [{"lifetime_s": 0}, {"memory_mb": 0}, {"pids": 0}, {"cpus": 0.0}, {"swap_mb": -1}])
def test_an_amount_that_docker_takes_for_no_limit_is_refused(amount: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(amount))):
        shell("true", **amount)
