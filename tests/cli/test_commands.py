"""What commands print for machines and for people, on a run made beforehand; nothing here starts Ray."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from flexmem.benchmarks.data import DataFile
from flexmem.memory.registry import methods
from flexmem.sweep.arms import make_arms
from flexmem.sweep.config import load_config
from flexmem.sweep.plan import task_kind
from flexmem.sweep.results import parts
from tests.sweep.harness import rows

Flexmem = Callable[..., Result]
Written = Callable[..., Path]

METHOD_KEYS = [
    "name",
    "family",
    "writes_with_model",
    "reads_with_model",
    "rewrites_text",
    "build_per_budget",
    "tools",
    "tasks",
]
REPORT_KEYS = [
    "benchmark",
    "question_type",
    "arm",
    "budget",
    "reader",
    "repeats",
    "n",
    "metric",
    "score",
    "score_low",
    "score_high",
    "n_evidence",
    "evidence_all",
    "evidence_turns",
    "answer_recall",
    "utilisation",
    "tokens",
    "usd",
    "render_ms",
]
CELL_KEYS = ["benchmark", "arm", "budget", "reader", "repeats", "n"]


# ---------------------------------------------------------------- methods


def test_methods_are_listed_with_the_published_keys(flexmem: Flexmem) -> None:
    result = flexmem("methods", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    listed = json.loads(result.stdout)
    assert [list(row) for row in listed] == [METHOD_KEYS] * len(listed)
    assert [row["name"] for row in listed] == list(methods())
    by_name = {row["name"]: row for row in listed}
    assert by_name["flexa_unit"]["tasks"] == ["agent", "reader"]
    assert by_name["observation_masking"]["tasks"] == ["agent"]
    assert not by_name["flexa_unit"]["rewrites_text"]


def test_methods_are_listed_for_people_with_the_control_arms(flexmem: Flexmem) -> None:
    shown = flexmem("methods").stdout
    assert all(name in shown for name in ("flexa_piece", "truncation", "no_memory", "oracle_evidence"))


def test_one_method_is_shown_with_options_reasons_and_card(flexmem: Flexmem) -> None:
    shown = json.loads(flexmem("methods", "flexa_unit", "--json").stdout)
    assert shown["options"]["merge_group"] == 4
    assert shown["card"].keys() == {"source", "follows", "ours", "differs", "tuning"}
    text = flexmem("methods", "flexa_unit").stdout
    assert "merge_group" in text
    assert "FlexA-Mem §3.2" in text


def test_a_method_that_is_not_there_is_named_with_the_nearest(flexmem: Flexmem) -> None:
    result = flexmem("methods", "flexa_unti")
    assert result.exit_code == 2
    assert result.stderr == "error: unknown method 'flexa_unti'; did you mean 'flexa_unit'?\n"


# ---------------------------------------------------------------- plan


def test_a_plan_lists_its_cells(flexmem: Flexmem, written: Written) -> None:
    result = flexmem("plan", written(repeats=2), "--json")
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    assert list(shown) == ["cells", "episodes", "notes"]
    assert [list(cell) for cell in shown["cells"]] == [CELL_KEYS] * 5
    assert [(cell["arm"], cell["budget"], cell["n"]) for cell in shown["cells"]] == [
        ("no_memory", None, 12),
        ("piece_retrieval", 400, 12),
        ("piece_retrieval", 1_000, 12),
        ("flexa_piece", 400, 12),
        ("flexa_piece", 1_000, 12),
    ]
    assert shown["episodes"] == 60
    assert any("Synthetic conversations" in note for note in shown["notes"])


def test_a_plan_is_shown_for_people(flexmem: Flexmem, written: Written) -> None:
    result = flexmem("plan", written())
    assert result.exit_code == 0
    assert "30 episodes in 3 builds" in result.stdout


@pytest.mark.parametrize("sweep", sorted((Path(__file__).parents[2] / "ray_jobs" / "sweeps").glob("*.yaml")), ids=str)
def test_every_sweep_of_the_repository_is_a_valid_one(sweep: Path) -> None:
    config = load_config(sweep)
    assert make_arms(config.arms, task_kind(config))


# ---------------------------------------------------------------- status and report


def test_the_status_of_a_complete_run(flexmem: Flexmem, finished: Path) -> None:
    result = flexmem("status", finished, "--json")
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    cells = shown.pop("cells")
    assert shown == {
        "run": str(finished),
        "name": "test",
        "planned": 30,
        "done": 30,
        "failed": 0,
        "complete": True,
        "running": False,
        "rate": None,
        "eta_s": None,
        "heartbeat_s": None,
        "in_flight": None,
        "workers": None,
        "recycled": None,
        "stall": None,
        "tokens": dict.fromkeys(
            ("reader_input_tokens", "reader_output_tokens", "memory_input_tokens", "memory_output_tokens"), 0
        ),
        "usd": None,
        "judgements": None,
        "failures": {},
        "errors": [],
    }
    assert [list(cell) for cell in cells] == [["benchmark", "arm", "budget", "planned", "done", "failed"]] * 5
    assert {(cell["planned"], cell["done"]) for cell in cells} == {(6, 6)}
    assert "30 of 30 episodes done" in flexmem("status", finished).stdout


def test_the_status_of_an_incomplete_run_ends_with_1(flexmem: Flexmem, finished: Path) -> None:
    lost = parts(finished, "episodes")[0]
    missing = len(rows(finished, "episodes"))
    lost.unlink()
    missing -= len(rows(finished, "episodes"))
    result = flexmem("status", finished, "--json")
    assert result.exit_code == 1
    shown = json.loads(result.stdout)
    assert (shown["planned"], shown["done"], shown["complete"]) == (30, 30 - missing, False)
    assert flexmem("status", finished).exit_code == 1


def test_a_report_for_machines_has_the_published_keys(flexmem: Flexmem, finished: Path) -> None:
    result = flexmem("report", finished, "--json")
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    assert [list(row) for row in shown] == [REPORT_KEYS] * len(shown)
    whole = {(row["arm"], row["budget"]): row for row in shown if row["question_type"] is None}
    assert whole.keys() == {
        ("no_memory", None),
        *((arm, budget) for arm in ("piece_retrieval", "flexa_piece") for budget in (400, 1_000)),
    }
    assert {row["metric"] for row in shown} == {"verbatim_evidence"}
    assert whole["no_memory", None]["score"] == 0.0
    assert whole["piece_retrieval", 1_000]["score"] > 0.5
    assert {(row["n"], row["usd"]) for row in whole.values()} == {(6, None)}


def test_a_report_in_other_forms(flexmem: Flexmem, finished: Path) -> None:
    table = list(csv.DictReader(io.StringIO(flexmem("report", finished, "--format", "csv").stdout)))
    assert list(table[0]) == REPORT_KEYS
    assert "flexa_piece" in flexmem("report", finished).stdout
    for form, mark in (("md", "## synthetic"), ("latex", "\\begin{tabular}")):
        shown = flexmem("report", finished, "--format", form).stdout
        assert mark in shown
        assert "flexa_piece" in shown.replace("\\", "")
    assert flexmem("report", finished, "--format", "docx").exit_code == 2


# ---------------------------------------------------------------- doctor and data


def test_the_doctor_says_what_is_there(flexmem: Flexmem) -> None:
    result = flexmem("doctor", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [list(row) for row in found] == [["name", "state", "detail", "needed"]] * len(found)
    states = {row["name"]: row["state"] for row in found}
    assert {"ray", "pyarrow", "token table", "embedder weights", "OPENAI_API_KEY", "disk"} <= states.keys()
    assert states["token table"] == states["embedder weights"] == states["ray"] == "good"
    assert states["OPENAI_API_KEY"] == states["data locomo/locomo10.json"] == "missing"
    assert "ok  ray: " in flexmem("doctor").stdout


def test_the_doctor_does_not_tell_a_key(flexmem: Flexmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-told")
    result = flexmem("doctor", "--json")
    assert {row["name"]: row["state"] for row in json.loads(result.stdout)}["OPENAI_API_KEY"] == "good"
    assert "sk-not" not in result.output


def test_the_doctor_ends_with_1_where_something_needed_is_missing(
    flexmem: Flexmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_table() -> None:
        raise OSError("the token table can't be had")

    monkeypatch.setattr("flexmem.tokens.encoding", no_table)
    result = flexmem("doctor", "--json")
    assert result.exit_code == 1
    (row,) = (row for row in json.loads(result.stdout) if row["name"] == "token table")
    assert (row["state"], row["detail"], row["needed"]) == ("bad", "the token table can't be had", True)


def test_data_files_are_listed_with_digest_licence_and_state(flexmem: Flexmem) -> None:
    result = flexmem("data", "list", "--json")
    assert result.exit_code == 0
    listed = json.loads(result.stdout)
    keys = ["name", "state", "path", "addresses", "sha256", "licence", "problem"]
    assert [list(row) for row in listed] == [keys] * len(listed)
    assert "locomo/locomo10.json" in {row["name"] for row in listed}
    assert {row["state"] for row in listed} == {"missing"}
    (pinned,) = (row for row in listed if row["name"] == "locomo/locomo10.json")
    assert len(pinned["sha256"]) == 64
    assert all(row["licence"] for row in listed)
    assert {"locomo", "longmemeval", "msc", "personamem"} == {row["name"].partition("/")[0] for row in listed}
    shown = flexmem("data", "list").stdout
    assert "locomo/locomo10.json" in shown
    assert "no public address" in shown


def test_verifying_what_is_not_here_ends_with_1_and_an_unknown_file_with_2(flexmem: Flexmem) -> None:
    assert flexmem("data", "verify").exit_code == 1
    result = flexmem("data", "verify", "locomo/locomo11.json")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: no file 'locomo/locomo11.json'; known: locomo/locomo10.json")


def test_files_without_an_address_are_fetched_only_when_they_are_named(
    flexmem: Flexmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = DataFile("toys/lines.txt", (), "0" * 64, 1, "CC0")
    monkeypatch.setattr("flexmem.cli.data.known_files", lambda: [file])
    assert (flexmem("data", "fetch").exit_code, flexmem("data", "fetch").stdout) == (0, "")
    result = flexmem("data", "fetch", "toys")
    assert result.exit_code != 0
    assert "toys/lines.txt: not on this machine" in result.stderr


def test_files_are_chosen_by_folder(flexmem: Flexmem) -> None:
    result = flexmem("data", "verify", "locomo", "--json")
    assert result.exit_code == 1
    assert [row["name"] for row in json.loads(result.stdout)] == [
        "locomo/locomo10.json",
        "locomo/locomo_audit_errors.json",
    ]
    assert flexmem("data", "verify", "loco").exit_code == 2


# ---------------------------------------------------------------- what a command loads


def loaded_by(module: str, *wanted: str) -> str:
    """Which of some modules importing ``module`` loads."""
    code = f"import sys; import {module}; print([name for name in {list(wanted)!r} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_library_needs_no_ray_torch_transformers_docker_or_pyarrow() -> None:
    heavy = ("ray", "torch", "transformers", "sentence_transformers", "docker", "pyarrow", "openai")
    assert loaded_by("flexmem.memory", *heavy) == "[]"


def test_the_command_line_starts_without_ray_torch_or_the_sdk() -> None:
    assert loaded_by("flexmem.cli", "ray", "torch", "transformers", "openai") == "[]"


def test_every_command_has_a_help() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", "from flexmem.cli import main; main()", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    told = ("doctor", "data", "methods", "plan", "run", "status", "retry", "report", "compare", "collect", "rejudge")
    assert all(f" {command} " in shown for command in (*told, "cache"))
