"""Memories that are written for one budget, and memories whose every question asks the model anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flexmem import tokens
from flexmem.analysis.costs import costs
from flexmem.analysis.frames import load
from flexmem.llm.form_filler import stated_length
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory import registry
from flexmem.memory.assemble import assemble
from flexmem.memory.base import IndexedBuild
from flexmem.memory.protocol import (
    Budget,
    FidelityCard,
    MemoryView,
    MethodConfig,
    MethodInfo,
    Query,
    Rendering,
    Resolution,
)
from flexmem.memory.registry import MethodSpec
from flexmem.memory.selection import Fragment
from flexmem.ports import ChatRequest, IndexConfig, Message, Services
from flexmem.sweep import worker
from flexmem.sweep.plan import make_plan

from .harness import InProcess, open_manifest, rows, sweep

MEMORY: dict[str, Any] = {"memory": {"provider": "scripted", "model": "echo", "price": {"input": 1, "output": 1}}}


class Telling(IndexedBuild):
    """Shows the room that it was made for; asks the model about every query if it is to."""

    def __init__(self, services: Services, *, asks: bool) -> None:
        super().__init__("telling", MethodConfig(), services, IndexConfig(dense=False))
        self.asks = asks

    def view(self) -> MemoryView:
        return TellingView(self)


class TellingView:
    """Asks anew each time."""

    def __init__(self, build: Telling) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        text = f"[u00] room {self._build.services.room}\n"
        model = self._build.services.model
        if self._build.asks and model is not None and self._build.units:
            await model.complete(ChatRequest((Message("user", query.text),), "memory", 50))
        return assemble([Fragment(text, tokens.count(text), (0,), Resolution.SUMMARY)] if self._build.units else [])


def register(monkeypatch: pytest.MonkeyPatch, name: str, *, asks: bool, **declares: Any) -> None:
    card = FidelityCard(source="a test", follows="-", ours="-", differs="-", tuning="-")
    info = MethodInfo(name=name, family="fake", summary="a test's", card=card, **declares)
    monkeypatch.setitem(
        registry.methods(),
        name,
        MethodSpec(info, MethodConfig(), lambda config, services: Telling(services, asks=asks)),
    )


def test_a_history_is_written_anew_for_every_budget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    register(monkeypatch, "per_budget", asks=False, build_per_budget=True)
    plan = make_plan(sweep(arms=["per_budget", "piece_retrieval"], budgets=[400, 800]))
    groups = [group for group in plan.groups() if group.arm == "per_budget"]
    assert [(group.room, {task.budget for task in group.episodes}) for group in groups] == [(400, {400}), (800, {800})]
    assert len({group.build for group in groups}) == 2
    assert len([group for group in plan.groups() if group.arm == "piece_retrieval"]) == 1
    assert plan.size() == (3, sum(len(group.episodes) for group in plan.groups()))

    InProcess(plan, tmp_path).run()
    shown = {(row["budget"], row["memory_tokens"]) for row in rows(tmp_path, "episodes") if row["arm"] == "per_budget"}
    assert shown == {(budget, tokens.count(f"[u00] room {budget}\n")) for budget in (400, 800)}
    assert len({row["build"] for row in rows(tmp_path, "builds") if row["arm"] == "per_budget"}) == 2


def test_a_build_for_all_budgets_has_no_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    register(monkeypatch, "for_all", asks=False)
    plan = make_plan(sweep(arms=["for_all"], budgets=[400, 800]))
    assert [group.room for group in plan.groups()] == [None]


def test_what_each_question_asks_is_in_its_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    register(monkeypatch, "asking", asks=True, reads_with_model=True, asks_per_call=True)
    plan = make_plan(sweep(arms=["asking"], budgets=[400, 800], models=MEMORY))
    open_manifest(tmp_path, plan)
    InProcess(plan, tmp_path).run()
    found = rows(tmp_path, "episodes")
    questions = {q.question_id: q for one in plan.benchmarks[0].instances.values() for q in one.questions}
    assert len(found) == 2 * len(questions)
    for row in found:
        asked = tokens.count(questions[row["question"]].text)
        assert (row["memory_calls"], row["memory_input_tokens"], row["memory_output_tokens"]) == (1, asked, asked)
        assert row["memory_usd"] == pytest.approx(2 * asked / 1e6)
    (added,) = [row for row in rows(tmp_path, "builds") if row["phase"] == "read"]
    assert added["memory_input_tokens"] == sum(row["memory_input_tokens"] for row in found)

    # A cell's own questions, not half of what both budgets asked: each asks the same here.
    mean = sum(2 * tokens.count(question.text) for question in questions.values()) / len(questions)
    for cost in costs(load(tmp_path)):
        assert cost.ask_tokens == cost.tokens == cost.tokens_alone == pytest.approx(mean)
        assert cost.build_tokens == 0


def test_a_reader_with_tools_leaves_a_rendering_for_each_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def answers(request: ChatRequest) -> str:
        if request.role == "memory":
            return stated_length(request)
        used = request.messages[-1].content.count("memory_expand {")
        return '{"tool": "memory_expand", "arguments": {"unit_id": 0}}' if not used else "On the stove."

    monkeypatch.setattr(worker, "make_model", lambda config: ScriptedModel(answers))
    models = {"reader": {"model": {"provider": "scripted", "model": "echo"}}, **MEMORY}
    plan = make_plan(sweep(arms=["tool_memory", "piece_retrieval"], budgets=[2_000], models=models))
    InProcess(plan, tmp_path).run()
    shown = {(row["episode"], row["call"]): row["tokens_by_resolution"] for row in rows(tmp_path, "renderings")}
    for row in rows(tmp_path, "episodes"):
        calls = 2 if row["arm"] == "tool_memory" else 1
        assert [call for episode, call in shown if episode == row["episode"]] == list(range(calls))
        assert row["reply"].startswith("On the stove.") if calls == 2 else row["reply"]
        assert row["attempts"] == calls
        if calls == 2:
            assert "raw" not in {part["name"] for part in shown[row["episode"], 0]}
            assert "raw" in {part["name"] for part in shown[row["episode"], 1]}
            assert row["reader_input_tokens"] > 2 * row["memory_tokens"] - 2_000
            assert row["memory_tokens"] <= 2_000


def test_the_tools_wording_is_part_of_the_keys_of_arms_that_have_them_and_of_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = {"reader": {"model": {"provider": "scripted", "model": "echo"}}, **MEMORY}

    def keys(arm: str) -> set[str]:
        plan = make_plan(sweep(arms=[arm], models=models))
        return {task.key for group in plan.groups() for task in group.episodes}

    before = keys("tool_memory"), keys("piece_retrieval")
    monkeypatch.setattr("flexmem.sweep.plan.tool_digest", lambda: "another")
    assert keys("tool_memory").isdisjoint(before[0])
    assert keys("piece_retrieval") == before[1]
