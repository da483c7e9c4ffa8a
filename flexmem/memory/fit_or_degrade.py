"""Fit or degrade: the highest form of each candidate that fits, in rank order (FlexA-Mem §3.3, E.11; docs/methods.md
A.6, A.10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from flexmem.memory.protocol import Degraded, Resolution
from flexmem.memory.selection import Fragment


class FitRules(Protocol):
    """What a configuration says about forms (`flexmem.memory.flexa.config.FlexaConfig` has the meanings)."""

    @property
    def excerpts(self) -> bool: ...

    @property
    def raw_first(self) -> bool: ...

    @property
    def raw_replaces_record(self) -> bool: ...

    @property
    def excerpt_cap(self) -> int: ...

    @property
    def excerpt_min(self) -> int: ...


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
    """The forms in which units can be shown. ``record`` is a unit's short form, None where it has none.
    ``line_tokens`` has the units whose own record line is in the shown timeline, with its tokens.
    """

    raw: Callable[[int], Fragment]
    excerpt: Callable[[int, int], Fragment | None]
    record: Callable[[int], Fragment | None]
    line_tokens: Mapping[int, int]


def fit_or_degrade(candidates: Sequence[int], units: int, room: int, forms: Forms, rules: FitRules) -> Plan:
    """Give each candidate in rank order the highest form that fits: raw, else an excerpt, else its record's line where
    the timeline doesn't show it.

    An earlier candidate is never revisited, so a more relevant unit is never degraded for a less relevant one.
    ``units`` counts the written units.
    """
    plan = Plan(degraded=dict.fromkeys(set(range(units)).difference(candidates), Degraded.NOT_CANDIDATE))
    left = room
    for uid, forms_now in _passes(candidates, rules):
        if plan.raw(uid):
            continue
        for form in forms_now:
            fragment, cost = _offer(form, uid, left, forms, rules)
            if fragment is not None and cost <= left:
                plan.fragments[uid] = fragment
                left -= cost
                break
        _note(plan, uid)
    return plan


def _passes(candidates: Sequence[int], rules: FitRules) -> Iterator[tuple[int, tuple[Resolution, ...]]]:
    lower = (Resolution.EXCERPT, Resolution.RECORD) if rules.excerpts else (Resolution.RECORD,)
    if not rules.raw_first:
        yield from ((uid, (Resolution.RAW, *lower)) for uid in candidates)
        return
    yield from ((uid, (Resolution.RAW,)) for uid in candidates)
    yield from ((uid, lower) for uid in candidates)


def _offer(form: Resolution, uid: int, left: int, forms: Forms, rules: FitRules) -> tuple[Fragment | None, int]:
    """A unit in one form and what it would cost; no fragment where the form can't be had."""
    own_line = forms.line_tokens.get(uid)
    if form is Resolution.RAW:
        raw = forms.raw(uid)
        saved = own_line if own_line is not None and rules.raw_replaces_record else 0
        return raw, raw.tokens - saved
    if form is Resolution.EXCERPT:
        limit = min(rules.excerpt_cap, left)
        found = forms.excerpt(uid, limit) if limit >= rules.excerpt_min else None
        return found, found.tokens if found else 0
    if own_line is not None:
        return None, 0
    record = forms.record(uid)
    return record, record.tokens if record else 0


def _note(plan: Plan, uid: int) -> None:
    fragment = plan.fragments.get(uid)
    if fragment is None or fragment.resolution not in (Resolution.RAW, Resolution.EXCERPT):
        plan.degraded[uid] = Degraded.EXCERPT_DID_NOT_FIT
    elif fragment.resolution is Resolution.EXCERPT:
        plan.degraded[uid] = Degraded.DID_NOT_FIT
    else:
        plan.degraded.pop(uid, None)
