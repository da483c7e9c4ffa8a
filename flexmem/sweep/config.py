"""A sweep's configuration: YAML read into pydantic models; what is wrong is said with file, line or key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from flexmem.errors import FlexmemError
from flexmem.llm.config import ModelConfig
from flexmem.retrieval.embedding import DEFAULT_MODEL


class ConfigError(FlexmemError):
    """A configuration can't be used; the message names file, line or key and what to do."""


def parse_budget(value: object) -> object:
    """``4k`` is 4,000 (docs/methods.md 0.4); a number stays."""
    if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?[kK]?", value):
        return round(float(value.rstrip("kK")) * (1_000 if value[-1] in "kK" else 1))
    if isinstance(value, bool | str):
        raise ValueError("a budget is a number of tokens, such as 4000 or 4k")
    return value


Tokens = Annotated[int, BeforeValidator(parse_budget), Field(gt=0)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BenchmarkEntry(_Section):
    """A benchmark with its options; ``otherwise`` is taken, and said to be, where the data can't be had."""

    name: str
    options: dict[str, Any] = Field(default_factory=dict)
    otherwise: BenchmarkEntry | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value


class ArmEntry(_Section):
    """An arm: a method or control arm, with some of its options changed under a label of its own."""

    method: str
    label: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"method": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _label_with_options(self) -> ArmEntry:
        if self.options and self.label is None:
            raise ValueError(f"arm {self.method!r} changes options, so it needs a label of its own")
        return self

    @property
    def name(self) -> str:
        """What tables call the arm."""
        return self.label or self.method


class ReaderEntry(_Section):
    """The reader: its model and how a question is asked."""

    model: ModelConfig
    max_tokens: int = Field(512, gt=0)
    effort: str | None = "medium"


class AgentEntry(ReaderEntry):
    """The agent: its model and how it is asked for a step."""

    max_tokens: int = Field(2_048, gt=0)


class JudgeEntry(_Section):
    """A judge of replies; ``label`` is what tables call it."""

    label: str
    model: ModelConfig
    max_tokens: int = Field(16, gt=0)
    effort: str | None = "low"


class ModelsEntry(_Section):
    """Models by role; without a reader a sweep over questions measures evidence only, one over an agent's tasks needs
    an agent. Each judge judges every reply of a benchmark that is scored by judges; the first one's word is the score.
    """

    reader: ReaderEntry | None = None
    agent: AgentEntry | None = None
    memory: ModelConfig | None = None
    judges: list[JudgeEntry] = Field(default_factory=list)

    @property
    def acting(self) -> ReaderEntry | None:
        """The model that episodes are about: the reader or the agent."""
        return self.reader or self.agent

    @model_validator(mode="after")
    def _judges(self) -> ModelsEntry:
        if self.reader is not None and self.agent is not None:
            raise ValueError("a sweep has a reader (questions) or an agent (tasks), not both; make two sweeps of it")
        labels = [entry.label for entry in self.judges]
        if len(set(labels)) < len(labels):
            raise ValueError("two judges have the same label")
        if self.judges and self.reader is None:
            raise ValueError("judges judge a reader's replies, but there is no reader")
        return self


class EmbeddingEntry(_Section):
    """The embedder; it enters fingerprints by name, not by device or batch size."""

    model: str = DEFAULT_MODEL
    device: str | None = None
    batch_size: int = Field(32, ge=1)


class EngineEntry(_Section):
    """How the sweep runs; nothing here changes a result or a fingerprint."""

    workers: int | None = Field(None, ge=1)
    """Episode workers; None: one a CPU."""
    in_flight: int = Field(32, ge=1)
    """Episodes of one worker that may wait for a model at a time."""
    rows_per_part: int = Field(1_000, ge=1)
    """A worker hands on its rows in batches of this size ..."""
    flush_s: float = Field(2.0, gt=0)
    """... and at least this often."""
    group_attempts: int = Field(3, ge=1)
    """How often work is given out again when its worker dies."""
    stall_s: float = Field(120.0, gt=0)
    """Seconds without any progress after which the run says what it waits for."""
    worker_memory_mb: int | None = Field(None, ge=256)
    """Memory of its own over which a worker is replaced, and over twice which it is killed; None: 60 % of a machine's
    memory shared out among its workers, at least 1024.
    """
    address: str | None = None
    """A Ray cluster's address; None: RAY_ADDRESS, else a Ray of its own on this machine."""
    max_usd: float | None = Field(None, gt=0)
    """A cap on what the run's folder has cost, in USD; no call is begun that might pass it."""
    environment: dict[str, Any] = Field(default_factory=dict)
    """How an agent's environments are run: the settings of their benchmark, such as `isolation` and `image`."""
    environments: int = Field(1, ge=1)
    """Environments of one worker at a time."""
    object_store_mb: int = Field(512, ge=80)
    """Shared memory of a Ray of its own."""


class SweepConfig(_Section):
    """Methods x budgets x benchmarks x repeats."""

    name: str
    benchmarks: list[BenchmarkEntry] = Field(min_length=1)
    arms: list[ArmEntry] = Field(min_length=1)
    budgets: list[Tokens] = Field(min_length=1)
    repeats: int = Field(1, ge=1)
    models: ModelsEntry = ModelsEntry()
    embedding: EmbeddingEntry = EmbeddingEntry()
    engine: EngineEntry = EngineEntry()
    out: str | None = None

    @field_validator("arms")
    @classmethod
    def _distinct(cls, arms: list[ArmEntry]) -> list[ArmEntry]:
        names = [arm.name for arm in arms]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"arm {twice[0]!r} is listed twice; give one of them a label")
        return arms

    @field_validator("budgets")
    @classmethod
    def _ordered(cls, budgets: list[int]) -> list[int]:
        return sorted(set(budgets))


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping: YAML itself would keep the last and say nothing."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # `<<`, whose keys one's own may replace
                continue
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.MarkedYAMLError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_config(path: Path, overrides: Mapping[str, Any] | None = None) -> SweepConfig:
    """Read a sweep's YAML; ``overrides`` replace top-level keys.

    Raises:
        ConfigError: the file is missing or no YAML (with line), a key is unknown (with the nearest known one), or a
            value is not allowed.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text: {error}") from error
    try:
        content = yaml.load(text, _StrictLoader)  # safe, and stricter
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{path}{place}: broken YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: broken YAML: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: a sweep is a mapping with name, benchmarks, arms and budgets")
    return parse_config({**content, **(overrides or {})}, str(path))


def parse_config(content: Mapping[str, Any], source: str) -> SweepConfig:
    """Validate a sweep's content; ``source`` names it in messages (`load_config`)."""
    try:
        return SweepConfig.model_validate(dict(content))
    except ValidationError as error:
        problems = "\n".join(f"  {_explain(problem)}" for problem in error.errors(include_url=False))
        raise ConfigError(f"{source}: the sweep's configuration is not valid\n{problems}") from error


def _explain(problem: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in problem["loc"]) or "sweep"
    if problem["type"] == "extra_forbidden":
        known = _fields_at(problem["loc"][:-1])
        near = difflib.get_close_matches(str(problem["loc"][-1]), known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        return f"{place}: unknown key; {hint}"
    if problem["type"] == "missing":
        return f"{place}: is missing"
    return f"{place}: {problem['msg'].removeprefix('Value error, ')} (got {problem['input']!r})"


def _fields_at(location: tuple[Any, ...]) -> list[str]:
    """Keys that may stand where ``location`` points."""
    model: type[BaseModel] = SweepConfig
    for part in location:
        if not isinstance(part, str) or part not in model.model_fields:
            continue
        for candidate in _models_in(model.model_fields[part].annotation):
            model = candidate
    return list(model.model_fields)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
