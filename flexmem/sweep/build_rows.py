"""Rows of ``builds``: what writing a memory took, and what reading it added."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from flexmem.benchmarks.protocol import Instance
from flexmem.sweep.arms import Arm
from flexmem.sweep.builds import FinishedBuild
from flexmem.sweep.metered import Meter
from flexmem.sweep.plan import Group

Phase = Literal["written", "restored", "read"]


class BuildRows:
    """The rows of one build in one group: the first when it is written or restored, a second if reading made calls,
    took fallbacks, or left something to say.
    """

    def __init__(self, group: Group, arm: Arm, instance: Instance, finished: FinishedBuild, model: str | None) -> None:
        self._group = group
        self._arm = arm
        self._instance = instance
        self._finished = finished
        self._model = model
        self._meter = Meter()
        self._fallbacks: dict[str, int] = {}

    def first(self) -> dict[str, Any]:
        """What it took to write the build; nothing where it was restored."""
        phase: Phase = "restored" if self._finished.restored else "written"
        return self._row(phase, {}, self._finished.seconds)

    def last(self, problems: Mapping[str, int]) -> dict[str, Any] | None:
        """What came on top since `first`; None if nothing did."""
        made = self._finished.meter.calls > self._meter.calls
        if not (made or problems or self._finished.build.fallbacks != self._fallbacks):
            return None
        return self._row("read", problems, None)

    def _row(self, phase: Phase, problems: Mapping[str, int], seconds: float | None) -> dict[str, Any]:
        meter, fallbacks = self._finished.meter.since(self._meter), dict(self._finished.build.fallbacks)
        new = {reason: times - self._fallbacks.get(reason, 0) for reason, times in fallbacks.items()}
        if phase == "restored":  # taken in earlier: its row says so
            new = {}
        self._meter, self._fallbacks = self._finished.meter.copy(), fallbacks
        units = self._instance.units
        uses_model = self._arm.uses_memory_model
        return {
            "build": self._group.build,
            "benchmark": self._group.benchmark,
            "instance": self._instance.instance_id,
            "arm": self._arm.name,
            "memory_model": self._model,
            "repeat": self._group.repeat,
            "units": len(units),
            "history_tokens": sum(unit.tokens for unit in units),
            "memory_calls": meter.calls if uses_model else 0,
            "memory_input_tokens": meter.input if uses_model else 0,
            "memory_output_tokens": meter.output if uses_model else 0,
            "memory_cached_tokens": meter.cached if uses_model else 0,
            "memory_reasoning_tokens": meter.reasoning if uses_model else 0,
            "usd": meter.usd if uses_model else 0.0,
            "phase": phase,
            "fallbacks": [{"reason": reason, "times": times} for reason, times in {**new, **problems}.items() if times],
            "restored": self._finished.restored,
            "seconds": seconds,
            "finished_at": datetime.now(UTC),
        }
