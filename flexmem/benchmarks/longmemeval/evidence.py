"""Evidence of a LongMemEval question: its turns marked ``has_answer``, and what is wrong with the labels
(docs/methods.md E.6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from flexmem.benchmarks.longmemeval.schema import SessionRecord


@dataclass(frozen=True, slots=True)
class Evidence:
    """Ids of marked turns in history order, and a line for each defect met.

    A line is ``<kind>: <what>`` with kind ``unmarked`` (an evidence session without a marked turn), ``stray`` (a marked
    turn outside the evidence sessions; it counts), ``repeated`` (an evidence session's id stands more than once; its
    sessions all count) or ``absent`` (evidence sessions that the history lacks).
    """

    turn_ids: tuple[str, ...]
    defects: tuple[str, ...]


def turn_id(session: int, turn: int) -> str:
    """The id of a history's turn: both count from 1."""
    return f"{session}:{turn}"


def collect(sessions: Sequence[SessionRecord], absent: int) -> Evidence:
    """Evidence in ``sessions``, the history's in its order."""
    turn_ids: list[str] = []
    defects: list[str] = []
    repeated = {name for name, times in Counter(session.official_id for session in sessions).items() if times > 1}
    for number, session in enumerate(sessions, 1):
        marked = [turn_id(number, place) for place, turn in enumerate(session.turns, 1) if turn.has_answer]
        turn_ids += marked
        if session.evidence and not marked:
            defects.append(f"unmarked: session {number} is listed as evidence, and none of its turns is marked")
        if marked and not session.evidence:
            defects.append(f"stray: {', '.join(marked)} marked in a session that is not listed as evidence")
        if session.evidence and session.official_id in repeated:
            defects.append(f"repeated: session {number} has its id in common with another one")
    if absent:
        defects.append(f"absent: {absent} sessions listed as evidence are not in the history")
    return Evidence(tuple(turn_ids), tuple(defects))
