"""Sweeps whose every role is asked over HTTP, then once more for nothing: those of docs/local-model.md, and repeats."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from flexmem.analysis.costs import spent
from flexmem.analysis.frames import load
from flexmem.analysis.report import to_markdown
from flexmem.llm.config import make_model
from flexmem.llm.reply_store import ReplayStore, SqliteReplyStore
from flexmem.sweep.config import SweepConfig, parse_config
from flexmem.sweep.judging import judge_run
from flexmem.sweep.ledger import REPLIES, export_calls
from flexmem.sweep.plan import make_plan
from flexmem.sweep.preflight import configured_models

from ..llm.endpoint import Call, ChatEndpoint, replying
from .harness import LOCOMO_SMALL, InProcess, open_manifest, rows, sweep

SWEEPS = Path(__file__).parents[2] / "ray_jobs" / "sweeps"
FIXTURES = LOCOMO_SMALL.parents[1]
STAND_INS = {
    "locomo": {"path": str(LOCOMO_SMALL), "categories": [1, 2, 3, 4]},
    "longmemeval": {"path": str(FIXTURES / "longmemeval" / "small.json")},
    "personamem": {"path": str(FIXTURES / "personamem")},
}
"""What stands in for each benchmark's options where its data is not at hand."""


def by_prompt(call: Call) -> str:
    """The same for the same prompt, in the form that the role asks for; models differ as judges."""
    digest = hashlib.sha256(f"{call.prompt}{call.body['model']}".encode()).hexdigest()
    if "JSON only" in call.prompt:
        return json.dumps({"record": f"they spoke of {digest[:12]}", "keywords": [], "entities": []})
    if "yes or no" in call.prompt:
        return "yes" if int(digest, 16) % 2 else "no"
    return f"<final_answer>({'abcd'[int(digest, 16) % 4]})" if "<final_answer>" in call.prompt else digest[:12]


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with ChatEndpoint([replying(by_prompt)]) as serving:
        yield serving


def run(config: SweepConfig, out: Path, replay: Path | None = None) -> None:
    """Read and judge, as an engine does it."""
    plan = make_plan(config)
    open_manifest(out, plan)
    replies = replay / REPLIES if replay is not None else None
    store = SqliteReplyStore(out / REPLIES, "session") if replies is None else ReplayStore(replies)
    try:
        assert set(InProcess(plan, out, replies=store).run()) == {"ok"}
    finally:
        store.close()
    judges = config.models.judges
    judged = judge_run(plan.benchmarks, judges, out, lambda entry: make_model(entry.model), replay=replies)
    assert judged.complete
    export_calls(out)


def tables(out: Path) -> str:
    """All that a report says of a run but times and what was sent."""
    text = re.sub(r"\*\*Time per rendering.*?\n\n.*?\n\n", "", to_markdown(load(out)), flags=re.DOTALL)
    return re.sub(r"- Sent for the .*\n", "", text)


@pytest.mark.parametrize("name", ["local-model", "local-model-by-rule"])
@pytest.mark.parametrize("real", [False, True], ids=["stand-ins", "real data"])
def test_a_small_model_s_sweep_asks_every_role_and_replays(
    name: str,
    real: bool,
    tmp_path: Path,
    endpoint: ChatEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    text = (SWEEPS / f"{name}.yaml").read_text()
    for port in (8081, 8082):
        text = text.replace(f"http://127.0.0.1:{port}/v1", endpoint.url)
    content = yaml.safe_load(text)
    if real:
        monkeypatch.setenv("FLEXMEM_DATA", str(request.getfixturevalue("flexmem_data")))
    else:
        for entry in content["benchmarks"]:
            entry["options"] = STAND_INS[entry["name"]]
    config = parse_config(content, name)

    run(config, tmp_path / "run")
    writes = config.models.memory is not None
    asked = Counter(row["role"] for row in rows(tmp_path / "run", "calls"))
    assert asked.keys() == {"reader", "judge"} | ({"memory"} if writes else set())
    assert {call.body["model"] for call in endpoint.chats} == {model.model for model in configured_models(config)}
    assert {role.role: role.usd for role in spent(load(tmp_path / "run"))} == dict.fromkeys(asked, 0.0)
    shown = to_markdown(load(tmp_path / "run"))
    assert "Reader tokens, in and out" in shown
    assert "USD per question, reader and memory" in shown, "a price of 0 is a price"
    assert ("Memory-model tokens, in and out" in shown) == writes
    assert "Judges small and larger" in shown
    assert all(arm in shown for arm in ("always\\_longest", "length\\_rule", "chance")) == ("personamem" in shown)

    before = len(endpoint.log)
    run(config, tmp_path / "again", replay=tmp_path / "run")
    assert len(endpoint.log) == before, "a replay sends nothing"
    assert tables(tmp_path / "again") == tables(tmp_path / "run")


def test_repeats_draw_replies_of_their_own_and_a_replay_gives_each_its_own_again(tmp_path: Path) -> None:
    with ChatEndpoint([replying(lambda call: f"reply {call.number}")]) as endpoint:
        model = {"model": "local", "base_url": endpoint.url, "price": {"input": 1, "output": 1}}
        judges = [{"label": "judge", "model": model}]
        locomo = {"name": "locomo", "options": STAND_INS["locomo"]}
        config = sweep(
            benchmarks=[locomo], repeats=3, models={"reader": {"model": model}, "judges": judges}, budgets=[400]
        )
        run(config, tmp_path / "run")
        found = rows(tmp_path / "run", "episodes")
        assert {row["repeat"] for row in found} == {0, 1, 2}
        repeats: dict[tuple[str, str], set[str]] = {}
        for row in found:
            repeats.setdefault((row["instance"], row["question"]), set()).add(row["reply"])
        assert len(found) == 3 * len(repeats) > 3
        assert {len(replies) for replies in repeats.values()} == {3}, "no reply served two repeats"
        prompts = Counter(call.prompt for call in endpoint.chats if "yes or no" not in call.prompt)
        assert set(prompts.values()) == {3}, "each repeat sent the very same prompt"

        before = len(endpoint.log)
        run(config, tmp_path / "again", replay=tmp_path / "run")
        assert len(endpoint.log) == before, "a replay sends nothing"
        assert tables(tmp_path / "again") == tables(tmp_path / "run")
        again = {row["episode"]: row["reply"] for row in rows(tmp_path / "again", "episodes")}
        assert again == {row["episode"]: row["reply"] for row in found}
