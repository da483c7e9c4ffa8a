"""Running an agent's episodes: lease an environment, act in it with a memory of one's own, grade, and hand on rows. No
Ray here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from flexmem import tokens
from flexmem.agents.agent_memory import AgentMemory
from flexmem.agents.loop import Episode, StepTaken, run_episode
from flexmem.agents.policy import Policy
from flexmem.agents.react import ReactPolicy
from flexmem.benchmarks.agent_protocol import AgentBenchmark, AgentTask, Environments, Grade, Place
from flexmem.benchmarks.protocol import Instance, Question
from flexmem.llm.errors import ModelError
from flexmem.llm.stored import for_subject
from flexmem.memory.protocol import MemoryBuild
from flexmem.ports import Services, Usage
from flexmem.sandbox.errors import EpisodeEndedError
from flexmem.sweep.activity import Stage
from flexmem.sweep.arms import Arm
from flexmem.sweep.episode_rows import failed, first_columns, memory_model, reader_columns
from flexmem.sweep.episodes import StopRun, stop_if_fatal
from flexmem.sweep.failures import FINAL, classify, describe
from flexmem.sweep.metered import Meter, MeteredModel, add, cost
from flexmem.sweep.plan import EpisodeTask, Group
from flexmem.sweep.run_tools import RunTools


@dataclass(frozen=True)
class _Scene:
    group: Group
    arm: Arm
    benchmark: AgentBenchmark
    instance: Instance
    environments: Environments
    tools: RunTools


@dataclass
class _Course:
    """How one episode goes, kept while it does: a failure leaves what was until then."""

    episode: Episode = field(default_factory=Episode)
    task: str = ""
    memory: AgentMemory | None = None
    build: MemoryBuild | None = None
    meter: Meter = field(default_factory=Meter)
    grade: Grade | None = None
    error: Exception | None = None
    environment_s: float = 0.0


async def run_agent_group(
    group: Group,
    arm: Arm,
    benchmark: AgentBenchmark,
    instance: Instance,
    environments: Environments,
    tools: RunTools,
) -> dict[str, int]:
    """Run a group's episodes, as many at a time as there are environments; every one leaves a row in ``episodes`` or in
    ``failures`` (`flexmem.sweep.episodes.run_group`).

    Raises:
        StopRun: a call failed in a way that all would; rows made so far are delivered.
        Exception: whatever ``tools.sink`` raises where rows can't be delivered.
    """
    counts: dict[str, int] = {}
    scene = _Scene(group, arm, benchmark, instance, environments, tools)
    tasks = iter(group.episodes)
    stopped: BaseException | None = None
    undelivered: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as running:
            for _ in range(min(tools.config.engine.environments, len(group.episodes))):
                running.create_task(_lane(tasks, scene, counts))
    except* StopRun as stops:
        stopped = stops.exceptions[0]
    except* Exception as failures:  # noqa: BLE001 - raised again below
        undelivered = failures.exceptions[0]
    if undelivered is not None:
        raise undelivered
    await tools.sink.deliver()
    if stopped is not None:
        raise stopped from None
    return counts


async def _lane(tasks: Iterator[EpisodeTask], scene: _Scene, counts: dict[str, int]) -> None:
    for task in tasks:
        course = _Course()
        try:
            await _run(task, scene, course)
        except Exception as error:  # noqa: BLE001 - whatever a method raises is classified and recorded
            course.error = error
        await _hand_on(task, scene, course, counts)
        if course.error is not None:
            stop_if_fatal(course.error)
        await scene.tools.sink.deliver_if_due()


async def _run(task: EpisodeTask, scene: _Scene, course: _Course) -> None:
    """One episode from lease to grade.

    Raises:
        Exception: what is not the end of an episode: a failure outside it, or of the memory method.
    """
    question = scene.instance.questions[task.question]
    activity = scene.tools.build_tools.activity
    place = Place(scene.arm.name, task.budget, scene.group.repeat, task.key)
    start = time.perf_counter()
    lease = scene.environments.lease(scene.instance, question, place)
    with activity.during("sandbox", f"{scene.group.benchmark}/{question.question_id}"):
        environment = await lease.__aenter__()
    course.environment_s += time.perf_counter() - start
    try:
        await _act_and_grade(task, scene, course, question, environment)
    except BaseException as error:
        if not await lease.__aexit__(type(error), error, error.__traceback__):
            raise
    else:
        start = time.perf_counter()
        await lease.__aexit__(None, None, None)
        course.environment_s += time.perf_counter() - start


async def _act_and_grade(
    task: EpisodeTask, scene: _Scene, course: _Course, question: Question, environment: AgentTask
) -> None:
    activity = scene.tools.build_tools.activity

    def during(stage: str) -> AbstractContextManager[None]:
        return activity.during(cast(Stage, stage), scene.arm.name)

    course.task = environment.prompt.task
    course.build = _new_build(task, scene, course)
    course.memory = AgentMemory(
        course.task,
        task.budget if scene.arm.has_budget else None,
        scene.tools.build_tools.embedder,
        course.build,
        history=f"{question.question_id}/{task.key[:12]}",
        language=scene.benchmark.language,
    )
    policy = environment.policy() or _model_policy(task, scene, environment)
    try:
        await run_episode(
            course.episode, course.memory, policy, environment, scene.benchmark.limits, _spent_usd, during
        )
    except ModelError as error:
        if classify(error) not in FINAL:
            raise
        # The model can't go on; what it has done so far stands and is graded.
        course.error = error
    if course.episode.ended == "sandbox":
        return
    start = time.perf_counter()
    try:
        with activity.during("grading"):
            course.grade = await environment.grade(course.episode)
    except EpisodeEndedError as error:
        course.episode.end("sandbox", error.failure, describe(error))
    course.environment_s += time.perf_counter() - start


def _new_build(task: EpisodeTask, scene: _Scene, course: _Course) -> MemoryBuild | None:
    """The memory of one episode, its index its own."""
    if scene.arm.method is None:
        return None
    made = scene.tools.build_tools
    model = None
    if made.model is not None:
        model = MeteredModel(for_subject(made.model, f"build:{task.key}"), course.meter, made.activity)
    return scene.arm.method.build(Services(made.embedder, made.open_index, model, scene.group.repeat, scene.group.room))


def _model_policy(task: EpisodeTask, scene: _Scene, environment: AgentTask) -> Policy:
    entry, model = scene.tools.config.models.acting, scene.tools.reader
    assert entry is not None
    assert model is not None
    return ReactPolicy(
        for_subject(model, f"episode:{task.key}"),
        environment.prompt,
        scene.benchmark.language,
        max_tokens=entry.max_tokens,
        effort=entry.effort,
    )


# ---------------------------------------------------------------- rows


async def _hand_on(task: EpisodeTask, scene: _Scene, course: _Course, counts: dict[str, int]) -> None:
    """Put an episode's rows into the sink: its own last, and all together."""
    sink, question = scene.tools.sink, scene.instance.questions[task.question]
    row = first_columns(scene.group, scene.arm, scene.benchmark, scene.instance, question, task, scene.tools)
    row["build"] = task.key  # an agent's memory is its episode's own
    error_class = classify(course.error) if course.error is not None else course.episode.failure
    outcome = error_class or "ok"
    counts[outcome] = counts.get(outcome, 0) + 1
    if error_class is not None and error_class not in FINAL:
        keys = ("episode", "benchmark", "instance", "question", "arm", "budget", "repeat")
        failure = {key: row[key] for key in keys}
        assert course.error is not None
        failure |= {"error_class": error_class, "error": describe(course.error), "failed_at": datetime.now(UTC)}
        sink.add("failures", failure)
        return
    row |= _measured(task, scene, course)
    if course.grade is not None:
        row |= _graded(course.grade, scene.benchmark)
    if error_class is not None:
        score = row.get("score") or 0.0
        row |= failed(error_class, describe(course.error) if course.error else course.episode.reason, row)
        row["score"] = 0.0 if error_class == "method" else score
    elif row["violation_tokens"]:
        row |= failed("method", f"a rendering has {row['violation_tokens']} tokens more than its room", row)
    cut = f"{question.question_id}/{task.key}"
    if course.build is not None and course.memory is not None:
        await scene.tools.rows.add_pieces(sink, cut, course.memory.written, course.build.pieces)
        sink.add("builds", _build_row(task, scene, course))
    sink.add("steps", {"episode": task.key, "step": 0, "kind": "task", "output": _utf8(course.task)})
    for step in course.episode.steps:
        if step.context.rendering is not None:
            scene.tools.rows.add_rendering(sink, task.key, task.key, cut, step.context.rendering, step.number - 1)
        sink.add("steps", _step_row(task, step))
    sink.add("episodes", row)


def _measured(task: EpisodeTask, scene: _Scene, course: _Course) -> dict[str, Any]:
    """What the harness itself measures of the steps. Tokens of memory are means over the calls that showed some."""
    steps = course.episode.steps
    shown, rooms, over = [], [], 0
    for step in steps:
        if step.context.rendering is not None and task.budget is not None:
            counted, room = tokens.count(step.context.rendering.text), task.budget - step.context.window_tokens
            shown.append(counted)
            rooms.append(room)
            over = max(over, counted - room)
    uses = [count / room for count, room in zip(shown, rooms, strict=True) if room]
    return {
        "metric": scene.benchmark.metrics[0],
        "score": 0.0,
        "scored_by_evidence": False,
        "extractive": False,
        "room": round(sum(rooms) / len(rooms)) if rooms else None,
        "memory_tokens": round(sum(shown) / len(shown)) if shown else 0,
        "utilisation": sum(uses) / len(uses) if uses else None,
        "violation_tokens": over,
        "steps": len(steps),
        "ended": course.episode.ended,
        "render_ms": 1e3 * sum(step.context_s for step in steps) / len(steps) if steps else None,
        "read_s": sum(step.decide_s for step in steps),
        "environment_s": course.environment_s + sum(step.act_s for step in steps),
        **_asked(scene, course),
    }


def _asked(scene: _Scene, course: _Course) -> dict[str, Any]:
    """What the agent's calls took, those of a call that failed at last included."""
    replies = [step.decision.reply for step in course.episode.steps if step.decision.reply is not None]
    usage = _sum([reply.usage for reply in replies])
    trail = tuple(sent for reply in replies for sent in reply.trail)
    attempts = sum(reply.attempts for reply in replies)
    if isinstance(course.error, ModelError):
        usage = _sum([usage, course.error.usage or Usage()])
        trail, attempts = (*trail, *course.error.trail), attempts + course.error.attempts
    columns = reader_columns(usage, trail) | {"attempts": max(1, attempts)}
    if scene.tools.reader is None:
        columns["usd"] = 0.0  # a rule acts, which costs nothing
    # All that the memory model was asked for stands in the row of the build.
    return columns | {"memory_calls": 0, "memory_input_tokens": 0, "memory_output_tokens": 0, "memory_usd": 0.0}


def _sum(usages: Sequence[Usage]) -> Usage:
    """Field by field; a sum with an unknown part is unknown."""
    total = Usage(0, 0, 0, 0)
    for usage in usages:
        total = Usage(
            add(total.input, usage.input),
            add(total.output, usage.output),
            add(total.cached, usage.cached),
            add(total.reasoning, usage.reasoning),
        )
    return total


def _graded(grade: Grade, benchmark: AgentBenchmark) -> dict[str, Any]:
    return {
        "score": grade.scores[benchmark.metrics[0]],
        "scores": [{"metric": name, "value": value} for name, value in grade.scores.items()],
        "measures": [{"metric": name, "value": value} for name, value in grade.measures.items()],
        "flags": list(grade.flags),
    }


def _step_row(task: EpisodeTask, step: StepTaken) -> dict[str, Any]:
    decision, reply = step.decision, step.decision.reply
    rendering = step.context.rendering
    return {
        "episode": task.key,
        "step": step.number,
        "kind": "tool" if decision.tool is not None else "action" if decision.action else "none",
        "thought": _utf8(decision.thought),
        "action": _utf8(decision.action),
        "output": _utf8(step.observation.text),
        "output_characters": step.observation.characters,
        "window_tokens": step.context.window_tokens,
        "memory_tokens": rendering.tokens if rendering is not None else None,
        "agent_input_tokens": reply.usage.input if reply is not None else None,
        "agent_output_tokens": reply.usage.output if reply is not None else None,
        "usd": cost(reply.trail) if reply is not None else 0.0,
        "context_s": step.context_s,
        "decide_s": step.decide_s,
        "act_s": step.act_s,
    }


def _build_row(task: EpisodeTask, scene: _Scene, course: _Course) -> dict[str, Any]:
    assert course.build is not None
    assert course.memory is not None
    meter, uses_model = course.meter, scene.arm.uses_memory_model
    return {
        "build": task.key,
        "benchmark": scene.group.benchmark,
        "instance": scene.instance.instance_id,
        "arm": scene.arm.name,
        "memory_model": memory_model(scene.arm, scene.tools),
        "repeat": scene.group.repeat,
        "units": len(course.memory.written),
        "history_tokens": sum(unit.tokens for unit in course.memory.written),
        "memory_calls": meter.calls if uses_model else 0,
        "memory_input_tokens": meter.input if uses_model else 0,
        "memory_output_tokens": meter.output if uses_model else 0,
        "memory_cached_tokens": meter.cached if uses_model else 0,
        "memory_reasoning_tokens": meter.reasoning if uses_model else 0,
        "usd": meter.usd if uses_model else 0.0,
        "phase": "written",
        "fallbacks": [{"reason": reason, "times": times} for reason, times in course.build.fallbacks.items()],
        "restored": False,
        "seconds": sum(step.context_s for step in course.episode.steps),
        "finished_at": datetime.now(UTC),
    }


def _spent_usd(episode: Episode) -> float | None:
    total: float | None = 0.0
    for step in episode.steps:
        if step.decision.reply is not None:
            total = add(total, cost(step.decision.reply.trail))
    return total


def _utf8(text: str) -> str:
    """Parquet holds UTF-8; what can't be encoded is escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
