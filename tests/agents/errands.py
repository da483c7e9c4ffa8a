"""A small environment without a sandbox: a shop of numbered shelves that an agent looks through and buys from."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flexmem.agents.environment import Observation, cut_observation
from flexmem.agents.loop import Episode, Limits
from flexmem.agents.policy import Policy
from flexmem.agents.react import TaskPrompt
from flexmem.benchmarks.agent_protocol import Grade, Place
from flexmem.benchmarks.protocol import BenchmarkConfig, Instance, Question, ReaderPrompt
from flexmem.ports import VectorArray

SHELVES = 12


class WordVectors:
    """A text's vector counts its words, each on the axis that its hash names."""

    name = "words"
    dimension = 24

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        rows = np.full((len(texts), self.dimension), 0.01, dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[hashlib.blake2b(word.encode(), digest_size=1).digest()[0] % self.dimension] += 1
            row /= np.linalg.norm(row)
        return rows


@dataclass
class Shop:
    """``look N`` shows a shelf, ``buy N`` ends the task; anything else is an error in the output. ``failure`` is raised
    at the action ``fail``.
    """

    wanted: int
    failure: Exception | None = None
    bought: int | None = None
    acted: list[str] = field(default_factory=list)

    @property
    def prompt(self) -> TaskPrompt:
        return TaskPrompt("You shop.", f"Buy the lamp of shelf {self.wanted}.")

    def policy(self) -> Policy | None:
        return None

    async def act(self, action: str) -> Observation:
        self.acted.append(action)
        verb, _, number = action.partition(" ")
        if verb == "fail" and self.failure is not None:
            raise self.failure
        if verb == "look":
            text = f"shelf {number}\n" + "".join(
                f"item {number}-{i}: a lamp of colour {i * 37 % 11}\n" for i in range(40)
            )
        elif verb == "buy":
            self.bought = int(number)
            return Observation("bought", 6, done=True)
        else:
            text = f"no such command: {action}"
        return Observation(cut_observation(text), len(text))

    async def grade(self, episode: Episode) -> Grade:
        return Grade({"bought": float(self.bought == self.wanted)}, {"acted": float(len(self.acted))}, ())


class Shops:
    """The environments of one worker; counts what is open."""

    def __init__(self, benchmark: Errands) -> None:
        self._benchmark = benchmark
        self.open = 0
        self.most = 0
        self.closed = False

    @asynccontextmanager
    async def lease(self, instance: Instance, question: Question, place: Place) -> AsyncIterator[Shop]:
        if self._benchmark.no_lease is not None:
            raise self._benchmark.no_lease
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0)
        try:
            yield Shop(int(question.question_id.split("_")[1]), self._benchmark.failure)
        finally:
            self.open -= 1

    async def close(self) -> None:
        self.closed = True


class Errands:
    """A benchmark of two scenarios with three errands each."""

    name = "errands"
    metrics = ("bought",)
    language = "shop"
    by_rule = False

    def __init__(self, config: BenchmarkConfig | None = None) -> None:
        self.config = config or BenchmarkConfig()
        self.limits = Limits(steps=8)
        self.failure: Exception | None = None
        self.no_lease: Exception | None = None
        self.shops: list[Shops] = []

    def data_digest(self) -> str:
        return "errands"

    def instances(self) -> Sequence[Instance]:
        return [
            Instance(
                name,
                (),
                tuple(
                    Question(f"{name}_{n}", f"Buy the lamp of shelf {n}.", None, "difficulty 1", details={"steps": 8})
                    for n in (1, 2, 3)
                ),
            )
            for name in ("lamps", "vases")
        ]

    def notes(self) -> Sequence[str]:
        return ["Errands are made up."]

    def reader_prompt(self, instance: Instance, question: Question, seed: int) -> ReaderPrompt:
        raise NotImplementedError("an agent's task is not read")

    def score(self, question: Question, reply: str, seed: int) -> Mapping[str, float]:
        raise NotImplementedError("an agent's task has no reply")

    def environments(self, settings: Mapping[str, Any], out: Path, servers: int) -> Shops:
        self.shops.append(Shops(self))
        return self.shops[-1]

    def check_environment(self, settings: Mapping[str, Any]) -> None:
        """There is nothing to look for."""
