"""Child processes in place of containers, and sweeping what their owners left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flexmem.sandbox import scratch as scratch_module
from flexmem.sandbox.child import ChildProcess, ChildSpec
from flexmem.sandbox.ending import Ending
from flexmem.sandbox.errors import SandboxError
from flexmem.sandbox.labels import Mark
from flexmem.sandbox.owner import fate, identify
from flexmem.sandbox.scratch import Scratch, left_folders
from flexmem.sandbox.sweep import Scope, sweep

PATHS = {"PATH": os.environ["PATH"]}

OWNER = """
import asyncio, os, sys, time
from flexmem.sandbox.child import ChildProcess, ChildSpec
from flexmem.sandbox.labels import Mark
from flexmem.sandbox.scratch import Scratch

async def main():
    scratch = Scratch.make(Mark.of_this_process(sys.argv[1], time.time() + float(sys.argv[2])))
    spec = ChildSpec(("sleep", "600"), 600, {"PATH": os.environ["PATH"]})
    child = await ChildProcess.start(spec, scratch)
    print(child.name.split()[-1], scratch.path, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees another one's folders."""
    monkeypatch.setattr(scratch_module.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.fixture
def start_owner() -> Iterator[Callable[..., tuple[subprocess.Popen[str], int, Path]]]:
    """Start another process that owns a child; gives it, the child's pid and the folder."""
    owners = []

    def start(run: str = "r", deadline_s: float = 600) -> tuple[subprocess.Popen[str], int, Path]:
        command = [sys.executable, "-c", OWNER, run, str(deadline_s)]
        owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        owners.append(owner)
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        return owner, int(pid), Path(folder)

    yield start
    for owner in owners:
        owner.kill()
        owner.communicate()


def started(spec: ChildSpec, after: float = 0.0) -> tuple[Ending, bool]:
    """How a child ended of which nobody took care, and whether its leader is gone after it was killed."""

    async def run() -> tuple[Ending, bool]:
        scratch = Scratch.make(Mark.of_this_process("r", time.time() + 60))
        child = await ChildProcess.start(spec, scratch)
        identity = identify(int(child.name.split()[-1]))
        if after:
            await child.wait()
        ending = await child.ending()
        await child.kill()
        await child.kill()
        scratch.remove()
        return ending, fate(identity, same_node=True) == "dead"

    return asyncio.run(run())


def test_a_child_that_runs_is_killed_with_all_that_it_started() -> None:
    async def run() -> int:
        scratch = Scratch.make(Mark.of_this_process("r", time.time() + 60))
        child = await ChildProcess.start(ChildSpec(("sh", "-c", "sleep 600 & echo $! > pid; wait"), 60, PATHS), scratch)
        while not (scratch.path / "pid").exists() or not (scratch.path / "pid").read_text().strip():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        grandchild = int((scratch.path / "pid").read_text())
        identity = identify(grandchild)
        assert (await child.ending()).reason == "running"
        await child.kill()
        scratch.remove()
        while fate(identity, same_node=True) == "alive":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return grandchild

    assert asyncio.run(run()) > 1


def test_how_a_child_ended_is_told_with_what_it_said() -> None:
    ending, gone = started(ChildSpec(("sh", "-c", "echo out; echo err >&2; exit 7"), 60, PATHS), after=1)
    assert gone
    assert (ending.reason, ending.code, ending.log) == ("exit", 7, "out\nerr")


def test_a_child_ends_when_its_lifetime_is_over() -> None:
    ending, gone = started(ChildSpec(("sleep", "600"), 1, PATHS), after=1)
    assert gone
    assert (ending.reason, ending.code) == ("lifetime", 124)


def test_a_child_can_not_take_more_memory_than_it_may() -> None:
    code = "import sys\ntry:\n    x = bytearray(400 << 20)\nexcept MemoryError:\n    sys.exit(9)"
    ending, _ = started(ChildSpec((sys.executable, "-c", code), 60, PATHS, memory_mb=300), after=1)
    assert ending.code == 9


def test_a_child_whose_owner_was_killed_is_swept(
    start_owner: Callable[..., tuple[subprocess.Popen[str], int, Path]],
) -> None:
    owner, pid, folder = start_owner()
    child = identify(pid)
    assert asyncio.run(sweep(None)) == []  # its owner lives
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert fate(child, same_node=True) == "alive"
    swept = asyncio.run(sweep(None))
    assert [(entry.kind, entry.name, entry.error) for entry in swept] == [
        ("process", str(pid), None),
        ("folder", str(folder), None),
    ]
    assert swept[0].why == f"its owner, process {owner.pid}, is dead"
    assert fate(child, same_node=True) == "dead"
    assert not folder.exists()
    assert asyncio.run(sweep(None)) == []


def test_a_living_owners_child_goes_by_deadline_by_run_and_with_all(
    start_owner: Callable[..., tuple[subprocess.Popen[str], int, Path]],
) -> None:
    _, one, _ = start_owner("run/1")
    _, two, _ = start_owner("run/2")
    _, late, _ = start_owner("run/3", -1.0)

    def pids(scope: Scope) -> list[str]:
        return [entry.name for entry in asyncio.run(sweep(None, scope)) if entry.kind == "process"]

    assert pids(Scope(run="run/1")) == [str(one)]
    assert pids(Scope()) == [str(late)]
    assert pids(Scope(everything=True)) == [str(two)]


def test_another_users_mark_is_let_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = Mark.of_this_process("r", 0.0)
    assert Scope().reason(mark, 1.0) == "its deadline has passed"
    monkeypatch.setattr("os.getuid", lambda: mark.owner.uid + 1)
    assert Scope(everything=True).reason(mark, 1.0) is None


def test_a_folder_without_a_mark_is_let_alone_while_it_may_be_in_the_making() -> None:
    made = Scratch.make(Mark.of_this_process("r", time.time() + 60))
    (made.path / "owner.json").write_text("{")
    assert [left.mark for left in left_folders()] == [None]
    assert asyncio.run(sweep(None)) == []
    assert [entry.why for entry in asyncio.run(sweep(None, clock=lambda: time.time() + 3_600))] == [
        "nobody is known to own it"
    ]
    assert not made.path.exists()


def test_a_folder_for_temporary_files_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / f"flexmem-{os.getuid()}").write_text("a file")
    with pytest.raises(SandboxError, match="TMPDIR"):
        Scratch.make(Mark.of_this_process("r", 1.0))
