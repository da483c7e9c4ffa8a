"""The PersonaMem benchmark (docs/methods.md E.2b)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from flexmem.benchmarks import data
from flexmem.benchmarks.options_digest import options_digest
from flexmem.benchmarks.personamem import files, notes, prompts, scoring
from flexmem.benchmarks.personamem.config import PersonaMemConfig
from flexmem.benchmarks.personamem.loader import Census, make_instances
from flexmem.benchmarks.personamem.schema import QuestionRecord, parse_contexts, parse_questions
from flexmem.benchmarks.protocol import BenchmarkConfig, DataError, DataMissingError, Instance, Question, ReaderPrompt
from flexmem.benchmarks.stratified import draw


@dataclass(frozen=True)
class _Loaded:
    instances: tuple[Instance, ...]
    digests: tuple[str, str]  # SHA-256 of the raw bytes of questions and contexts
    unpinned: tuple[tuple[str, str], ...]  # name and digest
    census: Census


class PersonaMemBenchmark:
    """PersonaMem behind the `Benchmark` protocol. The data is read once, at first need."""

    name: str = "personamem"
    metrics: Sequence[str] = ("accuracy",)
    data_files: Sequence[data.DataFile] = files.FILES

    def __init__(self, config: PersonaMemConfig | None = None) -> None:
        self._config = config or PersonaMemConfig()
        self.config: BenchmarkConfig = self._config

    def data_digest(self) -> str:
        """SHA-256 over the raw data's digests and all options but ``path``. Reads nothing where both are pinned.

        Raises:
            DataError: a file without a pinned digest can't be read.
        """
        config = self._config
        digests: tuple[str | None, ...] = (files.QUESTIONS[config.size].sha256, files.CONTEXTS[config.size].sha256)
        if config.path is not None or None in digests:
            digests = self._loaded.digests
        return options_digest(digests, config)

    def instances(self) -> Sequence[Instance]:
        """One instance for each history, in the order of the selected questions.

        Raises:
            DataError: the data is missing and unreachable, not the pinned file, malformed, or nothing is selected.
        """
        return self._loaded.instances

    def notes(self) -> Sequence[str]:
        """Populations, the length leak, defects, selections, files without a pinned digest."""
        loaded = self._loaded
        return notes.describe(loaded.instances, self._config, loaded.census, unpinned=loaded.unpinned)

    def reader_prompt(self, instance: Instance, question: Question, seed: int) -> ReaderPrompt:
        """The same for every ``seed``: options stand in the file's order."""
        return prompts.reader_prompt(question.text, question.details["options"])

    def score(self, question: Question, reply: str, seed: int = 0) -> Mapping[str, float]:
        """``accuracy``: 1 if the reply names the key's letter and no other, else 0. ``seed`` changes nothing."""
        letter = (question.answer or "").strip("()")
        return {"accuracy": float(scoring.names_only(reply, letter))}

    @cached_property
    def _loaded(self) -> _Loaded:
        config, census = self._config, Census()
        questions, contexts = self._files()
        records = self._selected(parse_questions(b"".join(data.raw_chunks(questions.path)), questions.name))
        if not records:
            raise DataError(f"{questions.name}: these options select no question. Widen `question_types`.")
        wanted = {record.context_id for record in records}
        messages = parse_contexts(data.raw_chunks(contexts.path), contexts.name, wanted)
        instances = make_instances(records, messages, config, census)
        unpinned = tuple((file.name, file.sha256) for file in (questions, contexts) if not file.pinned)
        return _Loaded(instances, (questions.sha256, contexts.sha256), unpinned, census)

    def _selected(self, records: Sequence[QuestionRecord]) -> list[QuestionRecord]:
        config = self._config
        known = sorted({record.question_type for record in records})
        unknown = sorted(set(config.question_types or ()).difference(known))
        if unknown:
            raise DataError(f"PersonaMem {config.size}: no question type {unknown[0]!r}; there are {', '.join(known)}")
        selected = [r for r in records if config.question_types is None or r.question_type in config.question_types]
        if config.questions is None or config.sample_seed is None:
            return selected[: config.questions]
        chosen = draw(_by_type(selected), min(config.questions, len(selected)), config.sample_seed)
        return [record for record in selected if record.question_id in chosen]

    def _files(self) -> tuple[_File, _File]:
        size, path = self._config.size, self._config.path
        pair = (files.QUESTIONS[size], files.CONTEXTS[size])
        if path is None:
            first, second = (_File(file.name, *data.checked(file), file.sha256 is not None) for file in pair)
        else:
            first, second = (_own(Path(path).expanduser(), Path(file.name).name) for file in pair)
        return first, second


@dataclass(frozen=True)
class _File:
    name: str
    path: Path
    sha256: str
    pinned: bool


def _own(folder: Path, name: str) -> _File:
    found = [path for path in (folder / name, folder / f"{name}.xz") if path.is_file()]
    if not found:
        message = f"{folder / name}: no such file, nor {name}.xz. `path` is a folder that holds both files of the size."
        raise DataMissingError(message, f"{folder / name} does not exist")
    return _File(str(found[0]), *data.checked_own(found[0]), pinned=False)


def _by_type(records: Iterable[QuestionRecord]) -> dict[str, list[str]]:
    strata: dict[str, list[str]] = {}
    for record in records:
        strata.setdefault(record.question_type, []).append(record.question_id)
    return strata
