"""Evidence labels of LoCoMo's questions, repaired (docs/methods.md E.6).

A label should be one turn's id, ``D<session>:<turn>``. The official file also has several ids in one string, a stray
colon, a leading zero, ids of turns that don't exist, and no label at all. What can be read for certain is repaired, the
rest is dropped, and either is told.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

_ID = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Ids of turns that exist, in the file's order and once each, and a line for each defect met.

    A line is ``<kind>: <what>`` with kind ``repaired``, ``malformed``, ``absent``, ``repeated`` or ``empty``.
    """

    turn_ids: tuple[str, ...]
    defects: tuple[str, ...]


def repair(labels: Sequence[str], known: Collection[str]) -> Evidence:
    """Turn ids that ``labels`` name, out of ``known``: all turn ids of the conversation."""
    turn_ids: list[str] = []
    defects: list[str] = [] if labels else ["empty: no evidence given"]
    for label in labels:
        ids = _ids(label, known)
        if not ids:
            defects.append(f"malformed: {label!r} dropped")
        elif ids != [label]:
            defects.append(f"repaired: {label!r} read as {', '.join(ids)}")
        for turn_id in ids:
            if turn_id not in known:
                defects.append(f"absent: {turn_id!r} dropped")
            elif turn_id in turn_ids:
                defects.append(f"repeated: {turn_id!r} kept once")
            else:
                turn_ids.append(turn_id)
    return Evidence(tuple(turn_ids), tuple(defects))


def kinds(defects: Iterable[str]) -> list[str]:
    """The kind of each defect line."""
    return [defect.partition(":")[0] for defect in defects]


def _ids(label: str, known: Collection[str]) -> list[str]:
    if label in known:  # a file of the user's own may number its turns otherwise
        return [label]
    return [f"D{int(session)}:{int(turn)}" for session, turn in _ID.findall(label)]
