"""What a world says to a plan's cells, so that the plan can be followed where there is no such world.

Every cell is run once; what it says again after something has changed is kept where it differs. Log-ins give another
token each time, so tokens are kept by how many log-ins there were. What an effect says, and whether it spoils the task,
when it is done once more is kept too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flexmem.agents.context_bound.plan import Plan
from flexmem.benchmarks.protocol import DataError


class RecordingError(DataError):
    """A plan can't be recorded, or a recording doesn't hold what is asked of it; the message names task and cell."""


class NotCarriedOutError(RecordingError):
    """A plan's steps can all be taken, and yet do not carry out the task: their order matters."""


@dataclass(frozen=True)
class Reply:
    """What a cell says once ``after`` of the plan's changes were made; 0: what it says where it stands in the plan."""

    after: int
    text: str


@dataclass(frozen=True)
class Recording:
    """A plan's world.

    Attributes:
        replies: of each cell but log-ins, by cell id, the first and those that differ from the one before, where its
            variables hold what they held in the plan.
        reread: those that differ, in place of later ones of ``replies``, where its variables were all read again too.
        repeated: of each cell that changes something, what it says from the second time on.
        tokens: of each log-in's cell, the token by how many log-ins there were, this one included, from 1.
        log_ins: what a log-in's cell says the first time; the token in it is the first of ``tokens``.
        changes: the cells that change something.
        spoiling: those of them that spoil the task when they are done once more.
    """

    plan: Plan
    seed: int
    replies: Mapping[str, tuple[Reply, ...]]
    reread: Mapping[str, tuple[Reply, ...]]
    repeated: Mapping[str, str]
    tokens: Mapping[str, tuple[str, ...]]
    log_ins: Mapping[str, str]
    changes: frozenset[str]
    spoiling: frozenset[str]
