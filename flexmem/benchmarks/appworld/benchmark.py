"""AppWorld: tasks that an agent carries out in a person's apps, graded by AppWorld's own evaluator."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from flexmem.agents.loop import Limits
from flexmem.benchmarks.appworld import data
from flexmem.benchmarks.appworld.config import AppWorldConfig
from flexmem.benchmarks.appworld.environments import AppWorldEnvironments, check_isolation
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.appworld.prompts import prompt_digest
from flexmem.benchmarks.appworld.settings import EnvironmentSettings
from flexmem.benchmarks.appworld.tasks import Task, read_tasks
from flexmem.benchmarks.appworld.world import make_world, own_root
from flexmem.benchmarks.options_digest import options_digest
from flexmem.benchmarks.protocol import BenchmarkConfig, DataError, Instance, Question, ReaderPrompt


class AppWorldBenchmark:
    """An instance is a scenario with its variants; a question's type is the task's difficulty."""

    name: str = "appworld"
    metrics: Sequence[str] = ("task_goal",)
    language: str = "python"
    by_rule: bool = False

    def __init__(self, config: AppWorldConfig | None = None) -> None:
        self._config = config or AppWorldConfig()
        self.config: BenchmarkConfig = self._config
        self.limits = Limits(self._config.steps, self._config.seconds, self._config.usd)

    def data_digest(self) -> str:
        """Digest of the data and of all options that change what is asked.

        Raises:
            DataError: the data is missing.
        """
        return options_digest([self._digest], self._config, without=("root",))

    def instances(self) -> Sequence[Instance]:
        """One instance for each scenario with a selected task.

        Raises:
            DataMissingError: the data is not there. DataError: it is malformed, or nothing is selected.
        """
        scenarios: defaultdict[str, list[Task]] = defaultdict(list)
        for task in self._tasks:
            scenarios[task.scenario].append(task)
        return [
            Instance(scenario, (), tuple(self._question(task) for task in tasks))
            for scenario, tasks in sorted(scenarios.items())
        ]

    def notes(self) -> Sequence[str]:
        """Which data, how many tasks of which kind, and how they are graded."""
        tasks = self._tasks
        difficulties = ", ".join(
            f"{name}: {n}" for name, n in sorted(Counter(task.difficulty for task in tasks).items())
        )
        splits = ", ".join(f"{name}: {n}" for name, n in Counter(task.split for task in tasks).items())
        notes = [
            f"AppWorld: {len(tasks)} tasks in {len({task.scenario for task in tasks})} scenarios ({splits}; "
            f"{difficulties}), graded by AppWorld's own evaluator; at most {self._config.steps} steps."
        ]
        if self._config.world == "own":
            notes.append(
                "These are tasks of a small world made for trying things out, not AppWorld's: no score on them says "
                "anything of the benchmark."
            )
        return notes

    def reader_prompt(self, instance: Instance, question: Question, seed: int) -> ReaderPrompt:
        """There is none: an agent acts."""
        raise NotImplementedError("AppWorld's tasks are for agents")

    def score(self, question: Question, reply: str, seed: int) -> Mapping[str, float]:
        """There is none: the world is graded, not a reply."""
        raise NotImplementedError("AppWorld's tasks are for agents")

    def environments(self, settings: Mapping[str, Any], out: Path, servers: int) -> AppWorldEnvironments:
        """See `flexmem.benchmarks.agent_protocol.AgentBenchmark.environments`."""
        return AppWorldEnvironments(
            self._config,
            _settings(settings, servers),
            root=self._root,
            out=out,
            splits={task.task_id: task.split for task in self._tasks},
        )

    def check_environment(self, settings: Mapping[str, Any]) -> None:
        """Look for data, ground truth, AppWorld's installation, and the image or interpreter that episodes run in."""
        lacks = data.check(self._root)
        if lacks:
            raise DataError("AppWorld's data is incomplete:\n" + "\n".join(f"  {line}" for line in lacks))
        Installation.find()  # which grades
        check_isolation(_settings(settings, 1))

    @cached_property
    def _root(self) -> Path:
        config = self._config
        if config.world == "own":
            return make_world(config.root or own_root())
        return (config.root or data.root()).expanduser().absolute()

    @cached_property
    def _digest(self) -> str:
        return data.digest(self._root)

    @cached_property
    def _tasks(self) -> list[Task]:
        tasks = read_tasks(self._root, self._config.splits, self._config.tasks)
        if not tasks:
            raise DataError(f"AppWorld: there are no tasks in {', '.join(self._config.splits)} of {self._root}")
        return tasks

    def _question(self, task: Task) -> Question:
        # All that changes how an episode goes is part of its fingerprint.
        details = {
            "data": self._digest,
            "split": task.split,
            "prompt": prompt_digest(),
            "limits": [self._config.steps, self._config.seconds, self._config.usd, self._config.action_s],
            "observation_tokens": self._config.observation_tokens,
        }
        return Question(
            task.task_id,
            task.instruction,
            None,
            task.difficulty,
            scored_by_evidence=False,
            scored_by_recall=False,
            details=details,
        )


def _settings(settings: Mapping[str, Any], servers: int) -> EnvironmentSettings:
    try:
        return EnvironmentSettings.model_validate({**settings, "servers": servers})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        known = ", ".join(name for name in EnvironmentSettings.model_fields if name != "servers")
        raise DataError(f"engine.environment: {key}: {first['msg']}; there are {known}") from error
