"""What a benchmark gives the harness: instances with histories, questions and gold, and how answers are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from flexmem.errors import FlexmemError
from flexmem.history import Session, Unit, split_sessions


class BenchmarkConfig(BaseModel):
    """Base of a benchmark's options; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DataError(FlexmemError):
    """Benchmark data is missing, has another digest than the pinned one, or is malformed; the message names file and
    place.
    """


class DataMissingError(DataError):
    """Data is not on this machine and could not be fetched; ``reason`` says why in short."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Question:
    """One question about a history.

    ``evidence`` holds gold turn ids that exist in the history; ``evidence_defects`` lists labels that had to be
    repaired or dropped. ``scored_by_evidence`` is False
    where the verbatim-evidence score does not apply (adversarial, abstention, no valid evidence): docs/methods.md E.6b.
    ``scored_by_recall`` is False where answer recall doesn't: its answer is not what a memory should show.

    ``details`` are the benchmark's own and can be written as JSON. Of a multiple-choice question they hold ``options``,
    the texts to choose from, and ``length_rule``: whether the ``longest`` or the ``shortest`` of them is the better
    guess (`flexmem.agents.choice_controls`).
    """

    question_id: str
    text: str
    answer: str | None
    question_type: str
    evidence: tuple[str, ...] = ()
    evidence_defects: tuple[str, ...] = ()
    scored_by_evidence: bool = True
    scored_by_recall: bool = True
    asked_at: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Instance:
    """One conversation with its questions. ``instance_id`` names the history as well; clusters of paired tests are
    instances.
    """

    instance_id: str
    sessions: Sequence[Session]
    questions: tuple[Question, ...]
    unit_tokens: int = 2_000

    @cached_property
    def units(self) -> Sequence[Unit]:
        """The history's units (docs/methods.md 0.5)."""
        return split_sessions(self.sessions, history=self.instance_id, limit=self.unit_tokens)


@dataclass(frozen=True)
class ReaderPrompt:
    """How a reader is asked one question: an instruction before the memory and the question's own words after it."""

    system: str
    question: str


class Benchmark(Protocol):
    """A question benchmark. Construction reads nothing; `instances` does and raises `DataError`."""

    @property
    def name(self) -> str: ...

    @property
    def config(self) -> BenchmarkConfig: ...

    @property
    def metrics(self) -> Sequence[str]:
        """What `score` returns; the first is the headline."""
        ...

    def data_digest(self) -> str:
        """Digest of the data and of every option that changes what is asked."""
        ...

    def instances(self) -> Sequence[Instance]: ...

    def notes(self) -> Sequence[str]:
        """What a report must say about the data: masks in use, defects, populations, a fallback."""
        ...

    def reader_prompt(self, instance: Instance, question: Question, seed: int) -> ReaderPrompt: ...

    def score(self, question: Question, reply: str, seed: int) -> Mapping[str, float]:
        """Scores in [0, 1] of a reader's reply, by metric; ``seed`` is the one that the prompt was made with."""
        ...
