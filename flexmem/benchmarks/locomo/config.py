"""Options of the LoCoMo benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, PositiveInt, field_validator

from flexmem.benchmarks.protocol import BenchmarkConfig
from flexmem.history import READER_UNIT_TOKENS

ADVERSARIAL = 5
CATEGORIES = (1, 2, 3, 4, ADVERSARIAL)

# After the official code's labels. Other harnesses name the same numbers otherwise (1 single-hop, 3 multi-hop), so the
# numbers are what counts and the names can be set.
CATEGORY_NAMES: Mapping[int, str] = {
    1: "multi_hop",
    2: "temporal",
    3: "open_domain",
    4: "single_hop",
    ADVERSARIAL: "adversarial",
}

Category = Annotated[int, Field(ge=1, le=5)]


class LocomoConfig(BenchmarkConfig):
    """Which conversations and questions are used.

    ``path`` is a file of your own in LoCoMo's schema, plain or ``.xz``; its digest is recorded instead of checked.
    ``questions_per_conversation`` keeps the first n after every other filter. ``mask_audited`` drops the questions
    whose answer key a public audit found wrong. ``unit_tokens`` is the size of a unit (docs/methods.md 0.5).
    ``category_names`` renames categories; those not named keep their name. ``max_history_tokens`` keeps the newest
    sessions that fit, and the newest in any case; questions with older evidence are left out.
    """

    path: str | None = None
    conversations: Annotated[list[str], Field(min_length=1)] | None = None
    categories: Annotated[tuple[Category, ...], Field(min_length=1)] = CATEGORIES
    questions_per_conversation: PositiveInt | None = None
    max_history_tokens: PositiveInt | None = None
    mask_audited: bool = False  # published figures use the official key, mistakes included
    unit_tokens: PositiveInt = READER_UNIT_TOKENS
    category_names: dict[Category, str] = Field(default_factory=lambda: dict(CATEGORY_NAMES))

    @field_validator("categories")
    @classmethod
    def _once_each(cls, categories: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(categories)))

    @field_validator("category_names")
    @classmethod
    def _complete_and_distinct(cls, names: dict[int, str]) -> dict[int, str]:
        complete = {**CATEGORY_NAMES, **names}
        if len(set(complete.values())) < len(complete):
            raise ValueError("two categories have the same name, so a report could not tell them apart")
        return complete
