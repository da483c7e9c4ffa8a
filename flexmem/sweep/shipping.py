"""Instances on their way to workers: packed, so that all workers of a node read one copy."""

from __future__ import annotations

import pickle
from dataclasses import replace

from flexmem.benchmarks.protocol import Instance
from flexmem.history import Session, Turn
from flexmem.retrieval.packed import Packed, PackedUnits


def pack_instance(instance: Instance) -> Instance:
    """An equal instance whose sessions and units are made when they are looked at. Its texts are arrays, which stay in
    shared memory where an object store keeps it.
    """
    rows = []
    for session in instance.sessions:
        turns = [(turn.turn_id, turn.role, turn.text, turn.speaker) for turn in session.turns]
        rows.append(pickle.dumps((session.session_id, turns, session.date), protocol=5))
    packed = replace(instance, sessions=Packed(rows, _session))
    vars(packed)["units"] = PackedUnits(instance.units)  # in place of what would be worked out from the sessions
    return packed


def _session(row: bytes) -> Session:
    session_id, turns, date = pickle.loads(row)
    return Session(session_id, tuple(Turn(*turn) for turn in turns), date)
