"""Whatever is wrong with its input, a command says so in one message, ends with 2 and leaves finished results alone."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from flexmem.sweep.results import parts
from tests.sweep.endpoint import free_port
from tests.sweep.harness import LOCOMO_SMALL, contents

Flexmem = Callable[..., Result]
Written = Callable[..., Path]


def message(result: Result, progress: str = "") -> str:
    """The one message of a command that refused; ``progress`` is what it said before."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)  # no traceback
    assert result.stdout == ""
    assert result.stderr.startswith(f"{progress}error: ")
    assert result.stderr.count("error: ") == 1
    return result.stderr.removeprefix(f"{progress}error: ").rstrip("\n")


def results(out: Path) -> dict[str, bytes]:
    """What a run has found, its lock apart."""
    return {name: content for name, content in contents(out).items() if not name.endswith(".lock")}


@pytest.fixture
def refused(flexmem: Flexmem, finished: Path) -> Callable[[Path], str]:
    """The message that both ``plan`` and ``run`` give of a configuration, the latter in a folder with results."""

    def refuse(config: Path) -> str:
        before = results(finished)
        said = message(flexmem("plan", config))
        assert message(flexmem("run", config, "--out", finished)) == said
        assert results(finished) == before
        return said

    return refuse


Refused = Callable[[Path], str]


# ---------------------------------------------------------------- the sweep's YAML


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: s\narms: [truncation\nbudgets: [1k]\n", ", line 3, column 8: broken YAML: "),
        ("- name\n- arms\n", ": a sweep is a mapping with name, benchmarks, arms and budgets"),
        ("", ": a sweep is a mapping"),
    ],
)
def test_what_is_no_sweep_is_named_by_file_and_line(text: str, said: str, refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    assert refused(path).startswith(f"{path}{said}")


def test_a_file_that_is_not_there_is_named(refused: Refused, tmp_path: Path) -> None:
    assert refused(tmp_path / "gone.yaml") == f"{tmp_path / 'gone.yaml'}: can't be read: No such file or directory"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"budget": [1]}, "budget: unknown key; did you mean 'budgets'?"),
        ({"engine": {"wokers": 1}}, "engine.wokers: unknown key; did you mean 'workers'?"),
        ({"arms": ["flexa_pice"]}, "unknown method 'flexa_pice'; did you mean 'flexa_piece'?"),
        ({"benchmarks": [{"name": "sinthetic"}]}, "no benchmark 'sinthetic', did you mean 'synthetic'?"),
        (
            {"benchmarks": [{"name": "locomo", "options": {"categorys": [1]}}]},
            "benchmark 'locomo': no option 'categorys', did you mean 'categories'?",
        ),
        (
            {"arms": [{"method": "flexa_unit", "label": "x", "options": {"excerpt_cup": 1}}]},
            "method 'flexa_unit' has no option 'excerpt_cup'; did you mean 'excerpt_cap'?",
        ),
        ({"arms": ["truncation", "truncation"]}, "arms: arm 'truncation' is listed twice; give one of them a label"),
        (
            {"arms": [{"method": "flexa_unit", "options": {"excerpt_cap": 1}}]},
            "arms.0: arm 'flexa_unit' changes options, so it needs a label of its own",
        ),
        ({"budgets": ["4q"]}, "budgets.0: a budget is a number of tokens, such as 4000 or 4k"),
        ({"budgets": [5]}, "budget 5 is too small for arm 'flexa_piece'"),
        (
            {"models": {"reader": {"model": {"provider": "scripted", "model": "sing"}}}},
            "no scripted rule is called 'sing'; known: ",
        ),
        (
            {"models": {"reader": {"model": {"model": "m", "base_url": "localhost:8000"}}}},
            "`base_url` must start with http:// or https://",
        ),
        (
            {"benchmarks": [{"name": "locomo", "options": {"path": str(LOCOMO_SMALL), "conversations": ["talk-3"]}}]},
            "LoCoMo has no conversation 'talk-3' (there are talk-1, talk-2)",
        ),
    ],
)
def test_what_a_sweep_cant_say_is_named_by_its_key(
    changes: dict[str, Any], said: str, refused: Refused, written: Written
) -> None:
    assert said in refused(written(**changes))


def test_a_run_without_an_output_folder_says_where_to_give_one(flexmem: Flexmem, written: Written) -> None:
    said = message(flexmem("run", written()))
    assert said == "no output folder: give --out, or `out:` in the sweep's YAML"


def test_a_job_script_refuses_as_the_command_does(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("name: s\narms: [truncation\nbudgets: [1k]\n")
    script = Path(__file__).parents[2] / "ray_jobs" / "sweep.py"
    command = [sys.executable, str(script), str(path), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {path}, line 3, column 8: broken YAML: ")
    assert "Traceback" not in done.stderr


def test_an_unknown_option_of_the_command_line_ends_with_2(flexmem: Flexmem, written: Written) -> None:
    result = flexmem("run", written(), "--wokers", "2")
    assert result.exit_code == 2
    assert "--workers" in result.stderr


# ---------------------------------------------------------------- data


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bytes], Path]:
    """Puts a file into a data folder that FLEXMEM_DATA names."""

    def put(name: str, content: bytes) -> Path:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        monkeypatch.setenv("FLEXMEM_DATA", str(tmp_path / "data"))
        return path

    return put


def test_an_altered_data_file_is_named_with_both_digests(
    damaged: Callable[[str, bytes], Path], refused: Refused, written: Written, flexmem: Flexmem
) -> None:
    path = damaged("locomo/locomo10.json", LOCOMO_SMALL.read_bytes())
    said = refused(written(benchmarks=[{"name": "locomo"}]))
    assert said.startswith(f"{path}: not the pinned locomo/locomo10.json: SHA-256 ")
    assert "expected 79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4 of 2,805,274" in said
    assert flexmem("data", "verify").exit_code == 1
    (state,) = (row for row in json.loads(flexmem("data", "list", "--json").stdout) if "locomo10" in row["name"])
    assert (state["state"], state["path"]) == ("bad", str(path))
    assert state["problem"] in said


def test_a_truncated_data_file_is_named(
    damaged: Callable[[str, bytes], Path], refused: Refused, written: Written
) -> None:
    path = damaged("locomo/locomo10.json.xz", lzma.compress(LOCOMO_SMALL.read_bytes())[:400])
    said = refused(written(benchmarks=[{"name": "locomo"}]))
    assert said.startswith(f"{path}: the xz stream is cut short after ")


def test_a_damaged_data_file_is_not_passed_over_for_another_benchmark(
    damaged: Callable[[str, bytes], Path], refused: Refused, written: Written
) -> None:
    path = damaged("locomo/locomo10.json", b"[]")
    assert str(path) in refused(written(benchmarks=[{"name": "locomo", "otherwise": {"name": "synthetic"}}]))


def test_a_data_folder_that_is_none_is_named(
    refused: Refused, written: Written, flexmem: Flexmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEXMEM_DATA", str(tmp_path / "gone"))
    said = f"FLEXMEM_DATA names {tmp_path / 'gone'}, which is not a folder. Correct it or unset it."
    assert refused(written(benchmarks=[{"name": "locomo"}])) == said
    for command in ("list", "verify", "fetch"):
        assert message(flexmem("data", command)) == said
    found = flexmem("doctor", "--json")
    assert [row["detail"] for row in json.loads(found.stdout) if row["state"] == "bad"] == [said]


def own(change: Callable[[list[dict[str, Any]]], object], path: Path) -> Path:
    """A file in LoCoMo's format, spoilt by ``change``."""
    content = json.loads(LOCOMO_SMALL.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")
    return path


SPOILT: dict[str, tuple[Callable[[list[dict[str, Any]]], object], str]] = {
    "evidence that is no list": (
        lambda talks: talks[0]["qa"][1].update(evidence="D1:1"),
        "conversation talk-1: qa[1].evidence: Input should be a valid list",
    ),
    "evidence that is no text": (
        lambda talks: talks[0]["qa"][1].update(evidence=[7]),
        "conversation talk-1: qa[1].evidence[0]: Input should be a valid string",
    ),
    "no evidence": (lambda talks: talks[1]["qa"][0].pop("evidence"), "conversation talk-2: qa[0].evidence: missing"),
    "no answer": (
        lambda talks: talks[1]["qa"][1].pop("answer"),
        "conversation talk-2: qa[1].answer: missing in category 4",
    ),
    "an unknown category": (lambda talks: talks[0]["qa"][0].update(category=6), "talk-1: qa[0].category: "),
    "an empty conversation": (
        lambda talks: talks[1].update(conversation={}),
        "conversation talk-2: conversation: no session_<n> with a turn",
    ),
    "a conversation of empty sessions": (
        lambda talks: talks[1]["conversation"].update(session_1=[]),
        "conversation talk-2: conversation: no session_<n> with a turn",
    ),
    "a turn without text": (
        lambda talks: talks[0]["conversation"]["session_2"][1].pop("text"),
        "conversation talk-1: session_2[1].text: missing",
    ),
    "a turn id twice": (
        lambda talks: talks[0]["conversation"]["session_2"][1].update(dia_id="D2:1"),
        "conversation talk-1: dia_id: 'D2:1' is used by more than one turn",
    ),
    "a session without a date": (
        lambda talks: talks[0]["conversation"].pop("session_1_date_time"),
        "conversation talk-1: session_1_date_time: missing",
    ),
    "no conversation": (lambda talks: talks.clear(), "these options select no question"),
}


@pytest.mark.parametrize("defect", SPOILT)
def test_a_malformed_file_of_ones_own_is_named_by_conversation_and_field(
    defect: str, refused: Refused, written: Written, tmp_path: Path
) -> None:
    change, said = SPOILT[defect]
    path = own(change, tmp_path / "own.json")
    found = refused(written(benchmarks=[{"name": "locomo", "options": {"path": str(path)}}]))
    assert said in found
    if defect not in ("no conversation", "no answer"):  # found once the file is read: the benchmark is named
        assert found.startswith(f"{path}: ")


def test_a_truncated_file_of_ones_own_is_named_by_line(refused: Refused, written: Written, tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_bytes(LOCOMO_SMALL.read_bytes()[:1_000])
    found = refused(written(benchmarks=[{"name": "locomo", "options": {"path": str(path)}}]))
    assert found.startswith(f"{path}: not valid JSON at line ")


# ---------------------------------------------------------------- the output folder


@pytest.fixture
def untouched(flexmem: Flexmem, finished: Path) -> Callable[[Path], str]:
    """The message of a run that refuses its output folder, which stays as it is."""

    def refuse(config: Path) -> str:
        before = results(finished)
        said = message(flexmem("run", config, "--out", finished))
        assert results(finished) == before
        return said

    return refuse


def test_a_folder_with_other_files_is_refused(flexmem: Flexmem, written: Written, tmp_path: Path) -> None:
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter1.tex").write_text("years of work")
    said = message(flexmem("run", written(), "--out", out))
    assert said == f"{out}: is not empty and holds no manifest.json; give an empty folder or a run's own"
    assert contents(out) == {"chapter1.tex": b"years of work"}


def test_a_folder_of_another_configuration_is_refused_by_what_differs(
    untouched: Callable[[Path], str], written: Written, finished: Path
) -> None:
    said = untouched(written(embedding={"model": "other/model"}))
    assert said.startswith(
        f"{finished}: holds results of another configuration; take another folder, or another label for a changed arm"
        "\n  embedder: "
    )
    arms = [{"method": "flexa_piece", "label": "flexa_piece", "options": {"mode": "unit"}}]
    assert "\n  arms flexa_piece: config.mode was 'piece', now 'unit'" in untouched(written(arms=arms))


@pytest.mark.parametrize("command", ["run", "status", "report"])
def test_a_folder_of_another_schema_version_is_refused(
    command: str, flexmem: Flexmem, written: Written, finished: Path
) -> None:
    path = finished / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"schema_version": 7}))
    before = contents(finished)
    arguments = ["run", written(), "--out", finished] if command == "run" else [command, finished]
    assert "schema version 7" in message(flexmem(*arguments))
    assert contents(finished) == before


@pytest.mark.parametrize("command", ["status", "report"])
def test_a_torn_part_is_named_with_what_to_do(command: str, flexmem: Flexmem, finished: Path) -> None:
    torn = parts(finished, "episodes")[0]
    torn.write_bytes(torn.read_bytes()[:-100])
    before = results(finished)
    said = message(flexmem(command, finished))
    assert said.startswith(f"{torn}")
    assert "ove it away" in said
    assert results(finished) == before


@pytest.mark.parametrize("command", ["status", "report"])
def test_a_folder_that_is_no_run_is_named(command: str, flexmem: Flexmem, tmp_path: Path) -> None:
    assert str(tmp_path) in message(flexmem(command, tmp_path))
    assert str(tmp_path / "gone") in message(flexmem(command, tmp_path / "gone"))


def test_a_file_as_output_folder_is_named(flexmem: Flexmem, written: Written, tmp_path: Path) -> None:
    out = tmp_path / "file"
    out.write_text("x")
    assert message(flexmem("run", written(), "--out", out)).startswith(f"{out}: is not a folder")


# ---------------------------------------------------------------- models

NOTHING_DONE = "test: 0 of 30 episodes, 0/s\n"


def test_a_missing_key_is_found_before_anything_runs(flexmem: Flexmem, written: Written, tmp_path: Path) -> None:
    model = {"model": "gpt-5.4-mini", "base_url": "https://models.invalid/v1", "api_key_env": "OTHER_KEY"}
    config = written(models={"reader": {"model": model}})
    assert flexmem("plan", config).exit_code == 0
    said = message(flexmem("run", config, "--out", tmp_path / "run"), NOTHING_DONE)
    assert said.startswith("gpt-5.4-mini at https://models.invalid/v1: no API key. Set OTHER_KEY in the environment")
    assert results(tmp_path / "run").keys() == set()


@pytest.mark.parametrize("role", ["reader", "memory"])
def test_an_unreachable_endpoint_is_found_before_anything_runs(
    role: str, flexmem: Flexmem, written: Written, tmp_path: Path
) -> None:
    model = {"model": "local", "base_url": f"http://127.0.0.1:{free_port()}/v1"}
    config = written(models={role: {"model": model} if role == "reader" else model})
    said = message(flexmem("run", config, "--out", tmp_path / "run"), NOTHING_DONE)
    assert said.startswith(f"local at {model['base_url']}: the connection failed (")
    assert results(tmp_path / "run").keys() == set()


def test_a_key_that_stands_twice_is_refused_with_its_line(flexmem: Flexmem, tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("name: x\nbenchmarks: [synthetic]\narms: [truncation]\narms: [flexa_unit]\nbudgets: [1k]\n")
    said = message(flexmem("plan", path))
    assert said == f"{path}, line 4, column 1: broken YAML: key 'arms' stands twice"


def test_a_label_that_is_another_methods_name_is_refused(flexmem: Flexmem, written: Written) -> None:
    config = written(arms=[{"method": "flexa_unit", "label": "truncation"}])
    assert "arm label 'truncation' is the name of another method" in message(flexmem("plan", config))


def test_a_folder_that_cannot_be_made_is_one_line(flexmem: Flexmem, written: Written, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    folder = tmp_path / "file" / "run"
    said = flexmem("run", written(), "--out", folder)
    assert message(said, "test: 0 of 30 episodes, 0/s\n") == f"{folder}: Not a directory"
