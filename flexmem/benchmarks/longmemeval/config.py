"""Options of the LongMemEval benchmark."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, PositiveInt, model_validator

from flexmem.benchmarks.protocol import BenchmarkConfig
from flexmem.history import READER_UNIT_TOKENS

QuestionType = Literal[
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
]
QUESTION_TYPES: tuple[QuestionType, ...] = get_args(QuestionType)

Variant = Literal["s", "m", "oracle", "s_cleaned", "m_cleaned", "oracle_cleaned", "s_cleaned_54", "evidence_only_8"]
EVIDENCE_ONLY: Variant = "evidence_only_8"


class LongMemEvalConfig(BenchmarkConfig):
    """Which file, which of its questions, and how much of their histories is used.

    ``variant`` names the file: `s` has some 50 sessions a question, `m` some 500, `oracle` the evidence sessions alone;
    `…_cleaned` is the authors' corrected release. ``path`` is a file of your own in the official schema in its place,
    plain or ``.xz``; its digest is recorded instead of checked.

    ``split``: the frozen 60 development questions or the other 440 (docs/methods.md E.6c). ``question_types`` and
    ``question_ids`` select. ``disputed``: questions whose answer key others doubt are kept, kept and listed in the
    notes, or left out. ``questions`` keeps so many of what is left: the file's first ones, or with ``sample_seed`` a
    sample stratified by type and abstention.

    ``max_history_tokens`` shortens histories: the evidence sessions stay, the newest others join while there is room.
    ``unit_tokens`` is the size of a unit (docs/methods.md 0.5).
    """

    variant: Variant = "s_cleaned"
    path: str | None = None
    split: Literal["all", "development", "held_out"] = "all"
    question_types: Annotated[tuple[QuestionType, ...], Field(min_length=1)] | None = None
    question_ids: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    disputed: Literal["keep", "list", "mask"] = "keep"  # published figures use the official key, mistakes included
    questions: PositiveInt | None = None
    sample_seed: int | None = None
    max_history_tokens: PositiveInt | None = None
    unit_tokens: PositiveInt = READER_UNIT_TOKENS

    @model_validator(mode="after")
    def _seed_with_a_number(self) -> LongMemEvalConfig:
        if self.sample_seed is not None and self.questions is None:
            raise ValueError("sample_seed draws a sample, so it needs `questions`, the sample's size")
        return self
