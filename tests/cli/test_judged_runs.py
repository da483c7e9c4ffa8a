"""Commands on runs with replies and judgements: what they do, and how they refuse. Nothing here starts Ray: all
episodes are there, so only judging is left to ``run``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from flexmem.dataset import open_table
from flexmem.sweep.ledger import REPLIES
from flexmem.sweep.results import parts
from tests.llm.endpoint import ChatEndpoint, ok, status
from tests.sweep.endpoint import free_port
from tests.sweep.harness import LOCOMO_SMALL, InProcess, contents, open_manifest, rows, sweep

from .conftest import READ, SCRIPTED_JUDGES
from .test_bad_input import message

Flexmem = Callable[..., Result]
Written = Callable[..., Path]

REPLIES_TO_JUDGE = 26  # 13 questions of categories 1 to 4 in the two conversations, two arms
READY = "read: 30 of 30 episodes, 0/s\n"


def with_judges(*judges: dict[str, Any]) -> dict[str, Any]:
    """`READ`'s models with other judges."""
    return {**READ["models"], "judges": list(judges)}


def judge_at(url: str, label: str = "late") -> dict[str, Any]:
    """A judge behind an endpoint of this machine."""
    return {"label": label, "model": {"model": "local", "base_url": url, "attempts": 1}}


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    """A judge that says yes."""
    with ChatEndpoint([ok("yes")]) as started:
        yield started


# ---------------------------------------------------------------- run and status


def test_a_run_whose_replies_are_not_judged_is_incomplete(flexmem: Flexmem, read: Path) -> None:
    result = flexmem("status", read, "--json")
    assert result.exit_code == 1
    shown = json.loads(result.stdout)
    assert (shown["done"], shown["planned"], shown["complete"]) == (30, 30, False)
    one = {"planned": REPLIES_TO_JUDGE, "done": 0, "failed": 0}
    assert shown["judgements"] == {
        "planned": 2 * REPLIES_TO_JUDGE,
        "done": 0,
        "failed": 0,
        "running": False,
        "rate": None,
        "eta_s": None,
        "by_judge": [{"judge": "strict", **one}, {"judge": "kind", **one}],
    }
    assert "judge strict: 0 of 26 replies judged" in flexmem("status", read).stdout.splitlines()


def test_a_run_goes_on_with_judging_and_shows_it(flexmem: Flexmem, read: Path, written: Written) -> None:
    result = flexmem("run", written(READ), "--out", read, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["judging"] == {"wanted": 52, "done": 52, "errors": {}}
    first, last = result.stderr.removeprefix(READY).splitlines()
    assert first == "read: 0 of 52 judgements, 0/s"
    assert last.startswith("read: 52 of 52 judgements, ")
    assert flexmem("status", read).exit_code == 0


def test_a_run_whose_judge_is_down_ends_with_1_and_goes_on_later(
    flexmem: Flexmem, read: Path, written: Written
) -> None:
    with ChatEndpoint([status(503)]) as down:
        config = written(READ, models=with_judges(SCRIPTED_JUDGES[0], judge_at(down.url, "kind")))
        manifest = json.loads((read / "manifest.json").read_text())
        del manifest["judges"]["kind"]
        (read / "manifest.json").write_text(json.dumps(manifest))
        result = flexmem("run", config, "--out", read, "--json")
        assert result.exit_code == 1
        assert "incomplete: 26 replies are still to be judged; the same command resumes" in result.stderr
        assert flexmem("status", read).exit_code == 1
        down.script[:] = [ok("no")]
        assert flexmem("run", config, "--out", read, "--json").exit_code == 0
    assert {row["label"] for row in rows(read, "judgements") if row["judge"] == "kind"} == {0.0}


def test_what_another_sweep_left_unjudged_is_said(flexmem: Flexmem, judged: Path, written: Written) -> None:
    """The folder has a judge that this sweep does not name, and it has not judged."""
    manifest = json.loads((judged / "manifest.json").read_text())
    manifest["judges"]["late"] = manifest["judges"]["kind"]
    (judged / "manifest.json").write_text(json.dumps(manifest))
    result = flexmem("run", written(READ), "--out", judged, "--json")
    assert result.exit_code == 1
    said = "26 of 78 judgements are missing, of what other sweeps planned in this folder"
    assert f"incomplete: {said}" in result.stderr.splitlines()


# ---------------------------------------------------------------- run --replay


def test_a_replay_takes_judgements_from_a_finished_run(
    flexmem: Flexmem, read: Path, judged: Path, written: Written
) -> None:
    result = flexmem("run", written(READ), "--out", read, "--replay", judged, "--json")
    assert result.exit_code == 0, result.stderr
    assert not (read / REPLIES).exists()
    keys = [{(row["judgement"], row["label"]) for row in rows(run, "judgements")} for run in (read, judged)]
    assert keys[0] == keys[1]


def test_a_replay_without_a_reply_stops_and_says_which_call(
    flexmem: Flexmem, read: Path, judged: Path, written: Written
) -> None:
    assert flexmem("cache", "prune", judged, "--model", "echo", "--yes").exit_code == 0
    result = flexmem("run", written(READ), "--out", read, "--replay", judged, "--json")
    assert result.exit_code == 1
    assert f"{judged / REPLIES}: has no reply to this judge call of echo; a replay sends nothing." in result.stderr


@pytest.mark.parametrize("content", [None, b"no database at all, though long enough to be one" * 9, b""])
def test_a_replay_of_what_holds_no_replies_is_refused(
    content: bytes | None, flexmem: Flexmem, read: Path, written: Written, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    if content is not None:
        other.mkdir()
        (other / REPLIES).write_bytes(content)
    before = contents(read)
    said = message(flexmem("run", written(READ), "--out", read, "--replay", other), READY)
    assert said.startswith(f"{other / REPLIES}: holds no replies to replay (")
    assert {**contents(read), ".writer.lock": b""} == {**before, ".writer.lock": b""}


# ---------------------------------------------------------------- rejudge


def test_other_judges_stand_beside_those_that_were_there(
    flexmem: Flexmem, judged: Path, written: Written, endpoint: ChatEndpoint
) -> None:
    config = written(READ, models=with_judges(judge_at(endpoint.url)))
    result = flexmem("rejudge", judged, config, "--json")
    assert result.exit_code == 0, result.stderr
    summary = {"wanted": REPLIES_TO_JUDGE, "done": REPLIES_TO_JUDGE, "errors": {}, "stopped": None}
    assert json.loads(result.stdout) == summary
    assert result.stderr.splitlines()[-1].startswith("read: 26 of 26 judgements, ")
    asked = len(endpoint.chats)
    assert 0 < asked <= REPLIES_TO_JUDGE
    again = flexmem("rejudge", judged, config)
    assert again.exit_code == 0
    assert "Judges strict and late, 26 replies: they agree on" in " ".join(again.stdout.split())
    assert again.stdout.endswith("26 of 26 judgements\n")
    assert len(endpoint.chats) == asked
    found = json.loads(flexmem("status", judged, "--json").stdout)["judgements"]
    assert [(one["judge"], one["done"]) for one in found["by_judge"]] == [("strict", 26), ("kind", 26), ("late", 26)]


def test_a_judge_that_is_down_is_found_before_the_run_is_said_to_have_it(
    flexmem: Flexmem, judged: Path, written: Written
) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    before = contents(judged)
    said = message(flexmem("rejudge", judged, written(READ, models=with_judges(judge_at(url)))))
    assert said.startswith(f"local at {url}: the connection failed (")
    assert contents(judged) == before


def test_a_judge_that_fails_is_named_with_how_often_and_ends_with_1(
    flexmem: Flexmem, judged: Path, written: Written
) -> None:
    with ChatEndpoint([status(503)]) as down:
        result = flexmem("rejudge", judged, written(READ, models=with_judges(judge_at(down.url))), "--json")
        assert result.exit_code == 1
        shown = json.loads(result.stdout)
        assert (shown["wanted"], shown["done"]) == (REPLIES_TO_JUDGE, 0)
        assert sum(shown["errors"].values()) == REPLIES_TO_JUDGE
        assert "error: 26 x infrastructure: Transient: local at " in result.stderr
    assert flexmem("status", judged).exit_code == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": {}}, ": names no judges (models.judges)"),
        ({"models": with_judges({**SCRIPTED_JUDGES[0], "max_tokens": 99})}, ": judge 'strict' is there as another one"),
        (
            {"models": with_judges(SCRIPTED_JUDGES[0], SCRIPTED_JUDGES[0])},
            "two judges have the same label",
        ),
        (
            {"benchmarks": [{"name": "synthetic"}]},
            ": has replies to locomo, and the configuration names only synthetic",
        ),
        ({"models": {"judgs": []}}, "models.judgs: unknown key; did you mean 'judges'?"),
    ],
)
def test_judges_that_can_t_be_are_refused(
    changes: dict[str, Any], said: str, flexmem: Flexmem, judged: Path, written: Written
) -> None:
    before = contents(judged)
    assert said in message(flexmem("rejudge", judged, written(READ, **changes)))
    assert contents(judged) == before


def test_other_data_under_the_same_name_is_refused(
    flexmem: Flexmem, judged: Path, written: Written, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(LOCOMO_SMALL.read_bytes() + b"\n")
    config = written(READ, benchmarks=[{"name": "locomo", "options": {"path": str(other)}}])
    assert "its replies are to other data of locomo" in message(flexmem("rejudge", judged, config))


def test_a_run_without_replies_has_nothing_to_judge(flexmem: Flexmem, written: Written, tmp_path: Path) -> None:
    out, evidence_only = tmp_path / "silent", {**READ, "models": {}}
    plan = sweep_plan(**evidence_only)
    open_manifest(out, plan)
    InProcess(plan, out).run()
    result = flexmem("rejudge", out, written(READ))
    assert result.exit_code == 0
    assert f"note: {out} has no reply that a judge scores" in result.stderr


# ---------------------------------------------------------------- cache


def test_kept_replies_are_listed_by_role_and_model(flexmem: Flexmem, judged: Path) -> None:
    result = flexmem("cache", "list", judged, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert [(row["role"], row["model"]) for row in found] == [("judge", "echo"), ("judge", "garbage")]
    sent = rows(judged, "calls")
    for row in found:
        calls = [call for call in sent if call["model"] == row["model"]]
        assert row["replies"] == len(calls)
        assert row["input_tokens"] == sum(call["input_tokens"] for call in calls)
        assert row["usd"] == 0.0
    assert "garbage" in flexmem("cache", "list", judged).stdout


def test_replies_are_pruned_once_it_is_meant(flexmem: Flexmem, judged: Path) -> None:
    before = json.loads(flexmem("cache", "list", judged, "--json").stdout)
    each = before[0]["replies"]
    dry = flexmem("cache", "prune", judged, "--model", "echo")
    assert (dry.exit_code, dry.stdout) == (0, f"{each} replies would be deleted; --yes does it\n")
    assert json.loads(flexmem("cache", "list", judged, "--json").stdout) == before
    assert flexmem("cache", "prune", judged, "--role", "reader", "--yes").stdout == "0 replies deleted\n"
    done = flexmem("cache", "prune", judged, "--model", "echo", "--yes")
    assert (done.exit_code, done.stdout) == (0, f"{each} replies deleted\n")
    assert [row["model"] for row in json.loads(flexmem("cache", "list", judged, "--json").stdout)] == ["garbage"]
    assert flexmem("status", judged).exit_code == 0, "judgements stay"


@pytest.mark.parametrize("command", ["list", "prune"])
def test_where_no_replies_are_kept_that_is_said(
    command: str, flexmem: Flexmem, finished: Path, judged: Path, tmp_path: Path
) -> None:
    assert message(flexmem("cache", command, tmp_path)).startswith(f"{tmp_path}: is not a run folder")
    assert message(flexmem("cache", command, tmp_path / "gone")).startswith(f"{tmp_path / 'gone'}: is not a run folder")
    assert message(flexmem("cache", command, finished)).startswith(f"{finished / REPLIES}: there is no such file")
    (judged / REPLIES).write_bytes(b"no database at all, though long enough to be one" * 9)
    assert message(flexmem("cache", command, judged)).startswith(f"{judged / REPLIES}: can't be ")


# ---------------------------------------------------------------- collect


def test_runs_are_collected_and_an_incomplete_one_is_said_to_be(
    flexmem: Flexmem, judged: Path, read: Path, tmp_path: Path
) -> None:
    # Two runs: a copied folder would be the same one.
    manifest = json.loads((read / "manifest.json").read_text())
    (read / "manifest.json").write_text(json.dumps({**manifest, "run_id": "another"}))
    both = tmp_path / "both"
    result = flexmem("collect", both, judged, read, "--json")
    assert result.exit_code == 0
    taken = json.loads(result.stdout)
    assert [(one["label"], one["replaced"], one["rows"]["episodes"]) for one in taken] == [
        ("judged", False, 30),
        ("read", False, 30),
    ]
    assert result.stderr == f"note: {read} is incomplete: 52 of 52 judgements are missing\n"
    assert open_table(both / "judgements").count_rows() == 52
    again = flexmem("collect", both, judged)
    assert again.stdout == "judged: brought up to date, 30 episodes\n"


def test_what_can_t_be_collected_is_named(flexmem: Flexmem, judged: Path, read: Path, tmp_path: Path) -> None:
    both = tmp_path / "both"
    assert message(flexmem("collect", both, tmp_path / "gone")).startswith(f"{tmp_path / 'gone'}: is not a run folder")
    assert message(flexmem("collect", both, tmp_path)).startswith(f"{tmp_path}: is not a run folder")
    assert "--label names one run" in message(flexmem("collect", both, judged, read, "--label", "x"))
    assert message(flexmem("collect", judged, read)).startswith(f"{judged}: holds other files (")
    assert "use letters" in message(flexmem("collect", both, judged, "--label", "a/b"))
    assert not both.exists()
    assert flexmem("collect", both, judged, "--label", "first").exit_code == 0
    assert "the run is there as 'first'" in message(flexmem("collect", both, judged))
    torn = parts(read, "episodes")[0]
    torn.write_bytes(torn.read_bytes()[:-100])
    assert message(flexmem("collect", both, read)).startswith(f"{torn}: can't be read (")
    (both / "collection.json").write_text("{")
    assert message(flexmem("collect", both, judged)).startswith(f"{both / 'collection.json'}: is damaged (")


# ---------------------------------------------------------------- compare


def test_two_arms_are_compared_question_by_question(flexmem: Flexmem, judged: Path) -> None:
    result = flexmem("compare", judged, "piece_retrieval", "truncation", "--json")
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout)
    assert (found["first"], found["second"], found["budget"], found["left_out"]) == (
        "piece_retrieval",
        "truncation",
        400,
        0,
    )
    assert (found["questions"], found["conversations"]) == (15, 2)
    assert found["difference"] == pytest.approx(found["score_first"] - found["score_second"])
    shown = flexmem("compare", judged, "piece_retrieval", "truncation").stdout
    assert "15 in 2" in shown
    assert "truncation" in shown


def test_what_is_not_judged_is_left_out_of_a_comparison(flexmem: Flexmem, read: Path) -> None:
    (found,) = json.loads(flexmem("compare", read, "piece_retrieval", "truncation", "--json").stdout)
    assert (found["questions"], found["left_out"]) == (2, REPLIES_TO_JUDGE)  # category 5 has a score of its own


def test_an_arm_or_a_run_that_is_not_there_is_named(flexmem: Flexmem, judged: Path, tmp_path: Path) -> None:
    said = message(flexmem("compare", judged, "piece_retrieval", "nope"))
    assert said == f"{judged}: has no arm 'nope'; it has piece_retrieval, truncation"
    assert message(flexmem("compare", tmp_path / "gone", "a", "b")) == f"{tmp_path / 'gone'}: no such folder"
    assert message(flexmem("compare", tmp_path, "a", "b")).startswith(f"{tmp_path} is not a run folder")
    torn = parts(judged, "judgements")[0]
    torn.write_bytes(b"PAR1")
    assert message(flexmem("compare", judged, "piece_retrieval", "truncation")).startswith(f"{torn}: can't be read (")


# ---------------------------------------------------------------- plan --pilot


def sweep_plan(**changes: Any) -> Any:
    """A plan of the sweep that `written` writes."""
    from flexmem.sweep.plan import make_plan

    return make_plan(sweep(**changes))


def test_a_pilot_tells_what_the_whole_takes_and_stays(flexmem: Flexmem, written: Written, tmp_path: Path) -> None:
    from flexmem.cli.pilot import first_instances

    out, plan = tmp_path / "pilot", sweep_plan(**READ)
    first = first_instances(plan, 1)
    open_manifest(out, first)
    InProcess(first, out).run()  # the pilot's episodes are there, so that it need not start Ray
    result = flexmem("plan", written(READ), "--pilot", 1, "--out", out, "--json")
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    reader, judge = shown["estimates"]
    asked = len(rows(out, "episodes"))
    assert (reader["role"], judge["role"]) == ("reader", "judge")
    assert reader["calls"] == {"value": 2.0 * asked, "low": None, "high": None}
    assert judge["calls"]["value"] == 2 * len(rows(out, "judgements"))
    assert shown["detectable"] == [
        {"benchmark": "locomo", "clusters": 2, "comparisons": 1, "median": None, "most": None}
    ]
    said = " ".join(flexmem("plan", written(READ), "--pilot", 1, "--out", out).stdout.split())
    assert "from 1 of 2 instances of locomo" in said
    assert "a pilot of one instance does not tell what difference 2 would show; run two or more" in said


def test_a_pilot_of_more_instances_than_there_are_is_the_sweep(
    flexmem: Flexmem, judged: Path, written: Written
) -> None:
    result = flexmem("plan", written(READ), "--pilot", 9, "--out", judged)
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "30 [30, 30]" in said
    assert "from 2 of 2 instances of locomo" in said
    assert "locomo: its 2 instances would show a difference of" in said


def test_a_sweep_of_one_instance_shows_no_difference(flexmem: Flexmem, written: Written, tmp_path: Path) -> None:
    """One conversation: no interval, whatever the pilot finds."""
    one = {
        **READ,
        "benchmarks": [{"name": "locomo", "options": {"path": str(LOCOMO_SMALL), "conversations": ["talk-1"]}}],
    }
    out, plan = tmp_path / "one", sweep_plan(**one)
    open_manifest(out, plan)
    InProcess(plan, out).run()
    said = " ".join(flexmem("plan", written(one), "--pilot", 1, "--out", out).stdout.split())
    assert "locomo: one instance shows no difference, however large" in said


def test_a_pilot_that_can_t_be_is_refused(
    flexmem: Flexmem, judged: Path, finished: Path, written: Written, tmp_path: Path
) -> None:
    config = written(READ)
    assert message(flexmem("plan", config, "--pilot", 2)).startswith("a pilot keeps its results: give --out")
    assert flexmem("plan", config, "--pilot", 0, "--out", tmp_path / "new").exit_code == 2
    said = message(flexmem("plan", config, "--pilot", 1, "--out", judged))
    assert "questions of the run are not in this sweep" in said
    assert message(flexmem("plan", config, "--pilot", 1, "--out", finished)).startswith(f"{finished}: holds results of")
    shutil.copyfile(config, tmp_path / "file")
    assert "is not a folder" in message(flexmem("plan", config, "--pilot", 1, "--out", tmp_path / "file"))
    url = f"http://127.0.0.1:{free_port()}/v1"
    down = written(READ, models={"reader": {"model": {"model": "local", "base_url": url}}})
    result = flexmem("plan", down, "--pilot", 1, "--out", tmp_path / "new")
    assert result.exit_code == 2
    assert f"error: local at {url}: the connection failed (" in result.stderr
    assert not (tmp_path / "new" / "manifest.json").exists()


def test_a_pilot_that_does_not_finish_ends_with_1(flexmem: Flexmem, read: Path, written: Written) -> None:
    with ChatEndpoint([status(503)]) as down:
        manifest = json.loads((read / "manifest.json").read_text())
        (read / "manifest.json").write_text(json.dumps({**manifest, "judges": {}}))
        config = written(READ, models=with_judges(judge_at(down.url)))
        result = flexmem("plan", config, "--pilot", 2, "--out", read)
    assert result.exit_code == 1
    said = "error: the pilot did not finish: 26 of 26 judgements are missing; the same command resumes"
    assert said in result.stderr.splitlines()
