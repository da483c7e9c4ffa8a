"""Options of the benchmark ``context_bound``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from flexmem.agents.context_bound.profiles import PROFILES
from flexmem.benchmarks.protocol import BenchmarkConfig


class ContextBoundConfig(BenchmarkConfig):
    """Which tasks, how often and with which habits, and in which world."""

    world: Literal["recorded", "real"] = "recorded"
    """``recorded``: what AppWorld said when the plans were recorded. ``real``: AppWorld itself."""
    data: Literal["own"] | Path = "own"
    """Whose solutions are followed: those of the own world's tasks, or of an AppWorld root with ground truth."""
    recordings: Path | None = None
    """A folder of recordings made elsewhere; None: the one in the cache that belongs to ``data``."""
    tasks: tuple[str, ...] | None = None
    """Only these task ids; None: all that could be cut."""
    profiles: tuple[str, ...] = tuple(PROFILES)
    """The agent's habits; a statement about methods needs all of them."""
    seeds: int = Field(1, ge=1)
    """Draws of each task, from seed 0. They are no independent samples: tasks are."""
    steps: int = Field(60, ge=1)
    """FlexA-Mem §6.1; its probe has 150."""
    observation_tokens: int = Field(2_000, ge=100)
    """To which an output is cut, head and tail (docs/methods.md 0.5)."""

    @field_validator("profiles")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in names if name not in PROFILES]
        if unknown or not names or len(set(names)) < len(names):
            raise ValueError(f"profiles are some of {', '.join(PROFILES)}, each once")
        return names
