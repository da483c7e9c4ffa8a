"""The LongMemEval benchmark (docs/methods.md E.2, E.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from flexmem.benchmarks import data, text_scores
from flexmem.benchmarks.longmemeval import files, notes, prompts, rubrics, split
from flexmem.benchmarks.longmemeval.config import EVIDENCE_ONLY, LongMemEvalConfig
from flexmem.benchmarks.longmemeval.disputed import DISPUTED
from flexmem.benchmarks.longmemeval.loader import Census, make_instance
from flexmem.benchmarks.longmemeval.schema import parse, raw_records
from flexmem.benchmarks.options_digest import options_digest
from flexmem.benchmarks.protocol import BenchmarkConfig, DataError, Instance, Question, ReaderPrompt

_Raw = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class _Loaded:
    instances: tuple[Instance, ...]
    digest: str  # SHA-256 of the raw bytes
    census: Census
    masked: tuple[str, ...]


class LongMemEvalBenchmark:
    """LongMemEval behind the `Benchmark` protocol. The file is read at first need, record by record."""

    name: str = "longmemeval"
    metrics: Sequence[str] = ("f1", "contains")
    data_files: Sequence[data.DataFile] = files.FILES

    def __init__(self, config: LongMemEvalConfig | None = None) -> None:
        self._config = config or LongMemEvalConfig()
        self.config: BenchmarkConfig = self._config

    def data_digest(self) -> str:
        """SHA-256 over the raw data's digest and all options but ``path``. Reads nothing where the digest is pinned.

        Raises:
            DataError: a file of the user's own can't be read.
        """
        pinned = files.BY_VARIANT[self._config.variant].sha256 if self._config.path is None else None
        digests = [pinned or self._loaded.digest, self._config.variant == EVIDENCE_ONLY]
        return options_digest(digests, self._config, without=("path", "variant"))

    def instances(self) -> Sequence[Instance]:
        """One instance for each selected question, in the file's order.

        Raises:
            DataError: the data is missing and unreachable, not the pinned file, malformed, or nothing is selected.
        """
        return self._loaded.instances

    def notes(self) -> Sequence[str]:
        """Populations, rules, defects, selections, disputed keys, the file."""
        loaded = self._loaded
        return notes.describe(loaded.instances, self._config, loaded.census, digest=loaded.digest, masked=loaded.masked)

    def reader_prompt(self, instance: Instance, question: Question, seed: int) -> ReaderPrompt:
        """The same for every ``seed`` and every type of question."""
        return prompts.reader_prompt(question.text, question.asked_at or "")

    def score(self, question: Question, reply: str, seed: int = 0) -> Mapping[str, float]:
        """``f1`` of the key's words and ``contains``, 1 if the reply has the key in a row; of an abstention 1 and 1 for
        saying that it can't be answered. ``seed`` changes nothing.
        """
        if question.details["abstention"]:
            right = float(text_scores.abstains(reply))
            return {"f1": right, "contains": right}
        key = question.answer or ""
        return {"f1": text_scores.f1(key, reply), "contains": float(text_scores.contains((key,), reply))}

    def rubric(self, question: Question) -> rubrics.Rubric:
        """Which rubric a judge takes. Of a ``preference`` the answer is what a good reply uses, of an ``abstention`` it
        says why there is none.
        """
        return rubrics.rubric(question.question_type, abstention=question.details["abstention"])

    @cached_property
    def _loaded(self) -> _Loaded:
        config, census = self._config, Census()
        if config.path is None:
            file = files.BY_VARIANT[config.variant]
            source, checked = file.name, data.checked(file)
        else:
            source, checked = config.path, data.checked_own(Path(config.path).expanduser())
        masked: list[str] = []
        bare = config.path is None and config.variant == EVIDENCE_ONLY
        instances = tuple(
            make_instance(parse(raw, place, evidence_only=bare), config, census)
            for place, raw in self._sampled(checked.path, source, masked)
        )
        if not instances:
            raise DataError(
                f"{source}: these options select no question. Widen `split`, `question_types`, `question_ids` or "
                "`disputed`."
            )
        _refuse_equal_ids(instances)
        return _Loaded(instances, checked.sha256, census, tuple(masked))

    def _sampled(self, path: Path, source: str, masked: list[str]) -> Iterator[_Raw]:
        """The selected records. A sample takes two passes, so that only one record has to be held at a time."""
        size, seed = self._config.questions, self._config.sample_seed
        selected = self._selected(path, source, masked)
        if size is None or seed is None:
            return islice(selected, size)
        known = [(raw["question_id"], str(raw.get("question_type"))) for _, raw in self._selected(path, source, [])]
        chosen = split.draw(known, min(size, len(known)), seed)
        return (record for record in selected if record[1]["question_id"] in chosen)

    def _selected(self, path: Path, source: str, masked: list[str]) -> Iterator[_Raw]:
        config = self._config
        wanted = set(config.question_ids or ())
        for place, raw in raw_records(data.raw_chunks(path), source):
            name = raw["question_id"]
            wanted.discard(name)
            if config.split != "all" and name not in split.part(config.split):
                _refuse_unknown(name, place)
                continue
            if config.question_types is not None and raw.get("question_type") not in config.question_types:
                continue
            if config.question_ids is not None and name not in config.question_ids:
                continue
            if config.disputed == "mask" and name in DISPUTED:
                masked.append(name)
                continue
            yield place, raw
        if wanted:
            raise DataError(f"{source}: has no question {', '.join(sorted(wanted))}; see `question_ids`")


def _refuse_unknown(question_id: str, place: str) -> None:
    if question_id not in split.part("development") | split.part("held_out"):
        raise DataError(f"{place}: is none of the 500 official questions, so it is in neither part; use `split: all`")


def _refuse_equal_ids(instances: Iterable[Instance]) -> None:
    seen: dict[str, str] = {}
    for instance in instances:
        question = instance.questions[0].question_id
        other = seen.setdefault(instance.instance_id, question)
        if other != question:
            raise DataError(f"LongMemEval: questions {other} and {question} get the same instance id; rename one")
