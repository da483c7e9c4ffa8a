"""Judging: a stage of its own after reading, so that other judges ask no reader again (docs/methods.md E.3)."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from flexmem.agents.judge import Verdict, all_rubrics_digest, judge, rubric_digest
from flexmem.benchmarks.protocol import Question
from flexmem.llm.config import make_model
from flexmem.llm.errors import ModelError
from flexmem.llm.reply_store import ReplayStore, SqliteReplyStore
from flexmem.llm.stored import StoredModel
from flexmem.ports import ChatModel, ReplyStore
from flexmem.sweep.config import JudgeEntry
from flexmem.sweep.failures import FINAL, classify, describe
from flexmem.sweep.fingerprint import digest
from flexmem.sweep.heartbeat import Heartbeat
from flexmem.sweep.ledger import REPLIES, export_calls
from flexmem.sweep.merging import finish_merges, merge_parts
from flexmem.sweep.metered import cost
from flexmem.sweep.plan import LoadedBenchmark
from flexmem.sweep.preflight import check_model
from flexmem.sweep.results import lock_for_writing, parts, read_columns, read_part, write_parts
from flexmem.sweep.sink import RowSink

JUDGEMENTS = "judgements"
_BEAT_EVERY_S = 2.0
_EPISODE = ["episode", "benchmark", "instance", "question", "outcome", "reply", "repeat"]

MakeModel = Callable[[JudgeEntry], ChatModel]
OnJudged = Callable[[int, int], None]
"""Told how many judgements are there and how many there will be."""


@dataclass(frozen=True)
class JudgingOutcome:
    """``done`` counts judgements, earlier ones' included; ``errors`` says why others are missing, with how often;
    ``stopped`` why judging was given up, empty if it was not.
    """

    wanted: int
    done: int
    errors: Mapping[str, int]
    stopped: str = ""

    @property
    def complete(self) -> bool:
        return self.done >= self.wanted


@dataclass(frozen=True)
class _Task:
    """One reply before one judge."""

    key: str
    episode: str
    repeat: int
    judge: int
    rubric: str
    question: Question
    reply: str


def judge_fields(entry: JudgeEntry, model: Mapping[str, Any]) -> dict[str, Any]:
    """All that shapes a judge's word; ``model`` is the model's own description."""
    return {
        "model": dict(model),
        "max_tokens": entry.max_tokens,
        "effort": entry.effort,
        "rubrics": all_rubrics_digest(),
    }


def described_judges(judges: Sequence[JudgeEntry]) -> dict[str, dict[str, Any]]:
    """`judge_fields` of configured judges, by label, in order."""
    return {entry.label: judge_fields(entry, make_model(entry.model).describe()) for entry in judges}


def rubric_of(loaded: LoadedBenchmark, question: Question) -> str | None:
    """The rubric that a benchmark names for a question; None where its own score is the official one."""
    name = getattr(loaded.benchmark, "rubric", None)
    rubric: str | None = name(question) if name is not None else None
    return rubric


def judged_types(benchmarks: Sequence[LoadedBenchmark]) -> dict[str, list[str]]:
    """The question types of each benchmark that a judge scores."""
    found = {
        loaded.name: sorted(
            {
                question.question_type
                for instance in loaded.instances.values()
                for question in instance.questions
                if rubric_of(loaded, question) is not None
            }
        )
        for loaded in benchmarks
    }
    return {name: types for name, types in found.items() if types}


def judge_run(
    benchmarks: Sequence[LoadedBenchmark],
    judges: Sequence[JudgeEntry],
    out: Path,
    make_model: MakeModel,
    *,
    in_flight: int = 32,
    max_usd: float | None = None,
    replay: Path | None = None,
    on_judged: OnJudged | None = None,
) -> JudgingOutcome:
    """Have every reply of a run judged that is not yet; the same call again goes on.

    Args:
        benchmarks: those of the run, with their questions.
        judges: who judges; each judges every reply.
        out: the run's folder.
        make_model: a judge's model.
        in_flight: calls at a time.
        max_usd: cap on what the run has cost, in USD.
        replay: a finished run's reply store that replies are taken from; nothing is sent then.
        on_judged: called now and then.

    Raises:
        FolderBusyError: a run writes into the folder. TornPartError: a file can't be read.
    """
    with lock_for_writing(out):
        stage = _Stage(benchmarks, judges, out, on_judged or (lambda done, wanted: None))
        heartbeat = Heartbeat(out)
        try:
            outcome = asyncio.run(stage.run(make_model, in_flight, max_usd, replay, heartbeat))
        finally:
            heartbeat.end()
        export_calls(out)
        merge_parts(out, JUDGEMENTS, least=1, whole=True)
        finish_merges(out, JUDGEMENTS)
        return outcome


class _Stage:
    """The judging of one run's replies: what is wanted, what is there, and what went wrong so far."""

    def __init__(
        self, benchmarks: Sequence[LoadedBenchmark], judges: Sequence[JudgeEntry], out: Path, on_judged: OnJudged
    ) -> None:
        self._questions = {
            (loaded.name, instance.instance_id, question.question_id): (question, rubric)
            for loaded in benchmarks
            for instance in loaded.instances.values()
            for question in instance.questions
            if (rubric := rubric_of(loaded, question)) is not None
        }
        self._judges = judges
        self._out = out
        self._on_judged = on_judged
        self._done = {
            key
            for table in read_columns(out, JUDGEMENTS, ["judgement"])
            for key in table.column("judgement").to_pylist()
        }
        self._wanted = 0
        self._judged = 0
        self._asking = 0
        self._errors: Counter[str] = Counter()

    async def run(
        self, make_model: MakeModel, in_flight: int, max_usd: float | None, replay: Path | None, heartbeat: Heartbeat
    ) -> JudgingOutcome:
        """Judge what is not judged yet, ``in_flight`` replies at a time, and keep ``heartbeat`` beating meanwhile.

        A model's error that would befall every other call ends it: the outcome's ``stopped`` says so, and what is
        judged by then is kept.

        Raises:
            TornPartError: a file of the run can't be read. ReplyStoreError: replies can't be kept.
        """
        models = [make_model(entry) for entry in self._judges]
        fields = [judge_fields(entry, model.describe()) for entry, model in zip(self._judges, models, strict=True)]
        for task in self._tasks(fields):
            self._wanted += 1
            self._judged += task.key in self._done
        self._on_judged(self._judged, self._wanted)
        stopped = ""
        if self._judged < self._wanted:
            sink = RowSink(self._deliver, f"j{uuid.uuid4().hex}", rows=200, seconds=2.0)
            async with _opened(self._out, max_usd, replay) as store, _closing(models):
                if replay is None:
                    try:
                        for model in models:
                            await check_model(model)
                    except ModelError as missing:
                        return JudgingOutcome(self._wanted, self._judged, {}, describe(missing))
                left = (task for task in self._tasks(fields) if task.key not in self._done)
                lanes = [asyncio.ensure_future(self._lane(left, models, store, sink)) for _ in range(in_flight)]
                async with self._beating(heartbeat):
                    ended = await asyncio.gather(*lanes, return_exceptions=True)
                    await sink.deliver()
            for error in ended:
                if isinstance(error, ModelError):
                    stopped = describe(error)
                elif isinstance(error, BaseException):
                    raise error
        return JudgingOutcome(self._wanted, self._judged, dict(self._errors), stopped)

    @asynccontextmanager
    async def _beating(self, heartbeat: Heartbeat) -> AsyncIterator[None]:
        async def beat() -> None:
            while True:
                heartbeat.beat({"judging": True, "in_flight": {"judge": self._asking}})
                await asyncio.sleep(_BEAT_EVERY_S)

        task = asyncio.ensure_future(beat())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _tasks(self, fields: Sequence[Mapping[str, Any]]) -> Iterator[_Task]:
        """Every reply before every judge, file by file; ``fields`` are the judges'."""
        for path in parts(self._out, "episodes"):
            for row in read_part(path, "episodes", _EPISODE).to_pylist():
                found = self._questions.get((row["benchmark"], row["instance"], row["question"]))
                if found is None or row["outcome"] != "ok" or row["reply"] is None:
                    continue
                question, rubric = found
                for number, entry in enumerate(self._judges):
                    key = digest([row["episode"], entry.label, fields[number], rubric])
                    yield _Task(key, row["episode"], row["repeat"], number, rubric, question, row["reply"])

    async def _lane(
        self, tasks: Iterator[_Task], models: Sequence[ChatModel], store: ReplyStore, sink: RowSink
    ) -> None:
        for task in tasks:
            entry = self._judges[task.judge]
            asked = models[task.judge]
            most_usd = getattr(asked, "most_usd", None)  # models without a price have none
            model = StoredModel(asked, store, task.repeat, "judge", subject=f"judgement:{task.key}", most_usd=most_usd)
            row = _row(task, entry, models[task.judge])
            self._asking += 1
            try:
                verdict = await judge(
                    model,
                    task.rubric,
                    task.question.text,
                    task.question.answer or "",
                    task.reply,
                    max_tokens=entry.max_tokens,
                    effort=entry.effort,
                )
            except ModelError as error:
                if classify(error) == "configuration":
                    raise
                self._errors[f"{classify(error)}: {describe(error)}"] += 1
                if classify(error) not in FINAL:
                    continue  # the same command asks again
                row |= {"error_class": classify(error), "error": describe(error)}
            else:
                row |= _verdict(verdict)
            finally:
                self._asking -= 1
            sink.add(JUDGEMENTS, row)
            self._judged += 1
            self._on_judged(self._judged, self._wanted)
            await sink.deliver_if_due()

    async def _deliver(self, part: str, tables: Mapping[str, pa.Table]) -> int:
        return await asyncio.to_thread(write_parts, self._out, part, tables)


@asynccontextmanager
async def _opened(out: Path, max_usd: float | None, replay: Path | None) -> AsyncIterator[ReplyStore]:
    store = ReplayStore(replay) if replay is not None else SqliteReplyStore(out / REPLIES, uuid.uuid4().hex, max_usd)
    try:
        yield store
    finally:
        store.close()


@asynccontextmanager
async def _closing(models: Sequence[ChatModel]) -> AsyncIterator[None]:
    """Close the models' connections, where they have any, before the event loop ends that they belong to."""
    try:
        yield
    finally:
        for model in models:
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()


def _row(task: _Task, entry: JudgeEntry, model: ChatModel) -> dict[str, Any]:
    return {
        "judgement": task.key,
        "episode": task.episode,
        "judge": entry.label,
        "judge_model": model.name,
        "rubric": task.rubric,
        "prompt": rubric_digest(task.rubric),
        "finished_at": datetime.now(UTC),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    reply = verdict.reply
    unreadable = {} if verdict.readable else {"error_class": "agent", "error": "the judge said neither yes nor no"}
    return {
        "label": verdict.label,
        "reply": reply.text,
        "input_tokens": reply.usage.input,
        "output_tokens": reply.usage.output,
        "usd": cost(reply.trail),
        **unreadable,
    }
