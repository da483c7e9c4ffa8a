"""The synthetic benchmark behind the interface that all benchmarks share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from flexmem.benchmarks import text_scores
from flexmem.benchmarks.protocol import Instance, Question, ReaderPrompt
from flexmem.benchmarks.synthetic.config import SyntheticConfig
from flexmem.benchmarks.synthetic.generator import make_instance

ABSTENTION = "Not mentioned"

_RULES = (
    "Answer in as few words as will do: a name, a number, a date, a phrase taken from the conversation. "
    "Write dates as day, month and year, such as 9 March 2024. Where something is said to have happened "
    '"yesterday" or "two weeks ago", work out the day from the date of the session in which it is said. '
    "Where a thing changed over time, the latest session counts, unless an earlier state is asked for. "
    "Separate the items of a list by commas; answer how many with a number. "
    f"If the conversation doesn't tell it of the very person that is asked about, answer: {ABSTENTION}."
)
_NAMED = "Below is what is remembered of a long conversation between two people, {speakers}. "
_ROLES = (
    "Below is what is remembered of a user's long conversation with you, the assistant; the user asks the question. "
)


class _Conversations(Sequence[Instance]):
    """Instances written when they are asked for; the last one is kept, so that looking twice costs once."""

    def __init__(self, config: SyntheticConfig) -> None:
        self._config = config
        self._last: tuple[int, Instance] | None = None

    def __len__(self) -> int:
        return self._config.conversations

    @overload
    def __getitem__(self, index: int) -> Instance: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Instance]: ...
    def __getitem__(self, index: int | slice) -> Instance | Sequence[Instance]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        number = range(len(self))[index]
        last = self._last
        if last is None or last[0] != number:
            self._last = last = (number, make_instance(self._config, number))
        return last[1]

    def __iter__(self) -> Iterator[Instance]:
        return (self[number] for number in range(len(self)))


class SyntheticBenchmark:
    """Seeded conversations of any size with planted facts, for development, tests and questions of scale.

    No data is read: `instances` writes each conversation when it is looked at and keeps the last one only, so iterate,
    or hold what is needed twice.
    """

    name = "synthetic"
    metrics: Sequence[str] = ("f1", "contains")

    def __init__(self, config: SyntheticConfig | None = None) -> None:
        self.config = config or SyntheticConfig()
        self._instances = _Conversations(self.config)

    def data_digest(self) -> str:
        """Of the options and the generator's version, which fix every text."""
        return self.config.digest

    def instances(self) -> Sequence[Instance]:
        return self._instances

    def notes(self) -> Sequence[str]:
        config = self.config
        return (
            "Synthetic conversations out of template grammars: these figures serve development and questions of scale, "
            "and say nothing about any public benchmark.",
            f"Conversations: {config.conversations} of about {config.tokens:,} tokens, {config.questions} questions, "
            f"each from seed {config.seed}.",
            "Unanswerable questions have neither answer nor evidence; a reply scores 1 if it says so, else 0.",
        )

    def reader_prompt(self, instance: Instance, question: Question, seed: int) -> ReaderPrompt:
        """The same for every ``seed``: nothing in it is drawn."""
        speakers = dict.fromkeys(turn.speaker for turn in instance.sessions[0].turns if turn.speaker)
        lead = _NAMED.format(speakers=" and ".join(speakers)) if speakers else _ROLES
        asked = f"Today is {question.asked_at}. " if question.asked_at else ""
        return ReaderPrompt(system=lead + _RULES, question=f"{asked}Question: {question.text}\nAnswer:")

    def score(self, question: Question, reply: str, seed: int = 0) -> Mapping[str, float]:
        """``f1`` of the gold answer's words and ``contains``, 1 if the reply has the answer, or all parts of a list; 1
        and 1 for saying that an unanswerable question can't be answered. ``seed`` changes nothing.
        """
        if question.answer is None:
            right = float(text_scores.abstains(reply))
            return {"f1": right, "contains": right}
        parts = question.details["parts"] if question.question_type == "list" else (question.answer,)
        return {
            "f1": text_scores.f1(question.answer, reply),
            "contains": float(text_scores.contains(parts, reply)),
        }
