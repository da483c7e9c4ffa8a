"""Which of the official judge's five rubrics a question is judged by (docs/methods.md E.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Rubric = Literal["default", "temporal", "knowledge_update", "preference", "abstention"]

_BY_TYPE: Mapping[str, Rubric] = {
    "temporal-reasoning": "temporal",
    "knowledge-update": "knowledge_update",
    "single-session-preference": "preference",
}


def rubric(question_type: str, *, abstention: bool) -> Rubric:
    """An abstention is judged as one whatever its type."""
    return "abstention" if abstention else _BY_TYPE.get(question_type, "default")
