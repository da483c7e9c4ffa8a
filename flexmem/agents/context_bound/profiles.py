"""The agent's habits, seven of them, set down before any result was looked at: all are reported, none is selected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Inference = Literal["none", "series", "order"]


@dataclass(frozen=True)
class Profile:
    """One habit.

    Attributes:
        documents_first: documentation is looked up before names and values; else just in time, last of all.
        documents_only: an earlier call does not do in place of documentation.
        tokens_verbatim: a token must be shown itself; else the variable's name is enough.
        inference: what tells that a goal is done beside its own trace: nothing, a later member of its numbered series,
            or any later goal.
        thought_words: the mean length of a thought.
    """

    name: str
    summary: str
    thought_words: int = 30
    documents_first: bool = False
    documents_only: bool = False
    tokens_verbatim: bool = False
    inference: Inference = "series"


_ALL = (
    Profile("P1", "lean: 30 words of thought, documentation just in time"),
    Profile("P2", "lean-batch: as P1, documentation first", documents_first=True),
    Profile("P3", "verbose: as P1, 120 words of thought", thought_words=120),
    Profile("P4", "verbose-batch: as P2, 120 words of thought", thought_words=120, documents_first=True),
    Profile(
        "P5",
        "strict: as P1, but documentation and tokens must be shown word for word",
        documents_only=True,
        tokens_verbatim=True,
    ),
    Profile("P6", "no inference: as P1, but only its own trace tells that a goal is done", inference="none"),
    Profile("P7", "order inference: as P1, but any later goal tells that a goal is done", inference="order"),
)

PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in _ALL}
"""By name, in order."""
