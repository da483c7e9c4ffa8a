"""Whether the owner of a sandbox still lives."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from flexmem.sandbox.errors import SandboxError
from flexmem.sandbox.labels import Mark, run_name
from flexmem.sandbox.owner import Process, fate, identify, this_process


def test_a_living_process_is_alive_and_an_ended_one_dead() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        identity = identify(sleeper.pid)
        assert fate(identity, same_node=True) == "alive"
        sleeper.kill()
        # Nobody has waited for it yet: a zombie does nothing any more.
        while "Z" not in Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2]:
            time.sleep(0.01)
        assert fate(identity, same_node=True) == "dead"
    assert fate(identity, same_node=True) == "dead"
    with pytest.raises(SandboxError, match=f"/proc/{sleeper.pid}/stat"):
        identify(sleeper.pid)


def test_a_pid_that_was_given_out_again_is_another_process() -> None:
    me = this_process()
    assert fate(me, same_node=True) == "alive"
    assert fate(replace(me, started=me.started + 1), same_node=True) == "dead"


def test_what_can_not_be_seen_from_here_is_not_called_dead() -> None:
    me = this_process()
    assert fate(replace(me, namespace="1"), same_node=True) == "unknown"
    assert fate(replace(me, boot="0"), same_node=False) == "unknown"
    assert fate(replace(me, boot="0"), same_node=True) == "dead"  # this machine has been started anew since


def test_a_mark_survives_labels(tmp_path: Path) -> None:
    mark = Mark.of_this_process(run_name(tmp_path), 1_700_000_000.0, "e1")
    assert mark.owner.pid == os.getpid()
    assert Mark.parse(mark.labels()) == mark
    assert all(isinstance(value, str) for value in mark.labels().values())


@pytest.mark.parametrize(
    "change", [{"flexmem.owner": "1.2.3"}, {"flexmem.owner": "a.b.c.d.e"}, {"flexmem.deadline": "?"}]
)
def test_labels_that_are_no_mark_are_refused(change: dict[str, str]) -> None:
    labels = Mark.of_this_process("r", 1.0).labels()
    with pytest.raises(ValueError):  # noqa: PT011 - whatever is wrong with it
        Mark.parse({**labels, **change})
    del labels["flexmem.run"]
    with pytest.raises(ValueError, match=r"flexmem\.run"):
        Mark.parse(labels)


def test_a_process_is_written_and_read() -> None:
    process = Process(0, 1, 2, "3", "4")
    assert Process.parse(str(process)) == process
