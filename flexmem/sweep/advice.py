"""What to look at when a sweep stalls: one line a stage, with the options that bear on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flexmem.llm.config import ModelConfig
from flexmem.sweep.plan import Plan

_SUBJECTS_NAMED = 3


class Advice:
    """Makes the advice for a plan that runs into a folder (`flexmem.sweep.stall.Advise`)."""

    def __init__(self, plan: Plan, out: Path) -> None:
        self._plan = plan
        self._out = out

    def __call__(self, stage: str, subjects: Mapping[str, int]) -> str:
        """One line."""
        number, named = sum(subjects.values()), _named(subjects)
        models, engine, embedding = self._plan.config.models, self._plan.config.engine, self._plan.config.embedding
        embedder = f"the embedding model {embedding.model} on {embedding.device or 'the GPU if there is one'}"
        match stage:
            case "reader" | "agent" if models.acting is not None:
                where = _endpoint(stage, models.acting.model, self._plan.reader and self._plan.reader["model"])
                return f"{number} calls wait for {where}, engine.in_flight ({engine.in_flight} a worker)"
            case "memory_model" if models.memory is not None:
                where = _endpoint("memory", models.memory, self._plan.memory)
                return f"{number} calls wait for {where}, engine.workers"
            case "sandbox":
                return (
                    f"{number} episodes wait for an environment, engine.environments ({engine.environments} a worker); "
                    "is the Docker daemon slow or gone?"
                )
            case "environment":
                return f"{number} actions run in their environments; engine.environment bounds how long they may"
            case "grading":
                return f"{number} episodes are being graded"
            case "history":
                return (
                    f"{named} waits to be indexed by {embedder}; is that too slow? embedding.device, "
                    f"embedding.batch_size ({embedding.batch_size})"
                )
            case "embedding":
                return f"{embedder} is being loaded, or fetched; embedding.model takes a folder as well"
            case "results":
                return (
                    f"{number} batches of results or lanes wait for the disk of {self._out}; is it slow, full or gone? "
                    f"engine.rows_per_part ({engine.rows_per_part}), engine.flush_s ({engine.flush_s:g})"
                )
            case "rendering":
                return f"arm {named} renders a memory and does not return; if it never will, take it out of arms"
            case "writing":
                return f"arm {named} writes a memory and does not return; if it never will, take it out of arms"
            case "workers":
                return (
                    f"{number} workers wait for a CPU of the cluster; engine.workers ({engine.workers or 'one a CPU'}) "
                    "bounds how many, more nodes give more CPUs"
                )
            case _:
                return f"the workers of {number} groups say nothing; a method of arm {named} may hold its process"


def _endpoint(role: str, config: ModelConfig, description: Mapping[str, Any] | None) -> str:
    """Who does not answer, and the options of a model that bear on it."""
    address = (description or {}).get("base_url")
    at = f" at {address}" if address else ""
    place = "models.memory" if role == "memory" else f"models.{role}.model"
    return (
        f"the {role} model {config.model}{at}; is it slow or gone? {place}.timeout_s ({config.timeout_s:g} s), "
        f"{place}.attempts ({config.attempts})"
    )


def _named(subjects: Mapping[str, int]) -> str:
    names = list(subjects)
    more = f" and {len(names) - _SUBJECTS_NAMED} more" if len(names) > _SUBJECTS_NAMED else ""
    return ", ".join(names[:_SUBJECTS_NAMED]) + more
