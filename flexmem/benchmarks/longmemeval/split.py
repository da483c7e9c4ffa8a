"""The frozen split of LongMemEval's 500 questions: 60 to develop on and 440 to test on (FlexA-Mem §4.1 holds 440 out;
docs/methods.md E.2, E.6c).

Drawn once by `draw` and kept in ``split.json``: values that no source fixes may be set on the 60 and on nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Literal

from flexmem.benchmarks.longmemeval.schema import ABSTENTION_MARK
from flexmem.benchmarks.stratified import draw as draw_stratified

SEED = 2026
DEVELOPMENT = 60

Part = Literal["development", "held_out"]


def stratum(question_id: str, question_type: str) -> str:
    """Questions are stratified by type, abstentions of a type apart."""
    return question_type + ("/abstention" if ABSTENTION_MARK in question_id else "")


def draw(questions: Iterable[tuple[str, str]], size: int = DEVELOPMENT, seed: int = SEED) -> frozenset[str]:
    """A sample of ``size`` ids out of (question id, question type), each stratum by its share.

    Raises:
        ValueError: there are fewer questions than ``size``.
    """
    strata: dict[str, list[str]] = {}
    for question_id, question_type in questions:
        strata.setdefault(stratum(question_id, question_type), []).append(question_id)
    return draw_stratified(strata, size, seed)


@cache
def part(name: Part) -> frozenset[str]:
    """The question ids of one part of the frozen split."""
    content = json.loads(files(__package__).joinpath("split.json").read_text("utf-8"))
    return frozenset(content[name])
