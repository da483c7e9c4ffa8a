"""Options of the benchmark ``appworld``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from flexmem.benchmarks.protocol import BenchmarkConfig

Split = Literal["train", "dev", "test_normal", "test_challenge"]


class AppWorldConfig(BenchmarkConfig):
    """Which tasks, and what an episode may take."""

    world: Literal["appworld", "own"] = "appworld"
    """``appworld``: the benchmark's data. ``own``: a small world made on this machine, to try things."""
    root: Path | None = None
    """AppWorld's root folder; None: APPWORLD_ROOT, else one in the cache."""
    splits: tuple[Split, ...] = ("test_normal",)
    tasks: tuple[str, ...] | None = None
    """Only these task ids; None: all of the splits."""
    steps: int = Field(60, ge=1)
    """FlexA-Mem §6.1; its probe has 150."""
    seconds: float | None = Field(None, gt=0)
    """Of an episode, model time included; None: only its actions have a deadline."""
    usd: float | None = Field(None, gt=0)
    """Of an episode's agent calls."""
    action_s: float = Field(120.0, gt=0)
    """Deadline of one action, which ends the episode; AppWorld's own (100 s) is told to the agent before."""
    observation_tokens: int = Field(2_000, ge=100)
    """To which an output is cut, head and tail (docs/methods.md 0.5)."""
