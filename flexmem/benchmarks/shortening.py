"""Shorter histories for small runs: the newest sessions that fit, cut at session boundaries only."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from flexmem import tokens
from flexmem.history import Session


def newest(sessions: Sequence[Session], most: int | None, *, kept: Collection[int] = ()) -> list[int]:
    """Positions, in order, of the sessions that stay where a history may have ``most`` tokens (None: all of them).

    ``kept`` stay in any case; then the newest others join, without gaps among them, for as long as all together have
    room. If nothing is kept and even the newest does not fit, it stays alone.
    """
    if most is None:
        return list(range(len(sessions)))
    chosen = set(kept)
    room = most - sum(session_tokens(sessions[position]) for position in chosen)
    for position in reversed(range(len(sessions))):
        if position in chosen:
            continue
        room -= session_tokens(sessions[position])
        if room < 0 and chosen:
            break
        chosen.add(position)
    return sorted(chosen)


def session_tokens(session: Session) -> int:
    """Tokens of a session's turns as a history shows them, each with its role or speaker; unit headers not counted."""
    return sum(tokens.count(f"{turn.speaker or turn.role}: {turn.text}\n") for turn in session.turns)
