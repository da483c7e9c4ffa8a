"""AppWorld's environment server, in a container and as a child process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from flexmem.benchmarks.appworld.client import NoSuchTaskError
from flexmem.benchmarks.appworld.environment import AppWorldEnvironment, open_pool
from flexmem.benchmarks.appworld.image import ensure_image
from flexmem.benchmarks.appworld.settings import EnvironmentSettings
from flexmem.sandbox.errors import ImageMissingError, SandboxDeadlineError, SandboxError
from flexmem.sandbox.starting import StartPolicy

from .boxes import LONG_S, RUN, Boxes, boxes_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["docker", "process"])
def boxes(
    request: pytest.FixtureRequest, world_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Boxes]:
    """One environment at a time, either way."""
    if request.param == "docker":
        settings = EnvironmentSettings(servers=1, image=request.getfixturevalue("image"))
    else:
        settings = EnvironmentSettings(
            servers=1, isolation="process", python=request.getfixturevalue("appworld_python"), memory_mb=2_048
        )
    yield from boxes_of(settings, world_root, tmp_path_factory.mktemp("boxes"))


def test_a_task_is_started_acted_in_completed_and_saved(boxes: Boxes) -> None:
    async def run() -> Path:
        async with boxes.pool.lease("e", LONG_S) as server:
            environment = AppWorldEnvironment(server, experiment="own_test", outputs=boxes.outputs)
            start = await environment.start(boxes.tasks[0])
            specs = boxes.specs(0)
            assert (start.task_id, start.instruction) == (boxes.tasks[0], specs["instruction"])
            assert start.supervisor.email == specs["supervisor"]["email"]
            assert datetime.fromisoformat(start.datetime) == datetime.fromisoformat(specs["datetime"])
            assert {"supervisor", "api_docs", "spotify"} <= start.app_descriptions.keys()
            assert await environment.execute("secret = 41", LONG_S) == "Execution successful."
            assert await environment.execute("print(secret + 1)", LONG_S) == "42\n"  # one REPL
            profile = await environment.execute("print(apis.supervisor.show_profile())", LONG_S)
            assert json.loads(profile)["email"] == start.supervisor.email
            failed = await environment.execute("1 / 0", LONG_S)
            assert failed.startswith("Execution failed. Traceback:")
            assert "ZeroDivisionError" in failed
            assert not await environment.completed()
            await environment.execute("apis.supervisor.complete_task()", LONG_S)
            assert await environment.completed()
            return await environment.finish()

    folder = boxes.runner.run(run())
    assert folder == boxes.outputs / "own_test" / "tasks" / boxes.tasks[0]
    assert {path.name for path in folder.iterdir()} >= {"dbs", "logs", "version"}
    assert "secret = 41" in (folder / "logs" / "environment_io.md").read_text()
    assert any((folder / "dbs").iterdir())


def test_one_server_serves_one_task_after_the_other_and_none_sees_another(boxes: Boxes) -> None:
    async def run() -> None:
        started = boxes.pool.counts.started
        for task in range(3):
            async with boxes.episode(task=task) as environment:
                seen = await environment.execute("print('secret' in globals())\nsecret = 1", LONG_S)
                assert seen == "False\n"
                await environment.finish()
        assert boxes.pool.counts.started <= started + 1

    boxes.runner.run(run())


def test_a_task_that_is_not_there_is_told(boxes: Boxes) -> None:
    async def run() -> None:
        async with boxes.pool.lease("e", LONG_S) as server:
            await AppWorldEnvironment(server, experiment="x", outputs=boxes.outputs).start("nosuch1_1")

    with pytest.raises(NoSuchTaskError, match="nosuch1_1"):
        boxes.runner.run(run())
    boxes.runner.run(boxes.sound_episode())


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", ".."])
def test_names_that_are_paths_are_refused(boxes: Boxes, name: str) -> None:
    async def run() -> None:
        async with boxes.pool.lease("e", LONG_S) as server:
            with pytest.raises(ValueError, match="name"):
                AppWorldEnvironment(server, experiment=name, outputs=boxes.outputs)
            with pytest.raises(ValueError, match="names no task"):
                await AppWorldEnvironment(server, experiment="x", outputs=boxes.outputs).start(name)

    boxes.runner.run(run())


def test_an_execution_past_its_deadline_ends_server_and_episode(boxes: Boxes) -> None:
    code = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"

    async def run() -> None:
        async with boxes.episode() as environment:
            await environment.execute(code, 2)

    with pytest.raises(SandboxDeadlineError):
        boxes.runner.run(run())
    boxes.runner.run(boxes.sound_episode())


def test_of_appworlds_own_limit_the_agent_is_told_and_goes_on(boxes: Boxes, tmp_path: Path) -> None:
    settings = boxes.settings.model_copy(update={"execute_s": 1})

    async def run() -> None:
        async with (
            open_pool(settings, root=boxes.root, cache=tmp_path, run=RUN) as pool,
            pool.lease("e", LONG_S) as server,
        ):
            environment = AppWorldEnvironment(server, experiment="x", outputs=boxes.outputs)
            await environment.start(boxes.tasks[0])
            assert "timed out after 1 seconds" in await environment.execute("while True: pass", LONG_S)
            assert await environment.execute("print(1)", LONG_S) == "1\n"
            await environment.finish()

    boxes.runner.run(run())


def test_a_server_that_can_not_start_says_why(boxes: Boxes, tmp_path: Path) -> None:
    empty = tmp_path / "root" / "data"
    (empty / "tasks" / "t_1").mkdir(parents=True)
    (empty / "tasks" / "t_1" / "specs.json").write_text("{}")

    once = StartPolicy(attempts=1)

    async def run() -> None:
        pool = open_pool(boxes.settings, root=empty.parent, cache=tmp_path / "cache", run=RUN, policy=once)
        try:
            async with pool.lease("e", LONG_S):
                pass
        finally:
            await pool.close()

    with pytest.raises(SandboxError, match=r"ended while it started[\s\S]*Error"):
        boxes.runner.run(run())


def test_a_child_process_ends_when_it_is_asked_to_and_leaves_no_folder(
    world_root: Path, appworld_python: Path, tmp_path: Path
) -> None:
    settings = EnvironmentSettings(servers=1, isolation="process", python=appworld_python, memory_mb=2_048)

    async def run() -> Path:
        async with (
            open_pool(settings, root=world_root, cache=tmp_path, run=RUN) as pool,
            pool.lease("e", LONG_S) as server,
        ):
            os.kill(int(server.sandbox.name.split()[-1]), signal.SIGTERM)
            await asyncio.wait_for(server.sandbox.wait(), LONG_S)
            assert server.scratch.path.exists()
            return server.scratch.path

    assert not asyncio.run(run()).exists()


def test_an_image_of_another_recipe_is_built_again_only_where_it_may_be(image: str) -> None:
    with pytest.raises(ImageMissingError, match="another recipe"):
        asyncio.run(ensure_image(image, base="flexmem/another-base", policy="never"))
    with pytest.raises(ImageMissingError, match="is not on this machine"):
        asyncio.run(ensure_image("flexmem/no-such-image", policy="never"))
