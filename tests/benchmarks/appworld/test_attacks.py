"""What an agent's code may try: each is contained, ends in its class of failure, and the pool goes on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from flexmem.benchmarks.appworld.client import KEEP_BYTES
from flexmem.benchmarks.appworld.settings import EnvironmentSettings
from flexmem.sandbox.errors import (
    EpisodeEndedError,
    SandboxBrokenError,
    SandboxDeadlineError,
    SandboxError,
    SandboxMemoryError,
)

from .boxes import LONG_S, Boxes, boxes_of

pytestmark = pytest.mark.slow

# AppWorld refuses imports and takes functions of `os` away; code that means harm gets around both.
POSIX = "posix = __import__('posix')\n"


@pytest.fixture(scope="module")
def boxes(image: str, world_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boxes]:
    """One container at a time."""
    settings = EnvironmentSettings(servers=1, image=image)
    yield from boxes_of(settings, world_root, tmp_path_factory.mktemp("boxes"))


def attack(boxes: Boxes, code: str, deadline_s: float = LONG_S) -> str:
    """Run code in an episode of its own and finish it; gives what it printed."""

    async def run() -> str:
        async with boxes.episode() as environment:
            printed = await environment.execute(code, deadline_s)
            await environment.finish()
        return printed

    return boxes.runner.run(run())


def goes_on(boxes: Boxes) -> None:
    """The next episode is sound, and no container has been left."""
    boxes.runner.run(boxes.sound_episode())
    assert len(boxes.runner.run(boxes.containers())) == 1


def test_there_is_no_ground_truth_to_be_read(boxes: Boxes) -> None:
    code = f"""{POSIX}
seen, open_folders = [], [""]
while open_folders:
    folder = open_folders.pop()
    try:
        names = posix.listdir(folder or "/")
    except OSError:
        continue
    paths = [folder + "/" + name for name in names if name not in ("proc", "sys")]
    seen += paths
    open_folders += [path for path in paths if posix.lstat(path).st_mode >> 12 == 4]
print(len(seen))
print(str([path for path in seen if "ground_truth" in path and not path.startswith("/opt/appworld/lib/")]))
print(str([path for path in seen if path.endswith(("evaluation.py", "solution.py", "answer.json"))]))
print(any(path.endswith("/specs.json") for path in seen))
"""
    counted, *rest = attack(boxes, code).splitlines()
    assert int(counted) > 1_000
    assert rest == ["[]", "[]", "True"]
    goes_on(boxes)


def test_there_is_no_network(boxes: Boxes) -> None:
    code = """
socket = __import__("socket")
for address in (("1.1.1.1", 53), ("127.0.0.1", 22)):
    try:
        socket.create_connection(address, 5)
        print("connected")
    except OSError as error:
        print(type(error).__name__)
print(str(socket.if_nameindex()))
"""
    printed = attack(boxes, code)
    assert "connected" not in printed
    assert printed.splitlines()[-1] == "[(1, 'lo')]"
    goes_on(boxes)


FILL = (
    POSIX
    + """
def fill(folder):
    written = 0
    try:
        file = posix.open(folder + "/big", posix.O_CREAT | posix.O_WRONLY)
        while True:
            written += posix.write(file, b"x" * (1 << 20))
    except OSError as error:
        return written >> 20, error.errno
"""
)


def test_a_full_folder_for_temporary_files_hurts_nobody(boxes: Boxes) -> None:
    folders = ("/tmp", "/", "/appworld", "/appworld/data", "/run/flexmem")
    code = f"{FILL}\nfor folder in {folders}:\n    print(str(fill(folder)))"
    tmp, *others = attack(boxes, code).splitlines()
    assert tmp in ("(31, 28)", "(32, 28)")  # MiB, no space left
    assert all(other in ("None", "(0, 13)", "(0, 30)") for other in others)  # not permitted, or read-only
    assert len(others) == 4
    goes_on(boxes)


def test_a_full_folder_for_outputs_ends_the_episode(boxes: Boxes) -> None:
    before = os.statvfs("/").f_bavail * os.statvfs("/").f_frsize
    with pytest.raises(SandboxBrokenError) as raised:
        attack(boxes, f"{FILL}\nprint(str(fill('/appworld/experiments')))")
    assert raised.value.failure == "agent"
    assert before - os.statvfs("/").f_bavail * os.statvfs("/").f_frsize < 100 << 20
    goes_on(boxes)


def test_memory_without_end_is_a_limit(boxes: Boxes) -> None:
    with pytest.raises(SandboxMemoryError) as raised:
        attack(boxes, "kept = []\nwhile True:\n    kept.append(b'x' * (32 << 20))")
    assert raised.value.failure == "limit"
    goes_on(boxes)


def test_forks_without_end_are_bounded_and_end_at_the_deadline(boxes: Boxes) -> None:
    code = f"{POSIX}\nwhile True:\n    try:\n        posix.fork()\n    except BaseException:\n        pass"
    with pytest.raises(EpisodeEndedError) as raised:
        attack(boxes, code, deadline_s=5)
    assert raised.value.failure in ("limit", "agent")  # a child may have spoilt the connection by then
    goes_on(boxes)


def test_a_process_that_stays_behind_is_not_met_by_the_next_episode(boxes: Boxes) -> None:
    code = (
        POSIX
        + """
if posix.fork() == 0:
    posix.setsid()
    while True:
        try:
            __import__("select").select([], [], [], 60)
        except BaseException:
            pass
print("forked")
"""
    )
    ended = boxes.pool.counts.ended
    assert attack(boxes, code) == "forked\n"
    assert boxes.pool.counts.ended == ended + 1
    goes_on(boxes)


def test_an_endless_loop_that_swallows_everything_ends_at_the_deadline(boxes: Boxes) -> None:
    code = "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass"
    with pytest.raises(SandboxDeadlineError) as raised:
        attack(boxes, code, deadline_s=3)
    assert raised.value.failure == "limit"
    goes_on(boxes)


def test_an_episode_that_takes_too_long_in_all_ends(boxes: Boxes) -> None:
    async def run() -> None:
        async with boxes.episode(deadline_s=5) as environment:
            while True:
                await environment.execute("pass", LONG_S)

    with pytest.raises(SandboxDeadlineError, match="episode e"):
        boxes.runner.run(run())
    goes_on(boxes)


def test_twenty_megabytes_of_print_are_cut_and_the_episode_goes_on(boxes: Boxes) -> None:
    printed = attack(boxes, "print('x' * 20_000_000)")
    assert len(printed) < KEEP_BYTES + 100
    assert "bytes left out" in printed
    goes_on(boxes)


@pytest.mark.parametrize(
    "blow",
    [
        "posix.kill(posix.getpid(), 9)",
        "posix._exit(0)",
        "posix.kill(posix.getppid(), 9)",
        "posix.kill(posix.getppid(), 15)",
        "posix.kill(-1, 9)",
        "posix.closerange(3, 100)",
        "[posix.write(int(file), b'x' * 100) for file in posix.listdir('/proc/self/fd')"
        " if __import__('os').path.exists(f'/proc/self/fd/{file}')"
        " and posix.readlink(f'/proc/self/fd/{file}').startswith('socket')]",
    ],
)
def test_code_that_ends_or_spoils_its_server_has_failed(boxes: Boxes, blow: str) -> None:
    with pytest.raises(SandboxBrokenError) as raised:
        # A killed container goes on for a moment, in which the episode must not be over.
        attack(boxes, f"{POSIX}\n{blow}\n__import__('select').select([], [], [], 60)")
    assert raised.value.failure == "agent"
    goes_on(boxes)


def test_the_warm_server_can_not_be_reached_in_memory(boxes: Boxes) -> None:
    code = f"""{POSIX}
try:
    print(posix.open(f"/proc/{{posix.getppid()}}/mem", posix.O_RDWR))
except PermissionError:
    print("refused")
"""
    assert attack(boxes, code) == "refused\n"
    goes_on(boxes)


def test_what_code_alters_in_appworld_is_gone_with_its_episode(boxes: Boxes) -> None:
    code = """
import appworld
from appworld.environment import AppWorld
AppWorld.task_completed = lambda self: True
AppWorld.execute = lambda self, code: "owned"
__import__("signal").signal(14, __import__("signal").SIG_IGN)
"""

    async def run() -> str:
        async with boxes.episode() as environment:
            await environment.execute(code, LONG_S)
            return await environment.execute("print(1)", LONG_S)

    ended = boxes.pool.counts.ended
    assert boxes.runner.run(run()) == "owned"
    assert boxes.pool.counts.ended == ended  # the same server, which was never touched
    goes_on(boxes)


def test_a_task_that_is_completed_twice_is_completed_once(boxes: Boxes) -> None:
    async def run() -> tuple[str, str]:
        async with boxes.episode() as environment:
            first = await environment.execute("print(apis.supervisor.complete_task())", LONG_S)
            again = await environment.execute("print(apis.supervisor.complete_task(answer='other'))", LONG_S)
            assert await environment.completed()
            await environment.finish()
        return first, again

    first, again = boxes.runner.run(run())
    assert "Execution failed" not in first
    assert again != ""
    goes_on(boxes)


def test_a_container_that_somebody_kills_is_the_machines_failure(boxes: Boxes) -> None:
    async def run() -> None:
        async with boxes.episode() as environment:
            asking = asyncio.create_task(environment.execute("while True: pass", LONG_S))
            await asyncio.sleep(0.5)
            (found,) = await boxes.containers()
            await boxes.runtime.daemon.call("docker kill", lambda client: client.api.kill(found))
            await asking

    with pytest.raises(SandboxError, match="ended from outside") as raised:
        boxes.runner.run(run())
    assert raised.value.failure == "infrastructure"
    goes_on(boxes)


def test_a_warm_container_that_somebody_kills_is_replaced_before_it_is_leased(boxes: Boxes) -> None:
    async def run() -> None:
        await boxes.sound_episode()
        (found,) = await boxes.containers()
        await boxes.runtime.daemon.call("docker kill", lambda client: client.api.kill(found))

    boxes.runner.run(run())
    goes_on(boxes)
