"""Columns of ``episodes`` that episodes of all kinds fill alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from flexmem.benchmarks.protocol import Benchmark, Instance, Question
from flexmem.llm.errors import ModelError
from flexmem.ports import Attempt, Usage
from flexmem.sweep.arms import Arm
from flexmem.sweep.failures import classify, describe
from flexmem.sweep.metered import cost
from flexmem.sweep.plan import BY_RULE, EpisodeTask, Group
from flexmem.sweep.run_tools import RunTools


def first_columns(
    group: Group,
    arm: Arm,
    benchmark: Benchmark,
    instance: Instance,
    question: Question,
    task: EpisodeTask,
    tools: RunTools,
) -> dict[str, Any]:
    """What is known of an episode before it runs."""
    return {
        "episode": task.key,
        "benchmark": group.benchmark,
        "instance": instance.instance_id,
        "question": question.question_id,
        "question_type": question.question_type,
        "arm": group.arm,
        "budget": task.budget,
        "reader": reader_of(arm, tools),
        "memory_model": memory_model(arm, tools),
        "repeat": group.repeat,
        "outcome": "ok",
        "build": group.build,
        "attempts": 1,
        "finished_at": datetime.now(UTC),
    }


def headline(arm: Arm, benchmark: Benchmark, tools: RunTools) -> str:
    """The metric of ``score``."""
    return benchmark.metrics[0] if reader_of(arm, tools) is not None else "verbatim_evidence"


def reader_of(arm: Arm, tools: RunTools) -> str | None:
    """Whose answers an arm's scores are about. One that answers by rule stands among those of the sweep's reader."""
    if tools.reader is not None:
        return tools.reader.name
    return BY_RULE if arm.answers_by_rule or arm.task == "agent" else None


def memory_model(arm: Arm, tools: RunTools) -> str | None:
    """Name of the memory model, where the arm has one."""
    model = tools.build_tools.model
    return model.name if model is not None and arm.uses_memory_model else None


def reader_columns(usage: Usage, trail: Sequence[Attempt]) -> dict[str, Any]:
    """What the reader's call took."""
    return {
        "reader_input_tokens": usage.input,
        "reader_output_tokens": usage.output,
        "reader_cached_tokens": usage.cached,
        "reader_reasoning_tokens": usage.reasoning,
        "usd": cost(trail),
    }


def unanswered(error: ModelError) -> dict[str, Any]:
    """What is left of an episode whose model refused, or met a limit: a score of 0, and what it cost."""
    return {
        "outcome": "failed",
        "error_class": classify(error),
        "error": describe(error),
        "score": 0.0,
        **reader_columns(error.usage or Usage(), error.trail),
        "attempts": max(1, error.attempts),
    }


def failed(error_class: str, error: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """What a method's failure changes of a row: it is in the denominator of every score that applies, with 0."""
    return {
        "outcome": "failed",
        "error_class": error_class,
        "error": error,
        "score": 0.0,
        "verbatim_evidence": 0.0 if row.get("verbatim_evidence") is not None else None,
        "answer_recall": 0.0 if row.get("answer_recall") is not None else None,
    }
