"""Unit recovery: which units come back in which form (FlexA-Mem §3.3; docs/methods.md A.6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.protocol import Degraded, Resolution
from flexmem.memory.selection import Fragment
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


@dataclass
class Plan:
    """What unit recovery decided: a fragment for each recovered unit, in the order of acceptance, and why others are
    not raw.
    """

    fragments: dict[int, Fragment] = field(default_factory=dict)
    degraded: dict[int, Degraded] = field(default_factory=dict)

    def drop_last(self) -> None:
        """Give up what was accepted last."""
        uid = next(reversed(self.fragments))
        del self.fragments[uid]
        self.degraded[uid] = Degraded.DID_NOT_FIT

    def raw(self, uid: int) -> bool:
        """Whether a unit is shown whole."""
        fragment = self.fragments.get(uid)
        return fragment is not None and fragment.resolution is Resolution.RAW


@dataclass(frozen=True)
class Forms:
    """The forms in which units can be shown. ``line_tokens`` has the units whose own record line is in the shown
    timeline, with its tokens.
    """

    raw: Callable[[int], Fragment]
    excerpt: Callable[[int, int], Fragment | None]
    record: Callable[[int], Fragment]
    line_tokens: Mapping[int, int]


def fit_or_degrade(candidates: Sequence[int], units: int, room: int, forms: Forms, config: FlexaConfig) -> Plan:
    """Give each candidate in rank order the highest form that fits: raw, else an excerpt, else its record's line where
    the timeline doesn't show it.

    An earlier candidate is never revisited, so a more relevant unit is never degraded for a less relevant one.
    ``units`` counts the written units.
    """
    plan = Plan(degraded=dict.fromkeys(set(range(units)).difference(candidates), Degraded.NOT_CANDIDATE))
    left = room
    for uid, forms_now in _passes(candidates, config):
        if plan.raw(uid):
            continue
        for form in forms_now:
            fragment, cost = _offer(form, uid, left, forms, config)
            if fragment is not None and cost <= left:
                plan.fragments[uid] = fragment
                left -= cost
                break
        _note(plan, uid)
    return plan


def _passes(candidates: Sequence[int], config: FlexaConfig) -> Iterator[tuple[int, tuple[Resolution, ...]]]:
    lower = (Resolution.EXCERPT, Resolution.RECORD) if config.excerpts else (Resolution.RECORD,)
    if not config.raw_first:
        yield from ((uid, (Resolution.RAW, *lower)) for uid in candidates)
        return
    yield from ((uid, (Resolution.RAW,)) for uid in candidates)
    yield from ((uid, lower) for uid in candidates)


def _offer(form: Resolution, uid: int, left: int, forms: Forms, config: FlexaConfig) -> tuple[Fragment | None, int]:
    """A unit in one form and what it would cost; no fragment where the form can't be had."""
    own_line = forms.line_tokens.get(uid)
    if form is Resolution.RAW:
        raw = forms.raw(uid)
        saved = own_line if own_line is not None and config.raw_replaces_record else 0
        return raw, raw.tokens - saved
    if form is Resolution.EXCERPT:
        limit = min(config.excerpt_cap, left)
        found = forms.excerpt(uid, limit) if limit >= config.excerpt_min else None
        return found, found.tokens if found else 0
    if own_line is not None:
        return None, 0
    record = forms.record(uid)
    return record, record.tokens


def _note(plan: Plan, uid: int) -> None:
    fragment = plan.fragments.get(uid)
    if fragment is None or fragment.resolution is Resolution.RECORD:
        plan.degraded[uid] = Degraded.EXCERPT_DID_NOT_FIT
    elif fragment.resolution is Resolution.EXCERPT:
        plan.degraded[uid] = Degraded.DID_NOT_FIT
    else:
        plan.degraded.pop(uid, None)
