"""Unit recovery: which units come back, best first (FlexA-Mem §3.3; docs/methods.md A.6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from statistics import median

import numpy as np

from flexmem.memory.flexa.config import FlexaConfig
from flexmem.ports import VectorArray


def anchor_count(config: FlexaConfig, room: int, unit_tokens: Sequence[int]) -> int:
    """How many units recovery starts from: at least ten, and one and a half times what the room could hold."""
    return max(config.least_anchors, math.ceil(config.anchor_room_factor * room / max(1.0, median(unit_tokens))))


def rank_candidates(
    cosines: VectorArray, anchors: int, neighbours: Callable[[int], Collection[int]], decay: float
) -> list[int]:
    """Anchors by cosine, and units linked with or next to them at their own cosine or ``decay`` times the anchor's,
    whichever is more; best first, ties to the older unit.

    Args:
        cosines: of the query's vector with each record's, shape (units,).
        neighbours: a unit's linked and adjacent units.
    """
    order = np.argsort(-cosines, kind="stable")[:anchors]
    score = {int(uid): float(cosines[uid]) for uid in order}
    anchored = list(score)
    for anchor in anchored:
        for other in neighbours(anchor):
            if other in anchored:
                continue
            offered = max(float(cosines[other]), decay * float(cosines[anchor]))
            score[other] = max(score.get(other, -1.0), offered)
    return sorted(score, key=lambda uid: (-score[uid], uid))
