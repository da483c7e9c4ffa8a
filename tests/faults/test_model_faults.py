"""A sweep through an endpoint that fails in every way: complete and right in the end, and its ledger is the endpoint's
own log, call by call; then the same sweep for nothing, from what was kept."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flexmem.sweep.status import read_status

from ..llm.endpoint import (
    Call,
    ChatEndpoint,
    FaultScript,
    answer,
    cut_short,
    error,
    hang,
    raw,
    replying,
    reset,
    status,
)
from ..sweep.drivers import Driver
from ..sweep.harness import by_key, rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RETRIED = {
    "rate": (0.06, status(429, error("slow down", "rate_limit_exceeded"))),
    "rate, come later": (0.04, status(429, error("slow down", "rate_limit_exceeded"), retry_after="1")),
    "overloaded": (0.06, status(503)),
    "broken": (0.04, status(500, "<html>oops</html>")),
    "reset": (0.05, reset),
    "cut short": (0.05, cut_short),
    "hang": (0.02, hang),
    "half JSON": (0.05, raw('{"choices": [')),
    "HTML with 200": (0.05, raw("<html>busy</html>", "text/html")),
    "no choices": (0.05, answer({"object": "chat.completion", "choices": []})),
}
"""Faults that a client should get over."""


def reply(call: Call) -> str:
    digest = hashlib.sha256(call.prompt.encode()).hexdigest()[:12]
    record = json.dumps({"record": digest, "keywords": [], "entities": []})
    return record if "JSON only" in call.prompt else digest


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with ChatEndpoint([FaultScript(5, RETRIED, replying(reply))]) as serving:
        yield serving


def settings(url: str) -> dict[str, Any]:
    model = {"model": "local", "base_url": url, "timeout_s": 2.0, "attempts": 8, "requests_per_minute": 60_000}
    return {
        "benchmarks": [{"name": "synthetic", "options": {"conversations": 2, "tokens": 4_000, "questions": 10}}],
        "arms": [
            "no_memory",
            "piece_retrieval",
            {"method": "flexa_unit", "label": "by_model", "options": {"writer": "model"}},
        ],
        "budgets": [300, 600],
        "models": {"reader": {"model": model}, "memory": model},
        "engine": {"workers": 2, "in_flight": 8},
    }


def test_a_storm_of_faults_ends_complete_and_the_ledger_is_the_endpoint_s_log(
    tmp_path: Path, cache: Path, endpoint: ChatEndpoint
) -> None:
    driver = Driver(tmp_path, cache, **settings(endpoint.url))
    try:
        code, output, errors = driver.finish()
        assert code == 0, errors
        assert json.loads(output)["complete"]
        faults = Counter(call.outcome for call in endpoint.chats)
        assert faults.keys() >= RETRIED.keys(), "every fault was met"
        found = by_key(rows(driver.out, "episodes"))
        assert found.keys() == driver.keys()
        assert {row["outcome"] for row in found.values()} == {"ok"}
        check_ledger(driver.out, endpoint)
        check_replay(driver, endpoint, tmp_path / "again", found)
    finally:
        driver.clean_up()


def check_ledger(out: Path, endpoint: ChatEndpoint) -> None:
    calls = rows(out, "calls")
    assert all(row["attempt"] for row in calls), "every call's outcome is known"
    assert len(calls) == len(endpoint.chats)
    assert sum(row["outcome"] == "reply" for row in calls) == sum(call.outcome == "reply" for call in endpoint.chats)
    assert sum(row["status"] == 429 for row in calls) == sum(call.outcome.startswith("rate") for call in endpoint.chats)
    assert sum(row["input_tokens"] or 0 for row in calls if row["outcome"] == "reply") == 7 * sum(
        call.outcome == "reply" for call in endpoint.chats
    )
    assert {row["role"] for row in calls} == {"reader", "memory"}
    assert {row["subject"] for row in calls if row["role"] == "reader"} <= {
        row["episode"] for row in rows(out, "episodes")
    }
    assert {row["subject"] for row in calls if row["role"] == "memory"} <= {row["build"] for row in rows(out, "builds")}
    memory = sum(row["memory_calls"] for row in rows(out, "builds"))
    replied = Counter(row["role"] for row in calls if row["outcome"] == "reply")
    assert memory >= replied["memory"] > 0  # equal prompts are one call


def check_replay(driver: Driver, endpoint: ChatEndpoint, again: Path, found: dict[str, dict[str, Any]]) -> None:
    before = len(endpoint.log)
    command = [*driver.command[:-3], "--out", str(again), "--replay", str(driver.out), "--json"]
    code, output, errors = driver.finish(command)
    assert code == 0, errors
    assert json.loads(output)["complete"]
    assert len(endpoint.log) == before, "a replay sends nothing"
    own = ("finished_at", "render_ms", "read_s", "attempts")
    replayed = by_key(rows(again, "episodes"))
    assert {k: {n: v for n, v in row.items() if n not in own} for k, row in replayed.items()} == {
        k: {n: v for n, v in row.items() if n not in own} for k, row in found.items()
    }
    assert read_status(again)["complete"]


def test_a_fault_that_no_retry_mends_is_recorded_for_what_it_is(tmp_path: Path, cache: Path) -> None:
    lasting = {
        "overflow": (0.2, status(400, error("too long", "context_length_exceeded"))),
        "refused": (0.2, replying(reply, refusal="I can't help with that")),
        "down": (0.2, status(503)),
    }
    model = {"timeout_s": 2.0, "attempts": 2}
    with ChatEndpoint([FaultScript(3, lasting, replying(reply), most=1_000)]) as endpoint:
        changed = settings(endpoint.url)
        changed["models"] = {"reader": {"model": {**changed["models"]["reader"]["model"], **model}}}
        driver = Driver(tmp_path, cache, **{**changed, "arms": ["no_memory", "piece_retrieval", "truncation"]})
        try:
            code, output, errors = driver.finish()
            assert code == 1, errors
            assert not json.loads(output)["complete"]
            found = rows(driver.out, "episodes")
            classes = Counter(row["error_class"] for row in found)
            assert classes["limit"] > 0
            assert classes["agent"] > 0
            assert {row["score"] for row in found if row["outcome"] == "failed"} == {0.0}
            failed = rows(driver.out, "failures")
            assert failed
            assert {row["error_class"] for row in failed} == {"infrastructure"}
            assert len({row["episode"] for row in failed}) + len(found) == len(driver.keys())
            said = read_status(driver.out)
            assert said["done"] == len(found)
            assert said["failures"]["infrastructure"] == len(failed)
            assert len(rows(driver.out, "calls")) == len(endpoint.chats)
        finally:
            driver.clean_up()


def test_a_cap_stops_the_run_and_a_higher_one_goes_on(tmp_path: Path, cache: Path) -> None:
    with ChatEndpoint([replying(reply)]) as endpoint:
        changed = settings(endpoint.url)
        priced = {**changed["models"]["reader"]["model"], "price": {"input": 1_000, "output": 1_000}}
        changed["models"] = {"reader": {"model": priced, "max_tokens": 20}}
        changed["arms"] = ["piece_retrieval", "truncation"]
        first = Driver(tmp_path, cache, **{**changed, "engine": {**changed["engine"], "max_usd": 0.9}})
        try:
            code, output, errors = first.finish()
            assert code == 1, errors
            assert "cap of 0.90 USD is reached" in json.loads(output)["stopped"]
            assert "raise engine.max_usd" in errors
            spent = sum(row["usd"] for row in rows(first.out, "calls") if row["attempt"])
            assert 0 < spent <= 0.9
            assert spent == pytest.approx(0.01 * len(endpoint.chats))  # 10 tokens at 1,000 USD a million
            kept = by_key(rows(first.out, "episodes"))
            assert kept
            raised = {**changed, "engine": {**changed["engine"], "max_usd": 200.0}}
            first.config.write_text(json.dumps({"name": "test", **raised}))
            sent = len(endpoint.chats)
            code, output, errors = first.finish()
            assert code == 0, errors
            found = by_key(rows(first.out, "episodes"))
            assert {key: found[key] for key in kept} == kept
            assert found.keys() == first.keys()
            prompts = Counter(call.prompt for call in endpoint.chats)
            assert set(prompts.values()) == {1}, "nothing was paid twice"
            assert len(endpoint.chats) > sent
        finally:
            first.clean_up()


def test_a_cap_without_a_price_is_refused_before_anything_is_sent(tmp_path: Path, cache: Path) -> None:
    with ChatEndpoint([replying(reply)]) as endpoint:
        changed = settings(endpoint.url)
        driver = Driver(tmp_path, cache, **{**changed, "engine": {"max_usd": 5}})
        try:
            code, output, errors = driver.finish()
            assert (code, output) == (2, "")
            assert "the price of local is not known; give `price`" in errors
            assert not endpoint.log
        finally:
            driver.clean_up()
