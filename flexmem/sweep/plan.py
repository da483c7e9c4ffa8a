"""The plan of a sweep: cells x instances = episodes, each with a fingerprint, grouped by build."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from flexmem.agents import reader as reader_prompts
from flexmem.agents.agent_memory import LEAST_BUDGET
from flexmem.agents.react import react_digest
from flexmem.agents.tool_reader import tool_digest
from flexmem.benchmarks.agent_protocol import is_agent_benchmark
from flexmem.benchmarks.protocol import Benchmark, DataError, DataMissingError, Instance
from flexmem.benchmarks.registry import BenchmarkOptionError, make_benchmark, task_of
from flexmem.llm.config import make_model
from flexmem.memory.protocol import Budget, BudgetError, Query, TaskKind
from flexmem.memory.window import newest_unit_limit
from flexmem.ports import ChatReply, ChatRequest, IndexConfig, Services, VectorArray
from flexmem.retrieval.index import LocalIndex
from flexmem.sweep.arms import Arm, choice_arms, make_arms
from flexmem.sweep.config import BenchmarkEntry, ConfigError, SweepConfig
from flexmem.sweep.fingerprint import CODE_VERSION, build_key, digest, episode_key, instance_digest, question_digest

BY_RULE = "rule"
"""What stands for the reader's name where a control arm answers and the sweep has no reader."""


@dataclass(frozen=True, slots=True)
class EpisodeTask:
    """One question in one cell: its position among the instance's questions, its budget, and its fingerprint."""

    question: int
    budget: int | None
    key: str


@dataclass(frozen=True)
class Group:
    """Episodes that share a build: the unit of dispatch."""

    benchmark: str
    instance: str
    arm: str
    repeat: int
    build: str
    episodes: tuple[EpisodeTask, ...]
    room: int | None = None
    """M in tokens that the build is written for; None where it serves every budget."""


@dataclass(frozen=True)
class LoadedBenchmark:
    """A benchmark with its data read. ``replaced`` says why another one was wanted, empty if this is the wanted one."""

    benchmark: Benchmark
    instances: Mapping[str, Instance]
    replaced: str = ""

    @property
    def name(self) -> str:
        return self.benchmark.name

    @cached_property
    def has_choices(self) -> bool:
        """Whether all its questions are multiple choice."""
        return all("options" in question.details for one in self.instances.values() for question in one.questions)


@dataclass
class Plan:
    """A sweep worked out: what it will run, and what its results are keyed by."""

    config: SweepConfig
    arms: Sequence[Arm]
    benchmarks: Sequence[LoadedBenchmark]
    embedder: str
    reader: dict[str, Any] | None
    memory: dict[str, Any] | None
    _instances: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def acts_by_rule(self) -> bool:
        """Whether the benchmarks' own policies act, and no model."""
        return any(is_agent_benchmark(one.benchmark) and one.benchmark.by_rule for one in self.benchmarks)

    @property
    def has_environments(self) -> bool:
        """Whether an agent acts in environments that must be ended."""
        return any(is_agent_benchmark(one.benchmark) for one in self.benchmarks)

    def groups(self, done: Collection[str] = ()) -> Iterator[Group]:
        """The work that is left, one build at a time, worked out as it is asked for: a plan may have millions of
        episodes. ``done`` holds the keys of finished ones.
        """
        for loaded in self.benchmarks:
            for instance in loaded.instances.values():
                questions = [question_digest(question) for question in instance.questions]
                for arm in self.arms_at(loaded):
                    for repeat in range(self.config.repeats):
                        for budgets in self._budgets_by_build(arm):
                            group = self._group(loaded, instance, questions, arm, repeat, budgets, done)
                            if group.episodes:
                                yield group

    def size(self, done: Collection[str] = ()) -> tuple[int, int]:
        """How many groups and episodes `groups` gives; a matter of multiplying where nothing is done yet."""
        if done:
            groups = episodes = 0
            for group in self.groups(done):
                groups += 1
                episodes += len(group.episodes)
            return groups, episodes
        builds = sum(
            sum(len(self._budgets_by_build(arm)) for arm in self.arms_at(loaded))
            * sum(bool(one.questions) for one in loaded.instances.values())
            for loaded in self.benchmarks
        )
        return builds * self.config.repeats, sum(cell["n"] for cell in self.cells())

    def arms_at(self, loaded: LoadedBenchmark) -> list[Arm]:
        """The arms that run over a benchmark: those that answer by rule, only where there is something to choose."""
        return [arm for arm in self.arms if loaded.has_choices or not arm.answers_by_rule]

    def budgets(self, arm: Arm) -> Sequence[int | None]:
        """The budgets that an arm runs at; [None] for one without."""
        return self.config.budgets if arm.has_budget else [None]

    def _budgets_by_build(self, arm: Arm) -> Sequence[Sequence[int | None]]:
        """The budgets that each build of a history serves."""
        budgets = self.budgets(arm)
        return [[budget] for budget in budgets] if arm.build_per_budget else [budgets]

    def cells(self) -> list[dict[str, Any]]:
        """Planned cells for the manifest: benchmark, arm, budget, reader, repeats, n (episodes over all repeats)."""
        reader = self.reader["model"]["model"] if self.reader else BY_RULE if self.acts_by_rule else None
        # Without a reader, an arm that answers by rule still has a score, so its cells have a reader's place.
        by_rule = reader or BY_RULE
        return [
            {
                "benchmark": loaded.name,
                "arm": arm.name,
                "budget": budget,
                "reader": by_rule if arm.answers_by_rule else reader,
                "repeats": self.config.repeats,
                "n": self.config.repeats * sum(len(i.questions) for i in loaded.instances.values()),
            }
            for loaded in self.benchmarks
            for arm in self.arms_at(loaded)
            for budget in self.budgets(arm)
        ]

    def build_fields(
        self, benchmark: str, instance: Instance, arm: Arm, repeat: int, room: int | None = None
    ) -> dict[str, Any]:
        """What a build is made of; ``room`` for a build per budget."""
        place = (benchmark, instance.instance_id)
        if place not in self._instances:
            self._instances[place] = instance_digest(instance)
        return {
            "code": CODE_VERSION,
            "benchmark": benchmark,
            "instance": instance.instance_id,
            "history": self._instances[place],
            "arm": arm.describe(),
            "embedder": self.embedder,
            "memory_model": self.memory if arm.uses_memory_model else None,
            "prompts": arm.prompts_digest,
            "repeat": repeat,
            **({} if room is None else {"room": room}),
        }

    def fields_by_name(self) -> dict[str, Any]:
        """What results depend on, by name: compared with an older run's in the same folder."""
        return {
            "code": CODE_VERSION,
            "embedder": self.embedder,
            "reader": self.reader,
            "memory": self.memory,
            "arms": {arm.name: arm.describe() for arm in self.arms},
            "prompts": {arm.name: arm.prompts_digest for arm in self.arms},
            "histories": {
                f"{loaded.name}/{instance.instance_id}": instance_digest(instance)
                for loaded in self.benchmarks
                for instance in loaded.instances.values()
            },
            "questions": {
                loaded.name: sorted(
                    question_digest(question)
                    for instance in loaded.instances.values()
                    for question in instance.questions
                )
                for loaded in self.benchmarks
            },
        }

    def notes(self) -> list[str]:
        """What a report must say about the data."""
        notes = [loaded.replaced for loaded in self.benchmarks if loaded.replaced]
        return notes + [note for loaded in self.benchmarks for note in loaded.benchmark.notes()]

    def _group(
        self,
        loaded: LoadedBenchmark,
        instance: Instance,
        questions: Sequence[str],
        arm: Arm,
        repeat: int,
        budgets: Sequence[int | None],
        done: Collection[str],
    ) -> Group:
        room = _room(arm, budgets[0])
        fields = self.build_fields(loaded.name, instance, arm, repeat, room)
        build = build_key(fields)
        episodes = []
        for budget in budgets:
            # One digest of what the cell's episodes share keeps a plan of a million episodes cheap.
            shared_by = {"build": build, "budget": budget, "reader": self.reader}
            if arm.has_tools and self.reader is not None and arm.task == "reader":
                shared_by["tools"] = tool_digest()
            shared = digest(shared_by)
            for position, question in enumerate(questions):
                key = episode_key({"cell": shared, "question": question})
                if key not in done:
                    episodes.append(EpisodeTask(position, budget, key))
        return Group(loaded.name, instance.instance_id, arm.name, repeat, build, tuple(episodes), room)


def _room(arm: Arm, budget: int | None) -> int | None:
    """M that a build per budget is written for: a reader's budget, or what an agent's recent window leaves of it as a
    rule (docs/methods.md 0.6).
    """
    if not arm.build_per_budget or budget is None:
        return None
    return budget - budget // 4 if arm.task == "agent" else budget


def make_plan(config: SweepConfig) -> Plan:
    """Read the data and work out the sweep; makes no model call.

    Raises:
        ConfigError: an unknown method, benchmark or option, the same arm or benchmark twice, data that can't be had or
            read, a budget too small for an arm's frame.
    """
    task = task_kind(config)
    arms = make_arms(config.arms, task)
    _refuse_same_arms(arms)
    asyncio.run(_check_budgets(arms, config.budgets))
    if config.models.memory is None and any(arm.uses_memory_model for arm in arms):
        raise ConfigError("an arm writes with a memory model, but models.memory is not configured")
    reader = None
    if config.models.acting is not None:
        entry = config.models.acting
        reader = {
            "model": dict(make_model(entry.model).describe()),
            "max_tokens": entry.max_tokens,
            "effort": entry.effort,
            "prompt": reader_prompts.prompt_digest() if task == "reader" else react_digest(),
        }
    memory = dict(make_model(config.models.memory).describe()) if config.models.memory else None
    benchmarks = load_benchmarks(config)
    _check_acting(config, benchmarks, task)
    if task == "reader" and any(loaded.has_choices for loaded in benchmarks):
        arms += choice_arms(arms)
    elif by_rule := [arm.name for arm in arms if arm.answers_by_rule]:
        raise ConfigError(f"arm {by_rule[0]!r} answers multiple-choice questions, and no benchmark here has any")
    return Plan(config, arms, benchmarks, f"{config.embedding.model}@torch-fp32", reader, memory)


def task_kind(config: SweepConfig) -> TaskKind:
    """Whether a sweep asks questions or has an agent act.

    Raises:
        ConfigError: both, or an unknown benchmark.
    """
    try:
        kinds = {entry.name: task_of(entry.name) for entry in config.benchmarks}
    except BenchmarkOptionError as error:
        raise ConfigError(str(error)) from error
    if len(set(kinds.values())) > 1:
        said = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        raise ConfigError(f"a sweep has questions or an agent's tasks, not both ({said}); make two sweeps of it")
    return next(iter(kinds.values()))


def _check_acting(config: SweepConfig, benchmarks: Sequence[LoadedBenchmark], task: TaskKind) -> None:
    """Refuse models that the sweep's benchmarks have no use for, and miss the one that they need."""
    models = config.models
    if task == "reader" and models.agent is not None:
        raise ConfigError("models.agent acts in an agent's tasks, and this sweep has questions; give models.reader")
    if task == "agent" and models.reader is not None:
        raise ConfigError("models.reader answers questions, and this sweep has an agent's tasks; give models.agent")
    for loaded in benchmarks:
        if not is_agent_benchmark(loaded.benchmark):
            continue
        if loaded.benchmark.by_rule and models.agent is not None:
            raise ConfigError(f"in benchmark {loaded.name!r} a rule acts; take models.agent out")
        if not loaded.benchmark.by_rule and models.agent is None:
            raise ConfigError(f"benchmark {loaded.name!r} needs an agent, but models.agent is not configured")


def load_benchmarks(config: SweepConfig) -> list[LoadedBenchmark]:
    """Read the data of a sweep's benchmarks.

    Raises:
        ConfigError: an unknown benchmark or option, one benchmark twice, data that can't be had or read.
    """
    benchmarks = [_load(entry) for entry in config.benchmarks]
    names = [loaded.name for loaded in benchmarks]
    for name in names:
        if names.count(name) > 1:  # workers find an instance's questions by these two names
            raise ConfigError(f"benchmark {name!r} is listed twice; give each a sweep and an output folder of its own")
    return benchmarks


def _load(entry: BenchmarkEntry) -> LoadedBenchmark:
    try:
        benchmark = make_benchmark(entry.name, entry.options)
    except BenchmarkOptionError as error:
        raise ConfigError(str(error)) from error
    try:
        instances = benchmark.instances()
    except DataError as error:
        # Data that is there and wrong is not passed over.
        if entry.otherwise is None or not isinstance(error, DataMissingError):
            raise ConfigError(str(error)) from error
        loaded = _load(entry.otherwise)
        why = f"{entry.name} can't be had, so {loaded.name} histories are used in its place: {error.reason}"
        return LoadedBenchmark(loaded.benchmark, loaded.instances, why)
    if not instances or not any(instance.questions for instance in instances):
        raise ConfigError(f"benchmark {entry.name!r}: its options leave no question")
    return LoadedBenchmark(benchmark, {instance.instance_id: instance for instance in instances})


def _refuse_same_arms(arms: Sequence[Arm]) -> None:
    """Labels are no part of keys: of two arms that are the same, one would never have results."""
    names: dict[str, str] = {}
    for arm in arms:
        other = names.setdefault(digest(arm.describe()), arm.name)
        if other != arm.name:
            raise ConfigError(f"arms {other!r} and {arm.name!r} are the same; keep one of them")


class _NoEmbedder:
    """Stands in where nothing is embedded."""

    name = "none"
    dimension = 1

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        return np.zeros((len(texts), 1), dtype=np.float32)


class _ModelNeededError(Exception):
    """Even an empty memory can't be rendered without the memory model."""


class _NoModel:
    """Stands in where no model may be called."""

    name = "none"

    def describe(self) -> Mapping[str, Any]:
        return {}

    async def complete(self, request: ChatRequest) -> ChatReply:
        raise _ModelNeededError


async def _check_budgets(arms: Sequence[Arm], budgets: Sequence[int]) -> None:
    """Render each arm's empty memory at each budget: a frame that does not fit is found before anything is paid."""
    embedder = _NoEmbedder()

    def open_index(config: IndexConfig) -> LocalIndex:
        return LocalIndex(config, embedder)

    query = Query.question("", np.zeros(1, dtype=np.float32))
    if budgets[0] < LEAST_BUDGET and any(arm.task == "agent" and arm.has_budget for arm in arms):
        raise ConfigError(
            f"budget {budgets[0]} is too small for an agent: memory and its newest step share it, so it takes "
            f"{LEAST_BUDGET} tokens at least"
        )
    for arm in arms:
        if arm.method is None:
            continue
        for budget in budgets:
            room = _room(arm, budget)
            # An agent's newest step may take three quarters of its budget.
            window = newest_unit_limit(budget) if arm.task == "agent" else 0
            try:
                view = arm.method.build(Services(embedder, open_index, _NoModel(), room=room)).view()
                await view.render(query, Budget(budget, window))
            except BudgetError as error:
                raise ConfigError(f"budget {budget} is too small for arm {arm.name!r}: {error}") from error
            except _ModelNeededError:
                break
