"""The LoCoMo benchmark (docs/methods.md E.1, E.6)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from flexmem.benchmarks import data
from flexmem.benchmarks.locomo import files, notes, prompts, scoring
from flexmem.benchmarks.locomo.audit import wrong_keys
from flexmem.benchmarks.locomo.config import ADVERSARIAL, LocomoConfig
from flexmem.benchmarks.locomo.loader import make_instances, speakers
from flexmem.benchmarks.locomo.schema import parse_audit, parse_conversations
from flexmem.benchmarks.options_digest import options_digest
from flexmem.benchmarks.protocol import BenchmarkConfig, Instance, Question, ReaderPrompt


@dataclass(frozen=True)
class _Loaded:
    instances: tuple[Instance, ...]
    digest: str  # SHA-256 of the conversations' raw bytes
    masked: int


class LocomoBenchmark:
    """LoCoMo behind the `Benchmark` protocol. The data is read once, at first need."""

    name: str = "locomo"
    metrics: Sequence[str] = scoring.METRICS
    data_files: Sequence[data.DataFile] = (files.LOCOMO10, files.AUDIT)

    def __init__(self, config: LocomoConfig | None = None) -> None:
        self._config = config or LocomoConfig()
        self.config: BenchmarkConfig = self._config

    def data_digest(self) -> str:
        """SHA-256 over the raw data's digest and all options but ``path``. Reads nothing where the digest is pinned.

        Raises:
            DataError: a file of the user's own can't be read.
        """
        digests = [files.LOCOMO10.sha256 if self._config.path is None else self._loaded.digest]
        if self._config.mask_audited:
            digests.append(files.AUDIT.sha256)
        # As if there were no such option where it is not used, so that older runs go on.
        unused = ("max_history_tokens",) if self._config.max_history_tokens is None else ()
        return options_digest(digests, self._config, without=("path", *unused))

    def instances(self) -> Sequence[Instance]:
        """The selected conversations with their selected questions, in the file's order.

        Raises:
            DataError: the data is missing and unreachable, not the pinned file, malformed, or nothing is selected.
        """
        return self._loaded.instances

    def notes(self) -> Sequence[str]:
        """Populations, defects, repeated questions, the mask, a file of the user's own."""
        loaded = self._loaded
        return notes.describe(loaded.instances, self._config, digest=loaded.digest, masked=loaded.masked)

    def reader_prompt(self, instance: Instance, question: Question, seed: int) -> ReaderPrompt:
        """The prompt; in category 5 ``seed`` decides the order of the two options."""
        return prompts.reader_prompt(
            speakers=speakers(instance),
            category=question.details["category"],
            text=question.text,
            options=_options(question, seed),
        )

    def score(self, question: Question, reply: str, seed: int | None = None) -> Mapping[str, float]:
        """All metrics. In category 5 a reply of one letter is understood only with the prompt's ``seed``; without it
        such a reply scores 0.
        """
        if seed is not None and (shown := _options(question, seed)) is not None:
            reply = prompts.spelled_out(reply, shown)
        return scoring.score(question.details["category"], question.answer, reply)

    def rubric(self, question: Question) -> str | None:
        """What judges hold a reply against; None in category 5, whose score is by rule."""
        return None if question.details["category"] == ADVERSARIAL else "locomo"

    @cached_property
    def _loaded(self) -> _Loaded:
        config = self._config
        if config.path is None:
            source, raw = files.LOCOMO10.name, data.read(files.LOCOMO10)
            digest = hashlib.sha256(raw).hexdigest()
        else:
            source = config.path
            raw, digest = data.read_own(Path(config.path).expanduser())
        records = parse_conversations(raw, source)
        masked: frozenset[tuple[str, int]] = frozenset()
        if config.mask_audited:
            masked = wrong_keys(parse_audit(data.read(files.AUDIT), files.AUDIT.name), records)
        return _Loaded(make_instances(records, config, masked), digest, len(masked))


def _options(question: Question, seed: int) -> tuple[str, str] | None:
    if question.details["category"] != ADVERSARIAL:
        return None
    return prompts.options(question.details["adversarial_answer"], question.question_id, seed)
