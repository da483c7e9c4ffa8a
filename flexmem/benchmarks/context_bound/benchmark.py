"""The benchmark ``context_bound``: a rule follows plans in AppWorld, and acts on nothing but what its context shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from flexmem.agents.context_bound.profiles import PROFILES
from flexmem.agents.loop import Limits
from flexmem.benchmarks.appworld.benchmark import AppWorldBenchmark
from flexmem.benchmarks.appworld.config import AppWorldConfig
from flexmem.benchmarks.appworld.data import SPLITS
from flexmem.benchmarks.appworld.errors import InstallationMissingError
from flexmem.benchmarks.context_bound.config import ContextBoundConfig
from flexmem.benchmarks.context_bound.environments import ContextBoundEnvironments
from flexmem.benchmarks.context_bound.making import Source, make_missing
from flexmem.benchmarks.context_bound.recording_files import (
    Index,
    read_index,
    read_recording,
    recording_digest,
    recording_path,
)
from flexmem.benchmarks.options_digest import options_digest
from flexmem.benchmarks.protocol import BenchmarkConfig, DataError, DataMissingError, Instance, Question, ReaderPrompt

_CAN = (
    "context_bound: a fixed rule acts, no language model. It shows whether a memory keeps the names, values, "
    "documentation and traces of done work that a competent continuation needs at a budget, and what losing them costs "
    "in repeats and steps; differences between methods hold for the stated profile."
)
_CANNOT = (
    "It does not show completion rates of language-model agents or their order between methods, the quality of records "
    "that a model writes, attention, planning, guessing or notes in thoughts. The rule that looks for witnesses and "
    "the rule that writes records are by the same hands: read P5 (strict) beside P1."
)
_SAYING = (
    "A statement that one method keeps more of what is needed than another at a budget is made only if its sign is the "
    "same in all of P1 to P7 (ties allowed) and it holds on the median task. Tasks are the samples; seeds are not."
)


class ContextBoundBenchmark:
    """An instance is a task, a question one profile and seed of it; a question's type is its profile."""

    name: str = "context_bound"
    metrics: Sequence[str] = ("completed",)
    language: str = "python"
    by_rule: bool = True

    def __init__(self, config: ContextBoundConfig | None = None) -> None:
        self._config = config or ContextBoundConfig()
        self.config: BenchmarkConfig = self._config
        self.limits = Limits(self._config.steps)

    def data_digest(self) -> str:
        """Digest of all recordings and of all options that change what is done.

        Raises:
            DataError: see `instances`.
        """
        return options_digest(sorted(self._digests.values()), self._config, without=("data", "recordings"))

    def instances(self) -> Sequence[Instance]:
        """The tasks that could be cut. What has not been recorded yet is, where AppWorld is installed.

        Raises:
            DataMissingError: recordings are missing, and AppWorld is not installed. DataError: they are damaged.
        """
        return [Instance(task, (), tuple(self._questions(task))) for task in self._tasks]

    def notes(self) -> Sequence[str]:
        """What it is, and what may be said on its account."""
        config, index = self._config, self._index
        profiles = "; ".join(f"{name} {PROFILES[name].summary}" for name in config.profiles)
        about = (
            f"Plans are solutions of {index.source}, cut into steps: {len(self._tasks)} tasks, {config.seeds} "
            f"seed{'s' if config.seeds > 1 else ''}, at most {config.steps} steps; the world is {config.world}. "
            f"Profiles: {profiles}."
        )
        refused = [f"{len(index.refused)} tasks are left out, as they can't be cut."] if index.refused else []
        return [_CAN, _CANNOT, _SAYING, about, *refused]

    def reader_prompt(self, instance: Instance, question: Question, seed: int) -> ReaderPrompt:
        """There is none: a rule acts."""
        raise NotImplementedError("context_bound's tasks are for agents")

    def score(self, question: Question, reply: str, seed: int) -> Mapping[str, float]:
        """There is none: the world is graded, not a reply."""
        raise NotImplementedError("context_bound's tasks are for agents")

    def environments(self, settings: Mapping[str, Any], out: Path, servers: int) -> ContextBoundEnvironments:
        """See `flexmem.benchmarks.agent_protocol.AgentBenchmark.environments`."""
        real = None if self._config.world == "recorded" else self._appworld.environments(settings, out, servers)
        return ContextBoundEnvironments(self._config, self._folder, real)

    def check_environment(self, settings: Mapping[str, Any]) -> None:
        """See `flexmem.benchmarks.agent_protocol.AgentBenchmark.check_environment`."""
        if self._config.world == "real":
            self._appworld.check_environment(settings)
        else:
            self.instances()

    @cached_property
    def _appworld(self) -> AppWorldBenchmark:
        config = self._config
        own = config.data == "own"
        return AppWorldBenchmark(
            AppWorldConfig(
                world="own" if own else "appworld",
                root=None if config.data == "own" else config.data,
                splits=SPLITS,
                steps=config.steps,
                observation_tokens=config.observation_tokens,
            )
        )

    @cached_property
    def _folder(self) -> Path:
        given = self._config.recordings
        return given.expanduser().absolute() if given is not None else Source(self._config.data).folder()

    @cached_property
    def _index(self) -> Index:
        """The index of a folder in which all is there that is asked for."""
        config = self._config
        index = read_index(self._folder)
        if index is None or self._lacking(index):
            try:
                make_missing(Source(config.data), self._folder, config.tasks, config.seeds)
            except InstallationMissingError as error:
                raise DataMissingError(
                    f"{self._folder}: lacks recordings, and they can't be made here: {error} Or name a folder of "
                    "recordings made elsewhere (option `recordings`).",
                    "there are no recordings, and AppWorld is not installed",
                ) from error
            index = read_index(self._folder)
        if index is None or self._lacking(index):
            raise DataError(f"{self._folder}: lacks {', '.join(self._lacking(index) if index else ['its index'])}")
        return index

    def _lacking(self, index: Index) -> list[str]:
        wanted = self._config.tasks or index.tasks
        unknown = [task for task in wanted if task not in index.tasks]
        if any(task in index.refused for task in unknown):
            raise DataError(next(index.refused[task] for task in unknown if task in index.refused))
        paths = [recording_path(self._folder, task, seed) for task in wanted for seed in range(self._config.seeds)]
        return [*unknown, *(path.name for path in paths if not path.is_file())]

    @cached_property
    def _tasks(self) -> tuple[str, ...]:
        return self._config.tasks or self._index.tasks

    @cached_property
    def _digests(self) -> dict[tuple[str, int], str]:
        """The digest of each recording by task and seed."""
        self._index  # noqa: B018 - makes what is missing
        return {
            (task, seed): recording_digest(recording_path(self._folder, task, seed))
            for task in self._tasks
            for seed in range(self._config.seeds)
        }

    def _questions(self, task: str) -> list[Question]:
        questions = []
        for seed in range(self._config.seeds):
            digest = self._digests[task, seed]
            instruction = read_recording(recording_path(self._folder, task, seed), digest).plan.instruction
            for profile in self._config.profiles:
                details = {
                    "task": task,
                    "profile": profile,
                    "seed": seed,
                    "recording": digest,
                    "world": self._config.world,
                    "steps": self._config.steps,
                    "observation_tokens": self._config.observation_tokens,
                }
                questions.append(
                    Question(
                        f"{task}/{profile}/{seed}",
                        instruction,
                        None,
                        profile,
                        scored_by_evidence=False,
                        scored_by_recall=False,
                        details=details,
                    )
                )
        return questions
