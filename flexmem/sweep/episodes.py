"""Running the episodes of one build: render, count, read, score, and hand on rows. No Ray here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from flexmem import tokens
from flexmem.agents.answer_recall import WordFinder, answer_words
from flexmem.agents.choice_controls import reply_by_rule
from flexmem.agents.controls import full_history, nothing, oracle_evidence
from flexmem.agents.evidence import EvidenceMap
from flexmem.agents.reader import answer
from flexmem.agents.tool_reader import answer_with_tools
from flexmem.benchmarks.protocol import Benchmark, Instance, Question
from flexmem.llm.errors import ModelError
from flexmem.llm.stored import for_subject
from flexmem.memory.base import IndexedBuild
from flexmem.memory.protocol import Budget, Query, Rendering
from flexmem.memory.tools import ToolView
from flexmem.ports import ChatReply, Usage
from flexmem.sweep.arms import Arm
from flexmem.sweep.build_rows import BuildRows
from flexmem.sweep.builds import FinishedBuild, finish_build, keep
from flexmem.sweep.episode_rows import failed, first_columns, headline, memory_model, reader_columns, unanswered
from flexmem.sweep.failures import FINAL, classify, describe
from flexmem.sweep.histories import History
from flexmem.sweep.metered import TimedModel, metered_reading
from flexmem.sweep.plan import EpisodeTask, Group
from flexmem.sweep.run_tools import RunTools


class StopRun(Exception):
    """Every other call would fail alike (no key, no quota): the run must not go on."""


class ServiceFailedError(Exception):
    """A history could not be prepared, for reasons outside it: its episodes are still to be run."""


@dataclass(frozen=True)
class _Scene:
    """All that the episodes of one group share."""

    group: Group
    arm: Arm
    benchmark: Benchmark
    instance: Instance
    history: History
    finished: FinishedBuild
    rows: BuildRows
    places: EvidenceMap
    words: WordFinder
    cut: str


async def run_group(group: Group, arm: Arm, benchmark: Benchmark, history: History, tools: RunTools) -> dict[str, int]:
    """Run a group's episodes; every one leaves a row in ``episodes`` or in ``failures``. Returns counts by outcome,
    those of failures by their class.

    Raises:
        StopRun: a call failed in a way that all would; rows made so far are delivered.
        Exception: whatever ``tools.sink`` raises where rows can't be delivered.
    """
    counts: dict[str, int] = {}
    try:
        scene = await _set_scene(group, arm, benchmark, history, tools)
    except Exception as error:  # noqa: BLE001 - whatever a method raises is classified and recorded
        for task in group.episodes:
            _fail(group, arm, benchmark, history, task, error, tools, counts)
        await tools.sink.deliver()
        stop_if_fatal(error)
        return counts
    tasks = iter(group.episodes)
    lanes = tools.config.engine.in_flight if tools.reader is not None else 1
    stopped: BaseException | None = None
    undelivered: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as running:
            for _ in range(min(lanes, len(group.episodes))):
                running.create_task(_lane(tasks, scene, tools, counts))
    except* StopRun as stops:
        stopped = stops.exceptions[0]
    except* Exception as failures:  # noqa: BLE001 - raised again below
        undelivered = failures.exceptions[0]
    # Raised in the blocks above, Python before 3.11.4 would wrap them in a group again.
    if undelivered is not None:
        raise undelivered
    if stopped is not None:
        await tools.sink.deliver()
        raise stopped from None
    last = scene.rows.last(_keep(scene, tools))
    if last is not None:
        tools.sink.add("builds", last)
    await tools.sink.deliver()
    return counts


async def _set_scene(group: Group, arm: Arm, benchmark: Benchmark, history: History, tools: RunTools) -> _Scene:
    activity, units = tools.build_tools.activity, history.instance.units
    with activity.during("writing", arm.name):
        finished = await finish_build(arm, units, tools.build_tools, group.repeat, tools.store, group.build, group.room)
    with activity.during("history", f"{group.benchmark}/{group.instance}"):
        places, words, cut = history.lookups(finished.build)
        await tools.rows.add_pieces(tools.sink, cut, units, finished.build.pieces)
    rows = BuildRows(group, arm, history.instance, finished, memory_model(arm, tools))
    tools.sink.add("builds", rows.first())
    if arm.uses_memory_model and not finished.restored:
        # What it has cost is durable before the build is kept: a kept build is never written, and counted, again.
        await tools.sink.deliver()
        keep(finished, arm, tools.store, group.build)
    return _Scene(group, arm, benchmark, history.instance, history, finished, rows, places, words, cut)


async def _lane(tasks: Iterator[EpisodeTask], scene: _Scene, tools: RunTools, counts: dict[str, int]) -> None:
    for task in tasks:
        try:
            row = await _episode(task, scene, tools)
        except Exception as error:  # noqa: BLE001 - whatever a method raises is classified and recorded
            _fail(scene.group, scene.arm, scene.benchmark, scene.history, task, error, tools, counts)
            stop_if_fatal(error)
        else:
            tools.sink.add("episodes", row)
            outcome = row.get("error_class") or row["outcome"]
            counts[outcome] = counts.get(outcome, 0) + 1
        await tools.sink.deliver_if_due()


async def _episode(task: EpisodeTask, scene: _Scene, tools: RunTools) -> dict[str, Any]:
    question = scene.instance.questions[task.question]
    reading: dict[str, Any] = {}
    start = time.perf_counter()
    with metered_reading() as asked:
        if scene.arm.has_tools and tools.reader is not None:
            renderings, reading = await _read_with_tools(scene, question, task, tools)
        else:
            with tools.build_tools.activity.during("rendering", scene.arm.name):
                renderings = (await _render(scene, question, task),)
    seconds = time.perf_counter() - start - reading.get("read_s", 0.0)
    row = first_columns(scene.group, scene.arm, scene.benchmark, scene.instance, question, task, tools)
    row |= _measure(scene, task, question, renderings)
    row |= {"render_ms": seconds * 1e3, "metric": headline(scene.arm, scene.benchmark, tools)}
    row |= {
        "memory_calls": asked.calls,
        "memory_input_tokens": asked.input,
        "memory_output_tokens": asked.output,
        "memory_usd": asked.usd,
    }
    for call, rendering in enumerate(renderings):
        tools.rows.add_rendering(tools.sink, task.key, scene.group.build, scene.cut, rendering, call)
    if row["violation_tokens"]:
        row |= reading
        row |= failed("method", f"the rendering has {row['violation_tokens']} tokens more than its room", row)
    elif reading:
        row |= reading
    elif scene.arm.answers_by_rule:
        row |= _answer_by_rule(scene, question)
    elif tools.reader is not None:
        row |= await _read(scene, question, task.key, renderings[-1], tools)
    else:
        row["score"] = row["verbatim_evidence"]
    return row


def _query(scene: _Scene, question: Question, task: EpisodeTask) -> Query:
    return Query.question(question.text, scene.history.question_vectors[task.question], question.asked_at)


async def _render(scene: _Scene, question: Question, task: EpisodeTask) -> Rendering:
    build, room = scene.finished.build, task.budget
    if scene.arm.method is not None:
        return await build.view().render(_query(scene, question, task), Budget(cast(int, room)))
    if scene.arm.control == "no_memory" or scene.arm.answers_by_rule:
        return nothing()
    if scene.arm.control == "full_history":
        return full_history(cast(IndexedBuild, build))
    return oracle_evidence(cast(IndexedBuild, build), scene.places, question.evidence, cast(int, room))


def _measure(scene: _Scene, task: EpisodeTask, question: Question, renderings: Sequence[Rendering]) -> dict[str, Any]:
    """What the harness itself measures: of the last rendering its count, and what of evidence and answer it shows; of
    the worst, how much it is over its room.
    """
    rendering = renderings[-1]
    counted = tokens.count(rendering.text)
    most = max(counted, *(tokens.count(earlier.text) for earlier in renderings[:-1])) if renderings[1:] else counted
    over = max(0, most - task.budget) if task.budget is not None else 0
    applies = question.scored_by_evidence and not scene.arm.rewrites_text
    seen = scene.places.by_provenance(question.evidence, rendering.shown_pieces())
    wanted = answer_words(question.answer or "")
    extractive = scene.history.extractive[task.question]
    return {
        "scored_by_evidence": question.scored_by_evidence,
        "n_evidence": seen.turns,
        "evidence_visible": seen.visible,
        "evidence_partly": seen.partly,
        "verbatim_evidence": float(seen.all) if applies else None,
        "evidence_rank": scene.history.evidence_ranks[task.question],
        "extractive": extractive,
        "answer_recall": scene.words.recall(wanted, rendering) if extractive else None,
        "room": task.budget,
        "memory_tokens": counted,
        "utilisation": counted / task.budget if task.budget else None,
        "violation_tokens": over,
    }


async def _read(scene: _Scene, question: Question, key: str, rendering: Rendering, tools: RunTools) -> dict[str, Any]:
    """Ask the reader and score its reply. A refusal or a limit scores 0; what the memory showed stands.

    Raises:
        ModelError: one that says nothing of this episode (`flexmem.sweep.failures`).
    """
    entry = tools.config.models.reader
    assert entry is not None
    assert tools.reader is not None
    seed = scene.group.repeat
    prompt = scene.benchmark.reader_prompt(scene.instance, question, seed)
    start = time.perf_counter()
    try:
        with tools.build_tools.activity.during("reader"):
            reply: ChatReply = await answer(
                for_subject(tools.reader, f"episode:{key}"),
                prompt,
                rendering.text,
                max_tokens=entry.max_tokens,
                effort=entry.effort,
            )
    except ModelError as error:
        if classify(error) not in FINAL:
            raise
        return unanswered(error) | {"read_s": time.perf_counter() - start}
    return _scored(scene, question, reply) | {"read_s": time.perf_counter() - start}


async def _read_with_tools(
    scene: _Scene, question: Question, task: EpisodeTask, tools: RunTools
) -> tuple[Sequence[Rendering], dict[str, Any]]:
    """As `_read`, by a reader that may use the memory's tools; also what the memory showed for each of its calls."""
    entry = tools.config.models.reader
    assert entry is not None
    assert tools.reader is not None
    seed = scene.group.repeat
    timed = TimedModel(for_subject(tools.reader, f"episode:{task.key}"), tools.build_tools.activity)
    view = cast(ToolView, scene.finished.build.view())
    query, budget = _query(scene, question, task), Budget(cast(int, task.budget))
    try:
        found = await answer_with_tools(
            timed,
            scene.benchmark.reader_prompt(scene.instance, question, seed),
            view,
            query,
            budget,
            max_tokens=entry.max_tokens,
            effort=entry.effort,
        )
    except ModelError as error:
        if classify(error) not in FINAL:
            raise
        return [await view.render(query, budget)], unanswered(error) | {"read_s": timed.seconds}
    return found.renderings, _scored(scene, question, found.reply) | {"read_s": timed.seconds}


def _scored(scene: _Scene, question: Question, reply: ChatReply) -> dict[str, Any]:
    """A reply, its scores and what it took."""
    scores = scene.benchmark.score(question, reply.text, scene.group.repeat)
    return {
        "reply": reply.text,
        "score": scores[scene.benchmark.metrics[0]],
        "scores": [{"metric": name, "value": value} for name, value in scores.items()],
        **reader_columns(reply.usage, reply.trail),
        "attempts": reply.attempts,
    }


def _answer_by_rule(scene: _Scene, question: Question) -> dict[str, Any]:
    """Score an arm that takes an option by rule, or of which only the expected score is known; neither costs a call."""
    options = question.details["options"]
    reply = reply_by_rule(scene.arm.control or "", options, question.details["length_rule"])
    if reply is None:
        scores: Mapping[str, float] = dict.fromkeys(scene.benchmark.metrics, 1 / len(options))
    else:
        scores = scene.benchmark.score(question, reply, scene.group.repeat)
    return {
        "reply": reply,
        "score": scores[scene.benchmark.metrics[0]],
        "scores": [{"metric": name, "value": value} for name, value in scores.items()],
        **reader_columns(Usage(0, 0), ()),
        "usd": 0.0,
    }


def _fail(
    group: Group,
    arm: Arm,
    benchmark: Benchmark,
    history: History,
    task: EpisodeTask,
    error: Exception,
    tools: RunTools,
    counts: dict[str, int],
) -> None:
    """Record an episode that raised: finished with score 0, or still to be run (`flexmem.sweep.failures`)."""
    question = history.instance.questions[task.question]
    error_class = classify(error)
    counts[error_class] = counts.get(error_class, 0) + 1
    row = first_columns(group, arm, benchmark, history.instance, question, task, tools)
    if error_class in FINAL:
        applies = question.scored_by_evidence and not arm.rewrites_text
        row |= {
            "scored_by_evidence": question.scored_by_evidence,
            "n_evidence": len(question.evidence),
            "evidence_visible": 0,
            "evidence_partly": 0,
            "verbatim_evidence": 0.0 if applies else None,
            "evidence_rank": history.evidence_ranks[task.question],
            "extractive": history.extractive[task.question],
            "answer_recall": 0.0 if history.extractive[task.question] else None,
            "metric": headline(arm, benchmark, tools),
        }
        tools.sink.add("episodes", row | failed(error_class, describe(error), row))
        return
    keys = ("episode", "benchmark", "instance", "question", "arm", "budget", "repeat")
    failure = {key: row[key] for key in keys}
    failure |= {"error_class": error_class, "error": describe(error), "failed_at": datetime.now(UTC)}
    tools.sink.add("failures", failure)


def stop_if_fatal(error: Exception) -> None:
    """Raise `StopRun` where every other call would fail alike."""
    if classify(error) == "configuration":
        raise StopRun(describe(error)) from error


def _keep(scene: _Scene, tools: RunTools) -> dict[str, int]:
    """Keep the build; results stand whether or not that works, so what a method raises here is only recorded."""
    try:
        with tools.build_tools.activity.during("results"):
            keep(scene.finished, scene.arm, tools.store, scene.group.build)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a method raises
        return {f"build not kept ({describe(error)})": 1}
    return {}
