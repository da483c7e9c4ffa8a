"""Grading by AppWorld's own evaluator, the scores that follow, and actions that left the rules."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from flexmem.benchmarks.appworld.data import SPLITS, scenario_of, task_ids
from flexmem.benchmarks.appworld.errors import GradingError
from flexmem.benchmarks.appworld.flags import ADMIN, FILES, INTERNALS, REQUESTER, flags_of
from flexmem.benchmarks.appworld.grading import Grade, Grader, grade
from flexmem.benchmarks.appworld.grading_process import GradingProcess
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.appworld.scores import by_difficulty, by_split, percent, sgc, tgc

from .installed import demand_installation, demand_world, solved

CHECKED = pytest.mark.timeout(1_200)  # a world may have to be made first


@pytest.fixture(scope="module")
def installation() -> Installation:
    return demand_installation()


@pytest.fixture(scope="module")
def own_world(installation: Installation) -> Path:
    return demand_world(installation)


@pytest.fixture(scope="module")
def outputs_of_all(own_world: Path, installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """AppWorld's outputs folder, with an experiment for each program."""
    return solved(own_world, installation, tmp_path_factory.getbasetemp())[1]


@pytest.fixture
def mixed(own_world: Path, outputs_of_all: Path, tmp_path: Path) -> tuple[Path, str, list[str]]:
    """Outputs of which some are right: folder, experiment, tasks. The experiment has a name that AppWorld can't use."""
    ids = [task_id for split in SPLITS for task_id in task_ids(own_world, split)]
    for place, task_id in enumerate(ids):
        program = "right" if place % 5 and scenario_of(task_id) != scenario_of(ids[0]) else "near_miss"
        shutil.copytree(outputs_of_all / program / "tasks" / task_id, tmp_path / "no_memory" / "tasks" / task_id)
    return tmp_path, "no_memory", ids


def success(*, difficulty: int = 1, passed: bool = True) -> Grade:
    return Grade(passed, ("it is done",) if passed else (), (), 1, difficulty)


# ---------------------------------------------------------------- scores


def test_the_two_goals() -> None:
    successes = {"a_1": True, "a_2": True, "a_3": True, "b_1": True, "b_2": False, "b_3": True}
    assert tgc(successes) == pytest.approx(5 / 6)
    assert sgc(successes) == 0.5
    assert (percent(tgc(successes)), percent(sgc(successes))) == (83.3, 50.0)


def test_scores_of_parts() -> None:
    grades = {
        "a_1": success(),
        "a_2": success(passed=False),
        "b_1": success(difficulty=3),
        "b_2": success(difficulty=3),
    }
    easy, hard = by_difficulty(grades).items()
    assert (easy[0], easy[1].tgc, easy[1].sgc, easy[1].tasks, easy[1].scenarios) == (1, 0.5, 0.0, 2, 1)
    assert (hard[0], hard[1].tgc, hard[1].sgc) == (3, 1.0, 1.0)
    splits = by_split(grades, dict.fromkeys(("a_1", "a_2"), "train") | dict.fromkeys(("b_1", "b_2"), "dev"))
    assert {name: found.tgc for name, found in splits.items()} == {"dev": 1.0, "train": 0.5}


# ---------------------------------------------------------------- flags


@pytest.mark.parametrize(
    ("action", "flags"),
    [
        ("print(apis.spotify.login(username='a', password='b'))", ()),
        ("from datetime import datetime\nprint(datetime.now())", ()),
        ("text = 'I follow the admin of appworld'", ()),
        ("appworld_note = 1", ()),
        ("import appworld.apps.venmo.models as m", (INTERNALS,)),
        ("from appworld.collections.models import ModelCollection", (INTERNALS,)),
        ("import importlib\nimportlib.import_module('appworld.task')", (INTERNALS,)),
        ("__import__('appworld')", (INTERNALS,)),
        ("import sys\nsys.modules['appworld']", (INTERNALS,)),
        ("apis.admin.show_users()", (ADMIN,)),
        ("x = apis['admin']", (ADMIN,)),
        ("getattr(apis, 'admin')", (ADMIN,)),
        ("requester.request('admin', 'x')", (REQUESTER,)),
        ("apis._requester", (REQUESTER,)),
        ("open('data/tasks/82e2fac_1/ground_truth/answer.json').read()", (FILES,)),
        ("from appworld import AppWorld\napis.admin", (ADMIN, INTERNALS)),
    ],
)
def test_flags(action: str, flags: tuple[str, ...]) -> None:
    assert flags_of(action) == flags


@pytest.mark.parametrize("broken", ["\nif (", "\n)))", "\n'unclosed", "\nx = = 1"])
@pytest.mark.parametrize(
    ("action", "flags"),
    [
        ("print(apis.spotify.login())", ()),
        ("  import appworld.apps", (INTERNALS,)),
        ("from appworld.task import Task", (INTERNALS,)),
        ("__import__('appworld')", (INTERNALS,)),
        ("apis.admin.show_users()", (ADMIN,)),
        ('apis["admin"]', (ADMIN,)),
        ("requester.request()", (REQUESTER,)),
        ("ground_truth", (FILES,)),
    ],
)
def test_flags_of_what_is_no_python(action: str, broken: str, flags: tuple[str, ...]) -> None:
    assert flags_of(action + broken) == flags


def test_flags_of_odd_text() -> None:
    assert flags_of("") == ()
    assert flags_of("\0") == ()
    assert flags_of("(" * 10_000) == ()


# ---------------------------------------------------------------- AppWorld's grader


@pytest.mark.slow
@CHECKED
def test_scores_equal_appworlds(own_world: Path, mixed: tuple[Path, str, list[str]]) -> None:
    outputs, experiment, ids = mixed
    found = grade(own_world, experiment, ids, outputs)
    successes = {task_id: each.success for task_id, each in found.grades.items()}
    assert 0 < sgc(successes) < tgc(successes) < 1
    assert found.aggregate is not None
    assert found.aggregate.tgc == percent(tgc(successes))
    assert found.aggregate.sgc == percent(sgc(successes))
    table = {line.split("|")[0].strip(): line.split("|")[1:] for line in _rows(found.aggregate.report)}
    for difficulty, scores in by_difficulty(found.grades).items():
        told = [float(cell) for cell in table[f"difficulty_{difficulty}"]]
        assert told == [percent(scores.tgc), percent(scores.sgc)]


@pytest.mark.slow
@CHECKED
def test_failures_tell_what_was_wrong(own_world: Path, outputs_of_all: Path) -> None:
    found = grade(own_world, "near_miss", ["own1a2b_1"], outputs_of_all).grades["own1a2b_1"]
    assert not found.success
    assert found.difficulty == 3
    assert found.num_tests == len(found.passes) + len(found.failures) == 5
    (failure,) = found.failures
    assert failure.requirement == "assert that everyone has got what the note says, once."
    assert "43.25" in failure.trace


@pytest.mark.slow
@CHECKED
def test_broken_outputs_are_told_and_do_not_stop_others(own_world: Path, mixed: tuple[Path, str, list[str]]) -> None:
    outputs, experiment, ids = mixed
    damages: list[tuple[Callable[[Path], object], str]] = [
        (shutil.rmtree, "there are no outputs"),
        (lambda folder: shutil.rmtree(folder / "dbs"), "No such file"),
        (lambda folder: _append(folder, """["ATTACH DATABASE '/tmp/x.db' AS x", [], false]"""), "no change of rows"),
        (lambda folder: _append(folder, """["VACUUM INTO '/tmp/x.db'", [], false]"""), "no change of rows"),
        (lambda folder: _append(folder, """["INSERT INTO nowhere VALUES (1)", [], false]"""), "no such table"),
        (lambda folder: _append(folder, "not json"), "no change"),
        (lambda folder: _append(folder, "[]"), "no change"),
        (lambda folder: (folder / "dbs" / "gmail.db").touch(), "whole database"),
        (lambda folder: (folder / "dbs" / "gmail2.jsonl").symlink_to("/etc/passwd"), "a link"),
    ]
    for (damage, _), task_id in zip(damages, ids, strict=False):
        damage(outputs / experiment / "tasks" / task_id)
    found = grade(own_world, experiment, ids[: len(damages) + 2], outputs)
    assert list(found.ungraded) == ids[: len(damages)]
    for (_, told), message in zip(damages, found.ungraded.values(), strict=True):
        assert told in message
    assert set(found.grades) == set(ids[len(damages) : len(damages) + 2])
    assert found.aggregate is not None


@pytest.mark.slow
@CHECKED
def test_a_root_without_ground_truth(own_world: Path, outputs_of_all: Path, tmp_path: Path) -> None:
    hidden = shutil.ignore_patterns("ground_truth")
    shutil.copytree(own_world / "data", tmp_path / "data", ignore=hidden)
    found = grade(tmp_path, "right", ["own7a8b_1"], outputs_of_all)
    assert (found.grades, found.aggregate) == ({}, None)
    assert "ground_truth" in found.ungraded["own7a8b_1"]


@pytest.mark.slow
@CHECKED
def test_grading_leaves_data_and_outputs_as_they_are(own_world: Path, outputs_of_all: Path) -> None:
    def state() -> list[tuple[str, int]]:
        files = [*(own_world / "data").rglob("*"), *(outputs_of_all / "right").rglob("*")]
        return sorted((str(path), path.stat().st_mtime_ns) for path in files)

    before = state()
    grade(own_world, "right", ["own7a8b_1", "own8c9d_2"], outputs_of_all)
    assert state() == before


@pytest.mark.slow
@CHECKED
def test_episodes_are_graded_one_after_the_other(own_world: Path, outputs_of_all: Path) -> None:
    async def all_at_once() -> list[bool]:
        grader = Grader(own_world)
        folders = [(outputs_of_all / program / "tasks" / "own8c9d_1") for program in ("right", "near_miss", "right")]
        found = await asyncio.gather(*(grader.grade(folder, "own8c9d_1") for folder in folders))
        with pytest.raises(GradingError, match="no outputs"):
            await grader.grade(outputs_of_all / "nowhere", "own8c9d_1")
        found.append(await grader.grade(folders[0], "own8c9d_1"))
        await grader.close()
        await grader.close()
        return [each.success for each in found]

    assert asyncio.run(all_at_once()) == [True, False, True, True]


def test_a_cancelled_episode_keeps_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two answers must never be mixed up: who comes next waits for the one that nobody waits for any more."""
    begun, may_end, running = threading.Event(), threading.Event(), []

    def answer(self: Grader, folder: Path, task_id: str) -> Grade:
        running.append(task_id)
        if task_id == "a_1":
            begun.set()
            assert may_end.wait(60)
            running.append("a_1 is over")
        return success()

    monkeypatch.setattr(Grader, "_grade", answer)

    async def two() -> None:
        grader = Grader(tmp_path)
        first = asyncio.create_task(grader.grade(tmp_path, "a_1"))
        await asyncio.to_thread(begun.wait)
        first.cancel()
        second = asyncio.create_task(grader.grade(tmp_path, "a_2"))
        await asyncio.gather(first, return_exceptions=True)
        may_end.set()
        await second

    asyncio.run(two())
    assert running == ["a_1", "a_1 is over", "a_2"]


@pytest.mark.slow
@CHECKED
def test_a_grader_that_takes_too_long_is_replaced(own_world: Path, outputs_of_all: Path) -> None:
    async def late() -> bool:
        grader = Grader(own_world, deadline_s=0.001)
        with pytest.raises(GradingError, match=r"took more than 0\.001 s"):
            await grader.grade(outputs_of_all / "right" / "tasks" / "own8c9d_1", "own8c9d_1")
        grader._deadline_s = 120.0
        found = await grader.grade(outputs_of_all / "right" / "tasks" / "own8c9d_1", "own8c9d_1")
        await grader.close()
        return found.success

    assert asyncio.run(late())


def test_a_grader_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(GradingError, match="can't be started"):
        GradingProcess(tmp_path, Installation(tmp_path / "python", tmp_path))


def test_a_grader_that_ends_at_once(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(GradingError, match="no such module"):
        GradingProcess(tmp_path, Installation(python, tmp_path))


def _append(folder: Path, line: str) -> None:
    with (folder / "dbs" / "venmo.jsonl").open("a") as file:
        file.write(line + "\n")


def _rows(report: str) -> list[str]:
    return [line for line in report.splitlines() if "|" in line and "difficulty" in line]
