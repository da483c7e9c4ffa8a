"""Containers whose owner is gone are removed, and only those."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from flexmem.cli.cleanup import cleanup
from flexmem.sandbox.labels import Mark
from flexmem.sandbox.runtime import DockerRuntime
from flexmem.sandbox.sweep import Scope, Swept, sweep

from .conftest import RUN, shell

OWNER = """
import asyncio, sys
from flexmem.sandbox.labels import Mark
from flexmem.sandbox.runtime import DockerRuntime
from flexmem.sandbox.spec import ContainerSpec

async def main():
    spec = ContainerSpec(sys.argv[2], ("sleep", "600"), lifetime_s=float(sys.argv[3]))
    print((await DockerRuntime().start(spec, run=sys.argv[1])).name, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders and child processes of other runs are not to be touched."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def start_owner(tools: str) -> Iterator[Callable[[str], tuple[subprocess.Popen[str], str]]]:
    """Start another process that owns a container of a run; gives both."""
    owners = []

    def start(run: str) -> tuple[subprocess.Popen[str], str]:
        owner = subprocess.Popen([sys.executable, "-c", OWNER, run, tools, "600"], stdout=subprocess.PIPE, text=True)
        owners.append(owner)
        assert owner.stdout is not None
        return owner, owner.stdout.readline().strip()

    yield start
    for owner in owners:
        owner.kill()
        owner.communicate()


def command(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(cleanup)
    result = CliRunner().invoke(app, [*arguments])
    return result.exit_code, result.stdout


async def swept_of(runtime: DockerRuntime, *names: str, **options: Any) -> list[Swept]:
    """What a sweep says of these containers; what else lies on this machine is not the test's."""
    return [entry for entry in await sweep(runtime, **options) if entry.name in names]


def there(runtime: DockerRuntime, *names: str) -> list[str]:
    """Which of these containers are still there."""
    labelled = {each.name for each in asyncio.run(runtime.labelled())}
    return [name for name in names if name in labelled]


@pytest.mark.slow
def test_a_container_whose_owner_was_killed_is_swept_and_others_stay(
    runtime: DockerRuntime, start_owner: Callable[[str], tuple[subprocess.Popen[str], str]]
) -> None:
    owner, orphan = start_owner(RUN)
    _, living = start_owner(RUN)
    foreign = runtime.daemon.do("run", lambda client: client.containers.create("flexmem/test-tools", ["sleep", "600"]))
    try:
        assert asyncio.run(swept_of(runtime, orphan, living)) == []
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert there(runtime, orphan, living) == [orphan, living]
        (swept,) = asyncio.run(swept_of(runtime, orphan, living))
        assert (swept.kind, swept.name, swept.run, swept.error) == ("container", orphan, RUN, None)
        assert swept.why == f"its owner, process {owner.pid}, is dead"
        assert there(runtime, orphan, living) == [living]
        (swept,) = asyncio.run(swept_of(runtime, orphan, living, scope=Scope(run=RUN)))
        assert (swept.name, swept.why) == (living, "its run was asked for")
        foreign.reload()
    finally:
        foreign.remove(force=True)


@pytest.mark.slow
def test_a_container_past_its_deadline_is_swept(runtime: DockerRuntime) -> None:
    async def run() -> None:
        container = await runtime.start(shell("sleep 600", lifetime_s=600), run=RUN)
        assert await swept_of(runtime, container.name) == []
        container_mark = next(each for each in await runtime.labelled() if each.name == container.name)
        mark = Mark.parse(container_mark.labels)
        assert Scope().reason(mark, container.expires - 1) is None
        assert Scope().reason(mark, container.expires + 1) == "its deadline has passed"
        await container.kill()

    asyncio.run(run())


@pytest.mark.slow
def test_the_command_removes_one_run(
    tmp_path: Path, runtime: DockerRuntime, start_owner: Callable[[str], tuple[subprocess.Popen[str], str]]
) -> None:
    _, one = start_owner(str(tmp_path.resolve() / "one"))
    _, two = start_owner(str(tmp_path.resolve() / "two"))
    code, told = command("--run", str(tmp_path / "one"), "--json")
    assert code == 0
    assert [entry["name"] for entry in json.loads(told)["removed"]] == [one]
    assert there(runtime, one, two) == [two]
    code, told = command("--run", str(tmp_path / "two"))
    assert code == 0
    assert two in told
    assert there(runtime, one, two) == []
    assert command("--run", str(tmp_path / "two")) == (0, "nothing was left\n")


def test_without_docker_the_command_says_so_and_cleans_the_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    code, told = command("--json")
    assert code == 0
    assert json.loads(told)["removed"] == []
    assert "no Docker daemon answers" in json.loads(told)["docker"]


def test_the_command_ends_with_1_where_something_is_still_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from flexmem.sandbox import sweep as module

    async def stuck(*_: object) -> list[module.Swept]:
        return [module.Swept("container", "c1", "r", "its owner is dead", "the daemon refused")]

    monkeypatch.setattr(module, "sweep", stuck)
    code, told = command()
    assert code == 1
    assert "the daemon refused" in told


def test_one_run_and_all_exclude_each_other() -> None:
    assert command("--run", "x", "--all")[0] == 2
