"""The own world: what it is made of, and that each of its tasks tells right from wrong."""

from __future__ import annotations

import ast
import importlib.util
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flexmem.benchmarks.appworld import world
from flexmem.benchmarks.appworld.data import SPLITS, digest, scenario_of, task_ids
from flexmem.benchmarks.appworld.errors import InsideError
from flexmem.benchmarks.appworld.grading import Grading, grade
from flexmem.benchmarks.appworld.inside_process import run_inside
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.appworld.places import INSIDE
from flexmem.benchmarks.appworld.world import generator_digest, is_made, make_world, own_root
from flexmem.benchmarks.appworld.world_lengths import world_lengths
from flexmem.benchmarks.protocol import DataError

from .installed import PROGRAMS, ask_inside, demand_installation, demand_world, solved

GOOD = """
import re
def read(label, text, pattern):
    return re.search(pattern, text).group(1)
def solution(apis, requester):
    profile = apis.supervisor.show_profile()
    passwords = {row["account_name"]: row["password"] for row in apis.supervisor.show_account_passwords()}
    gmail_token = apis.gmail.login(username=profile["email"], password=passwords["gmail"])["access_token"]
    rows = []
    page = 0
    while True:
        got = apis.gmail.show_inbox_threads(access_token=gmail_token, page_index=page, page_limit=20)
        if not got:
            break
        rows += got
        page += 1
    amount = read("the amount", rows[0]["subject"], r"(\\d+)")
    for row in rows:
        if row["read"]:
            continue
        apis.gmail.mark_thread_read(email_thread_id=row["email_thread_id"], access_token=gmail_token)
    apis.supervisor.complete_task(answer=int(amount))
"""
CHECKED = pytest.mark.timeout(1_200)  # a world may have to be made first


@pytest.fixture(scope="module")
def installation() -> Installation:
    return demand_installation()


@pytest.fixture(scope="module")
def own_world(installation: Installation) -> Path:
    return demand_world(installation)


@pytest.fixture(scope="module")
def graded(
    own_world: Path, installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[dict[str, str], Grading]]:
    """What AppWorld printed and how it grades, by program."""
    printed, outputs = solved(own_world, installation, tmp_path_factory.getbasetemp())
    return {name: (printed[name], grade(own_world, name, all_ids(own_world), outputs)) for name in PROGRAMS}


@pytest.fixture(scope="module")
def idioms() -> ModuleType:
    """The generator's linter needs nothing but the standard library."""
    spec = importlib.util.spec_from_file_location("world_idioms", INSIDE / "world" / "idioms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def all_ids(at: Path) -> list[str]:
    return [task_id for split in SPLITS for task_id in task_ids(at, split)]


def truth(at: Path, task_id: str, name: str) -> Any:
    text = (at / "data" / "tasks" / task_id / "ground_truth" / name).read_text("utf-8")
    return json.loads(text) if name.endswith(".json") else text


# ---------------------------------------------------------------- the linter


def test_a_solution_within_the_idioms(idioms: ModuleType) -> None:
    idioms.check_solution(GOOD)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("profile = apis", "profile: dict = apis", "neither a bind"),
        ("profile = apis", "a = b = apis", "neither a bind"),
        ("import re\n", "import re\nimport json\n", "nothing else"),
        ("(apis, requester)", "(apis)", "takes apis and requester"),
        ("show_profile()", 'show_profile("x")', "keyword arguments only"),
        ("show_profile()", "show_profile(**options)", "keyword arguments only"),
        ("gmail_token = apis", "token = apis", "a log-in is"),
        ('passwords["gmail"])["access_token"]', 'passwords["gmail"])', "a log-in is"),
        ("page_limit=20", "page_limit=5", "a page loop is"),
        ("page += 1", "page += 2", "a page loop is"),
        ("rows += got", "rows.extend(got)", "a page loop is"),
        ("    page = 0\n", "    page = 1\n", "a page loop follows"),
        ('r"(\\d+)"', 'r"\\d+"', "exactly one group"),
        ('"the amount", ', 'profile["email"], ', "a reading is"),
        ('read("the amount"', 'int(read("the amount"', None),
        ("            continue", "            break", "a loop holds"),
        ("for row in rows:", "for row in apis.gmail.show_drafts():", "holds an API call"),
        ("answer=int(amount)", "answer=int(total)", "total is not bound"),
        ("    amount = read", "    profile = read", "bound twice"),
        ("    apis.supervisor.complete_task(answer=int(amount))\n", "", "the last statement"),
        ("    amount = read", "    amount = lambda: 1\n    other = read", "no plain expression"),
    ],
)
def test_a_solution_outside_the_idioms(idioms: ModuleType, old: str, new: str, told: str | None) -> None:
    assert GOOD.count(old) == 1
    source = GOOD.replace(old, new)
    if told is None:  # read may only be the whole of a bind
        source = source.replace('r"(\\d+)")', 'r"(\\d+)"))')
        told = "a reading is"
    with pytest.raises(idioms.IdiomError, match=told):
        idioms.check_solution(source)


# ---------------------------------------------------------------- making it


def test_the_digest_is_of_the_generator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLEXMEM_CACHE", str(tmp_path))
    assert own_root() == tmp_path / "appworld" / "worlds" / generator_digest()[:16]
    assert len(generator_digest()) == 64


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(DataError, match="no world of ours"):
        make_world(tmp_path, Installation(Path("/python"), Path("/unpacked")))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_generator_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InsideError, match="making a world"):
        make_world(tmp_path / "world", Installation(Path("/bin/false"), Path("/unpacked")))
    assert [path.name for path in tmp_path.iterdir()] == [".world.lock"]


def test_an_answer_that_is_no_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "run_inside", lambda *arguments, **options: '{"tasks": 24}')
    with pytest.raises(DataError, match="came out incomplete"):
        make_world(tmp_path / "world", Installation(Path("/python"), Path("/unpacked")))
    assert not is_made(tmp_path / "world")


def test_processes_may_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def run_inside(*arguments: Any, root: Path, **options: Any) -> str:
        made.append(root)
        return '{"tasks": 24}'

    monkeypatch.setattr(world, "run_inside", run_inside)
    monkeypatch.setattr(world.data, "check", lambda at: [])
    monkeypatch.setattr(world.data, "digest", lambda at: "d")
    make = partial(make_world, tmp_path / "world", Installation(Path("/python"), Path("/unpacked")))
    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert is_made(tmp_path / "world")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".world.lock", "world"]


def test_a_world_of_another_version_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "world").mkdir()
    (tmp_path / "world" / "flexmem-world.json").write_text('{"generator": "older"}')
    (tmp_path / "world" / "old").touch()
    monkeypatch.setattr(world, "run_inside", lambda *arguments, **options: '{"tasks": 24}')
    monkeypatch.setattr(world.data, "check", lambda at: [])
    monkeypatch.setattr(world.data, "digest", lambda at: "d")
    make_world(tmp_path / "world", Installation(Path("/python"), Path("/unpacked")))
    assert is_made(tmp_path / "world")
    assert not (tmp_path / "world" / "old").exists()


def test_a_program_that_takes_too_long(tmp_path: Path) -> None:
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\nsleep 600 & wait\n")
    sleeper.chmod(0o755)
    with pytest.raises(InsideError, match=r"sleeping: took more than 0\.2 s"):
        run_inside(Installation(sleeper, tmp_path), [], root=tmp_path, deadline_s=0.2, what="sleeping")


def test_a_program_that_fails_says_why(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho the reason >&2\nexit 3\n")
    python.chmod(0o755)
    with pytest.raises(InsideError, match=r"failing: ended with 3\. Its last lines:\nthe reason"):
        run_inside(Installation(python, tmp_path), [], root=tmp_path, deadline_s=60, what="failing")


@pytest.mark.slow
@CHECKED
def test_it_is_not_made_twice(own_world: Path, installation: Installation) -> None:
    before = (own_world / "data" / "version.txt").stat().st_mtime_ns
    assert make_world(own_world, installation) == own_world
    assert (own_world / "data" / "version.txt").stat().st_mtime_ns == before


@pytest.mark.slow
@CHECKED
def test_texts_are_the_same_each_time(own_world: Path, installation: Installation) -> None:
    code = (
        "import json\nfrom world.making import all_tasks\n"
        "print(json.dumps({t.task_id: [t.instruction, t.solution, t.near_miss, t.scenario.private(t.facts)]"
        " for t in all_tasks()}))"
    )
    for task_id, (instruction, solution, near_miss, private) in ask_inside(code, installation, own_world).items():
        specs = json.loads((own_world / "data" / "tasks" / task_id / "specs.json").read_text("utf-8"))
        assert specs["instruction"] == instruction
        assert truth(own_world, task_id, "solution.py") == solution
        assert truth(own_world, task_id, "near_miss.py") == near_miss
        assert truth(own_world, task_id, "private_data.json") == private


@pytest.mark.slow
@CHECKED
def test_the_stamp_tells_the_digest(own_world: Path) -> None:
    stamp = json.loads((own_world / "flexmem-world.json").read_text("utf-8"))
    assert stamp == {"generator": generator_digest(), "tasks": 24, "digest": digest(own_world)}


# ---------------------------------------------------------------- its tasks


@pytest.mark.slow
@CHECKED
def test_scenarios_splits_and_difficulties(own_world: Path) -> None:
    scenarios = {split: Counter(map(scenario_of, task_ids(own_world, split))) for split in SPLITS}
    assert all(len(found) == 2 and set(found.values()) == {3} for found in scenarios.values())
    assert len(all_ids(own_world)) == len(set(all_ids(own_world))) == 24
    metadata = {task_id: truth(own_world, task_id, "metadata.json") for task_id in all_ids(own_world)}
    assert {found["difficulty"] for found in metadata.values()} == {1, 2, 3}
    assert len({app for task_id in metadata for app in truth(own_world, task_id, "required_apps.json")}) >= 5


@pytest.mark.slow
@CHECKED
def test_metadata_is_true(own_world: Path) -> None:
    for task_id in all_ids(own_world):
        metadata = truth(own_world, task_id, "metadata.json")
        calls = truth(own_world, task_id, "api_calls.json")
        apps = {call["url"].strip("/").split("/")[0] for call in calls} - {"supervisor"}
        assert apps == set(truth(own_world, task_id, "required_apps.json"))
        assert (metadata["num_apps"], metadata["num_api_calls"]) == (len(apps), len(calls))
        solution = ast.parse(truth(own_world, task_id, "compiled_solution.py")).body[-1]
        assert isinstance(solution, ast.FunctionDef)
        assert metadata["num_solution_code_lines"] == sum(len(ast.unparse(each).splitlines()) for each in solution.body)


@pytest.mark.slow
@CHECKED
def test_variants_have_other_facts(own_world: Path) -> None:
    found = defaultdict(list)
    for task_id in all_ids(own_world):
        facts = [truth(own_world, task_id, name) for name in ("private_data.json", "answer.json")]
        found[scenario_of(task_id)].append(json.dumps(facts, sort_keys=True))
    assert all(len(set(facts)) == 3 for facts in found.values())


@pytest.mark.slow
@CHECKED
def test_solutions_keep_to_the_idioms(own_world: Path, idioms: ModuleType) -> None:
    for task_id in all_ids(own_world):
        idioms.check_solution(truth(own_world, task_id, "solution.py"))
        idioms.check_solution(truth(own_world, task_id, "near_miss.py"))


@pytest.mark.slow
@CHECKED
def test_no_instruction_gives_an_answer_away(own_world: Path) -> None:
    """Amounts, people, times and texts that a grader looks for can't be had from the task's text."""
    for task_id in all_ids(own_world):
        specs = json.loads((own_world / "data" / "tasks" / task_id / "specs.json").read_text("utf-8"))
        hidden = [truth(own_world, task_id, name) for name in ("private_data.json", "answer.json")]
        for value in _leaves(hidden):
            assert value not in specs["instruction"]


@pytest.mark.slow
@CHECKED
def test_right_programs_pass_and_others_fail(graded: dict[str, tuple[dict[str, str], Grading]]) -> None:
    printed, right = graded["right"]
    assert set(printed.values()) == {"Execution successful."}
    assert {task_id for task_id, found in right.grades.items() if not found.success} == set()
    for program in ("near_miss", "no_op"):
        printed, wrong = graded[program]
        assert set(printed.values()) == {"Execution successful."}
        assert {task_id for task_id, found in wrong.grades.items() if found.success} == set()
    assert all(len(grading.grades) == 24 and not grading.ungraded for _, grading in graded.values())


@pytest.mark.slow
@CHECKED
def test_half_of_the_tasks_are_long(own_world: Path, installation: Installation) -> None:
    lengths = world_lengths(own_world, installation)
    assert sum(found.is_long for found in lengths) >= len(lengths) / 2
    assert all(2 <= found.log_ins <= 4 for found in lengths if found.is_long)


def _leaves(value: Any) -> Iterator[str]:
    """Texts and amounts in nested lists and objects; whole numbers are ids, which nobody can guess the meaning of."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, float):
        yield f"{value:.2f}"
