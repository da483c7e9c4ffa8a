"""Options of the PersonaMem benchmark."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from flexmem.benchmarks.protocol import BenchmarkConfig
from flexmem.history import READER_UNIT_TOKENS

Size = Literal["32k", "128k", "1M"]


class PersonaMemConfig(BenchmarkConfig):
    """Which files, which of their questions, and how much of their histories is used.

    ``size`` is that of the contexts, in tokens. ``path`` is a folder of your own with ``questions_<size>.csv`` and
    ``shared_contexts_<size>.jsonl``, plain or ``.xz``; their digests are recorded instead of checked.

    ``question_types`` selects, in the words of the file (they differ between sizes). ``questions`` keeps so many of
    what is left: the file's first ones, or with ``sample_seed`` a sample stratified by type.

    ``max_history_tokens`` keeps the newest sessions that fit, and the newest in any case. ``unit_tokens`` is the size
    of a unit (docs/methods.md 0.5).
    """

    size: Size = "32k"
    path: str | None = None
    question_types: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    questions: PositiveInt | None = None
    sample_seed: int | None = None
    max_history_tokens: PositiveInt | None = None
    unit_tokens: PositiveInt = READER_UNIT_TOKENS

    @model_validator(mode="after")
    def _seed_with_a_number(self) -> PersonaMemConfig:
        if self.sample_seed is not None and self.questions is None:
            raise ValueError("sample_seed draws a sample, so it needs `questions`, the sample's size")
        return self
