"""What a synthetic benchmark is made from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import Field, model_validator

from flexmem.benchmarks.protocol import BenchmarkConfig

GENERATOR_VERSION = 1  # raise it whenever the same configuration gives another text

QuestionType = Literal["single", "paraphrase", "update", "earlier", "temporal", "list", "count", "unanswerable"]
QUESTION_TYPES: tuple[QuestionType, ...] = get_args(QuestionType)

LONGEST_CHAIN = 3  # values that one updated attribute takes
LARGEST_COLLECTION = 4  # items of one list or count question
PLANTED_TOKENS = 40  # tokens of a turn that tells a fact and of the shortest reply to it, rounded up
_PLANTED_SHARE = 0.7  # of a history that the turns of facts may take, lest no filler is left
_MOST_QUESTIONS = 2_000
_DEFAULT_QUESTIONS = 40
_SHORTEST_SESSION, _LONGEST_SESSION = 250, 4_000
_USUAL_SESSIONS = 25
FEWEST_SESSIONS = LARGEST_COLLECTION


class QuestionShares(BenchmarkConfig):
    """Relative weights of the question types; they need not add up to 1. A type of weight 0 is not asked.

    ``single``: a fact, asked in its own words · ``paraphrase``: a fact, asked in other words · ``update``: the current
    value of a fact that changed · ``earlier``: the value before a later one · ``temporal``: the day of something told
    as "two days ago" · ``list``, ``count``: items told in several sessions · ``unanswerable``: something told of
    somebody else only.
    """

    single: float = Field(0.20, ge=0)
    paraphrase: float = Field(0.15, ge=0)
    update: float = Field(0.15, ge=0)
    earlier: float = Field(0.10, ge=0)
    temporal: float = Field(0.15, ge=0)
    list: float = Field(0.05, ge=0)
    count: float = Field(0.05, ge=0)
    unanswerable: float = Field(0.15, ge=0)

    def counts(self, questions: int) -> dict[QuestionType, int]:
        """How many questions of each type, by largest remainders; they add up to ``questions``."""
        weights: dict[QuestionType, float] = {kind: getattr(self, kind) for kind in QUESTION_TYPES}
        total = sum(weights.values())
        exact = {kind: questions * weight / total for kind, weight in weights.items()}
        counts = {kind: int(number) for kind, number in exact.items()}
        by_remainder = sorted(QUESTION_TYPES, key=lambda kind: counts[kind] - exact[kind])
        for kind in by_remainder[: questions - sum(counts.values())]:
            counts[kind] += 1
        return counts

    @model_validator(mode="after")
    def _some_weight(self) -> QuestionShares:
        if not any(getattr(self, kind) for kind in QUESTION_TYPES):
            raise ValueError("every question type has weight 0")
        return self


def _usual_questions(validated: Mapping[str, Any]) -> int:
    tokens, shares = validated.get("tokens", 0), validated.get("shares", QuestionShares())
    return max(1, min(_DEFAULT_QUESTIONS, most_questions(tokens, shares)))


def most_questions(tokens: int, shares: QuestionShares) -> int:
    """The most questions whose facts have room in a history of ``tokens`` tokens."""
    low, high = 0, _MOST_QUESTIONS
    while low < high:
        middle = (low + high + 1) // 2
        if _planted(shares.counts(middle)) * PLANTED_TOKENS <= _PLANTED_SHARE * tokens:
            low = middle
        else:
            high = middle - 1
    return low


def _planted(counts: Mapping[QuestionType, int]) -> int:
    """Turns that these questions need at most."""
    alone = sum(counts[kind] for kind in ("single", "paraphrase", "temporal", "unanswerable"))
    chains = max(counts["update"], counts["earlier"])
    return alone + LONGEST_CHAIN * chains + LARGEST_COLLECTION * (counts["list"] + counts["count"])


def _digest(options: str) -> str:
    return hashlib.blake2b(f"{GENERATOR_VERSION}\n{options}".encode(), digest_size=16).hexdigest()


class SyntheticConfig(BenchmarkConfig):
    """Options of the generator; equal options give equal texts on every machine."""

    conversations: int = Field(10, ge=1)
    # Of one conversation's turns as a history shows them, speakers' names included, unit headers not.
    tokens: int = Field(20_000, ge=1_000, le=100_000_000)
    shares: QuestionShares = QuestionShares()
    # A conversation. The default is 40, or as many as a short history has room for.
    questions: int = Field(default_factory=_usual_questions, ge=1, le=_MOST_QUESTIONS)
    seed: int = 0
    unit_tokens: int = Field(2_000, ge=1)
    # "named": two people with names; "roles": a user and an assistant without.
    style: Literal["named", "roles"] = "named"
    # Mean tokens of a session; None: 25 sessions of 250 to 4,000 tokens, and more of them in larger histories.
    session_tokens: int | None = Field(None, ge=150)
    # Mean sentences a turn (geometric, about 12 tokens each), of speakers and of an assistant, and the most.
    turn_sentences: float = Field(2.4, ge=1)
    assistant_sentences: float = Field(9.0, ge=1)
    longest_turn: int = Field(40, ge=1)
    # Planted lures a question: the same attribute of somebody else, or its words without a value; as far as room goes.
    distractors: int = Field(2, ge=0)
    # Share of filler turns with such a lure, so that a history of any size has as many of them a token.
    ambient: float = Field(0.03, ge=0, le=1)

    @property
    def sessions(self) -> int:
        """Sessions of one conversation."""
        mean = self.session_tokens or min(_LONGEST_SESSION, max(_SHORTEST_SESSION, self.tokens // _USUAL_SESSIONS))
        return max(FEWEST_SESSIONS, round(self.tokens / mean))

    @property
    def digest(self) -> str:
        """BLAKE2b, 16 bytes in hexadecimal, of the options and the generator's version."""
        return _digest(self.model_dump_json())

    @property
    def conversation_digest(self) -> str:
        """As `digest`, of what one conversation depends on: how many others there are doesn't count."""
        return _digest(self.model_dump_json(exclude={"conversations"}))

    @model_validator(mode="after")
    def _room(self) -> SyntheticConfig:
        most = most_questions(self.tokens, self.shares)
        if self.questions > most:
            raise ValueError(
                f"{self.questions} questions of these shares need more than {self.tokens} tokens a conversation: "
                f"raise `tokens`, or ask at most {most}"
            )
        return self
