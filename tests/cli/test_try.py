"""``flexmem try``: what it prints, what it refuses, and the documented commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from flexmem.memory.protocol import Rendering
from tests.cli.test_bad_input import message
from tests.llm.endpoint import ChatEndpoint, ok
from tests.logs.files import BLOCKS, CHAT, INSPECT, TOOL_CALLS, TRAJECTORY, content
from tests.sweep.harness import WordEmbedder

Flexmem = Callable[..., Result]
ROOT = Path(__file__).parents[2]
COMMANDS = [
    command
    for page in ("README.md", "docs/try.md")
    for command in re.findall(r"^flexmem try .*$", (ROOT / page).read_text("utf-8"), re.M)
]
KEYS = ["file", "format", "sample", "kind", "length", "task", "query", "options", "left_out", "methods"]
METHOD_KEYS = [
    "method",
    "budget",
    "room",
    "calls",
    "units",
    "units_written",
    "memory_tokens",
    "window_tokens",
    "outside_tokens",
    "over_tokens",
    "utilisation",
    "tokens_by_resolution",
    "fallbacks",
    "memory",
    "window",
    "blocks",
]


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small embedder in place of the model."""
    # `flexmem.cli` has the command under its module's name.
    monkeypatch.setattr(import_module("flexmem.cli.try_memory"), "local_embedder", WordEmbedder)


def tried(flexmem: Flexmem, *arguments: object) -> dict[str, Any]:
    result = flexmem("try", *arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


# ---------------------------------------------------------------- what it shows


def test_a_call_is_shown_for_machines_with_provenance(flexmem: Flexmem) -> None:
    found = tried(flexmem, TRAJECTORY, "--method", "flexa_unit", "--budget", "2k")
    assert list(found) == KEYS
    assert (found["format"], found["kind"], found["length"]) == ("swe-agent", "steps", 15)
    (row,) = found["methods"]
    assert list(row) == METHOD_KEYS
    assert row["memory_tokens"] + row["window_tokens"] <= row["budget"] == 2_000
    assert (row["calls"], row["units"], row["units_written"], row["over_tokens"]) == (16, 5, 4, 0)
    assert row["utilisation"] == row["memory_tokens"] / row["room"]
    assert sum(row["tokens_by_resolution"].values()) == row["memory_tokens"]
    assert "".join(row["memory"][block["start"] : block["end"]] for block in row["blocks"]) == row["memory"]
    places = {place for block in row["blocks"] for place in block["places"]}
    assert places == {"steps 1-4", "steps 5-6", "steps 7-8", "steps 9-12"}
    assert row["window"][-1]["content"].startswith("Output:\n```\ndiff --git a/parcelsort/routing.py")


def test_a_call_is_shown_for_people_word_for_word(flexmem: Flexmem) -> None:
    arguments = ("try", TRAJECTORY, "--method", "truncation", "--method", "piece_retrieval", "--budget", "2k")
    result = flexmem(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].endswith("trajectory.traj: 15 steps (swe-agent)")
    assert lines[1] == "left out: 1 x field 'query', 15 x field 'state'"
    assert "truncation, budget 2,000: the call after step 15" in lines
    assert "  units    4 of 5 written" in lines
    assert "  window   259 tokens, 6 messages" in lines
    assert "  outside  53 tokens of the task, for which the budget does not pay" in lines
    rows = tried(flexmem, *arguments[1:])["methods"]
    assert [row["method"] for row in rows] == ["truncation", "piece_retrieval"]
    for row in rows:
        window = "".join(f"[{said['role']}]\n{said['content']}\n" for said in row["window"])
        whole = f"--- memory: {row['method']}\n{row['memory']}--- recent window: {row['method']}\n{window}"
        assert whole in result.stdout
    assert flexmem(*arguments).stdout == result.stdout


def test_a_question_is_shown_without_a_window(flexmem: Flexmem) -> None:
    question = "Which hive got a queen from Almut?"
    arguments = (CHAT, "--method", "piece_retrieval", "--budget", "120", "--query", question)
    shown = flexmem("try", *arguments).stdout
    assert f"piece_retrieval, budget 120: the question '{question}'" in shown
    assert "3 of 3 written" in shown
    assert "recent window" not in shown
    assert "I gave it the queen from Almut.\n" in shown
    found = tried(flexmem, *arguments)
    assert found["query"] == question
    (row,) = found["methods"]
    assert (row["window"], row["window_tokens"], row["room"]) == ([], 0, 120)


def test_a_chats_next_call_is_shown(flexmem: Flexmem) -> None:
    shown = flexmem("try", CHAT, "--method", "truncation", "--budget", "300").stdout
    assert "truncation, budget 300: the call after message 19" in shown
    assert shown.endswith("[user]\nWhen does your ferry leave on Sunday?\n")


def test_an_earlier_call_is_shown(flexmem: Flexmem) -> None:
    found = tried(flexmem, TRAJECTORY, "--method", "truncation", "--budget", "2k", "--at", "9")
    assert found["length"] == 9
    assert "10 passed in 0.09s" not in json.dumps(found)


def test_what_fits_into_the_window_is_said(flexmem: Flexmem) -> None:
    shown = flexmem("try", BLOCKS, "--method", "truncation").stdout
    assert "  memory   none: all that has been said is in the recent window\n" in shown
    assert "left out: 1 x thinking part\n" in shown
    assert "--- memory" not in shown


def test_tool_calls_of_the_window_are_shown(flexmem: Flexmem) -> None:
    shown = flexmem("try", TOOL_CALLS, "--method", "truncation").stdout
    assert '"name": "timetable"' in shown
    assert "[tool]\n14:07 RE 74, platform 3\n15:07 RE 74, platform 3\n" in shown


def test_a_task_stands_in_for_the_logs_own(flexmem: Flexmem, tmp_path: Path) -> None:
    found = tried(flexmem, TRAJECTORY, "--method", "truncation", "--task", "Count the shelves.")
    assert (found["task"], found["methods"][0]["outside_tokens"]) == ("Count the shelves.", 4)
    bare = tmp_path / "bare.traj"
    bare.write_text(json.dumps({"trajectory": content(TRAJECTORY)["trajectory"]}), "utf-8")
    shown = flexmem("try", bare, "--method", "truncation").stdout
    assert "note: the log names no task, so memory is asked with the newest steps alone" in shown


def test_options_are_yaml(flexmem: Flexmem) -> None:
    arguments = (TRAJECTORY, "--method", "flexa_unit", "--budget", "2k")
    plain, halved = tried(flexmem, *arguments), tried(flexmem, *arguments, "--option", "timeline=false")
    assert halved["options"] == {"timeline": False}
    assert "merged" in plain["methods"][0]["tokens_by_resolution"]
    assert halved["methods"][0]["tokens_by_resolution"].keys() <= {"raw", "excerpt", "frame"}


def test_a_method_with_a_model_is_shown_with_what_it_did_instead(flexmem: Flexmem) -> None:
    arguments = ("--method", "amem", "--provider", "scripted", "--model", "garbage", "--budget", "2k")
    (row,) = tried(flexmem, TRAJECTORY, *arguments)["methods"]
    assert row["fallbacks"]
    reason, count = next(iter(row["fallbacks"].items()))
    assert f"  note     {count} x {reason}" in flexmem("try", TRAJECTORY, *arguments).stdout


def test_a_memory_over_its_room_is_said_to_be(flexmem: Flexmem, monkeypatch: pytest.MonkeyPatch) -> None:
    from flexmem.memory.baselines import truncation

    async def boundless(*_: object) -> Rendering:
        return Rendering("word " * 500, 1)

    monkeypatch.setattr(truncation.TruncationView, "render", boundless)
    arguments = (CHAT, "--method", "truncation", "--budget", "300")
    (row,) = tried(flexmem, *arguments)["methods"]
    assert row["over_tokens"] == row["memory_tokens"] - row["room"] > 0
    assert (
        f"{row['over_tokens']} tokens more than its room: a defect of the method" in flexmem("try", *arguments).stdout
    )


def test_lone_surrogates_and_marks_are_printed(flexmem: Flexmem, tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('[{"role": "user", "content": "half \\ud800 [bold]word[/bold]"}]', "utf-8")
    assert flexmem("try", path, "--method", "truncation").stdout.endswith("[user]\nhalf \ufffd [bold]word[/bold]\n")


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((CHAT, "--method", "flexa_pice"), "unknown method 'flexa_pice'; did you mean 'flexa_piece'?"),
        ((CHAT, "--method", "full_history"), "--method full_history: a control arm of sweeps, not a memory method"),
        ((CHAT, "--method", "truncation", "--method", "truncation"), "--method truncation: it is given twice"),
        ((CHAT, "--method", "observation_masking"), "method 'observation_masking' is for an agent's steps; "),
        ((CHAT, "--method", "amem"), "method 'amem' writes with a model, and none is given (--model NAME)"),
        (
            (CHAT, "--method", "truncation", "--budget", "4q"),
            "--budget 4q: a budget is a number of tokens",
        ),
        ((CHAT, "--method", "truncation", "--budget", "0"), "--budget 0: Input should be greater than 0"),
        ((CHAT, "--method", "truncation", "--budget", "8"), "method 'truncation', budget 8, the call after message "),
        ((CHAT, "--method", "truncation", "--query", " "), "--query: it is empty"),
        ((CHAT, "--method", "truncation", "--task", "x"), f"--task: {CHAT} is a chat, which has no task; ask about it"),
        ((CHAT, "--method", "truncation", "--sample", "1"), f"{CHAT}: only an Inspect log has samples"),
        ((CHAT, "--method", "truncation", "--at", "20"), f"{CHAT}: there is no message 20; it has 19 messages"),
        ((CHAT, "--method", "truncation", "--option", "x"), "--option x: an option is KEY=VALUE"),
        ((CHAT, "--method", "truncation", "--option", "x=["), "--option x=[: its value is no YAML"),
        ((CHAT, "--method", "truncation", "--option", "a=1", "--option", "a=2"), "--option a=2: a is given twice"),
        (
            (CHAT, "--method", "flexa_unit", "--option", "excerpt_cup=1"),
            "method 'flexa_unit' has no option 'excerpt_cup'",
        ),
        ((CHAT, "--method", "amem", "--base-url", "http://localhost"), "--base-url and --provider are about a model"),
        ((CHAT, "--method", "amem", "--model", ""), "--model : model: String should have at least 1 character"),
        (
            (CHAT, "--method", "amem", "--model", "m", "--base-url", "localhost"),
            "m at localhost: `base_url` must start with http://",
        ),
        (
            (CHAT, "--method", "amem", "--provider", "scripted", "--model", "sing"),
            "no scripted rule is called 'sing'; known: ",
        ),
        ((CHAT, "--method", "truncation", "--format", "inspect"), f"{CHAT}: expected an Inspect log"),
        ((INSPECT, "--method", "truncation"), f"{INSPECT}: it has several samples; name one (id/epoch): vault/1, "),
        (("gone.json", "--method", "truncation"), "gone.json: No such file or directory"),
        ((CHAT.parent, "--method", "truncation"), f"{CHAT.parent}: holds no steps of an agent"),
    ],
)
def test_what_cant_be_shown_ends_with_2_and_one_message(
    arguments: tuple[object, ...], said: str, flexmem: Flexmem
) -> None:
    assert message(flexmem("try", *arguments)).startswith(said)


def test_a_model_without_a_key_is_said_in_one_message(flexmem: Flexmem) -> None:
    said = message(flexmem("try", TRAJECTORY, "--method", "amem", "--model", "some-model", "--budget", "2k"))
    assert "OPENAI_API_KEY" in said


def test_a_model_at_an_address_of_ones_own_is_asked(flexmem: Flexmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    arguments = ("--method", "summary", "--model", "mine", "--budget", "2k")
    with ChatEndpoint([ok("Heavy parcels went to the wrong bay.")]) as endpoint:
        (row,) = tried(flexmem, TRAJECTORY, *arguments, "--base-url", endpoint.url)["methods"]
    assert "Heavy parcels went to the wrong bay." in row["memory"]
    assert [call.body["model"] for call in endpoint.log] == ["mine"] * 4  # one a unit that left the window


@pytest.mark.parametrize("arguments", [("--at", "0"), ("--format", "xml"), ("--mehtod", "x")])
def test_a_wrong_option_of_the_command_line_ends_with_2(arguments: tuple[str, ...], flexmem: Flexmem) -> None:
    assert flexmem("try", CHAT, "--method", "truncation", *arguments).exit_code == 2


def test_a_method_is_needed(flexmem: Flexmem) -> None:
    result = flexmem("try", CHAT)
    assert result.exit_code == 2
    assert "--method" in result.stderr


# ---------------------------------------------------------------- what the pages say


@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_command_runs(command: str, flexmem: Flexmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = flexmem(*shlex.split(command)[1:])
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert result.stdout


def test_the_readmes_command_runs_with_the_real_embedder(tmp_path: Path) -> None:
    assert len(COMMANDS) > 5
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(COMMANDS[1])],
        cwd=ROOT,
        env={**os.environ, "FLEXMEM_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "I gave it the queen from Almut." in done.stdout
    assert (tmp_path / "vectors.sqlite").exists()
