"""Sentences that tell facts, of the people who are asked about and of the others, who make the lures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from flexmem.benchmarks.synthetic.attributes import ATTRIBUTES
from flexmem.benchmarks.synthetic.draw import Draw
from flexmem.benchmarks.synthetic.events import COLLECTIONS, EVENT_TELLINGS, EVENTS
from flexmem.benchmarks.synthetic.grammar import Grammar, polish, with_articles
from flexmem.benchmarks.synthetic.names import NAMES
from flexmem.benchmarks.synthetic.people import Person, told
from flexmem.benchmarks.synthetic.timeline import recent_day

_VALUES = Grammar(NAMES)
_OPENERS = ("", "", "", "", "by the way, ", "oh, and ", "also, ", "I forgot to say, ", "one more thing, ", "news: ")
_FRESH_TRIES = 50


def value(draw: Draw, rule: str) -> str:
    """A value that the rule of `NAMES` allows, as it stands within a sentence."""
    return with_articles(_VALUES.expand(rule, draw))


def fresh_value(draw: Draw, rule: str, used: set[str], beside: Sequence[str] = ()) -> str:
    """As `value`, and neither part of one in ``used``, to which it is added, nor around one. A small rule may run out;
    then it repeats itself, but never one of ``beside``.
    """
    for _ in range(_FRESH_TRIES):
        found = value(draw, rule)
        if not _clashes(found, used):
            break
    while _clashes(found, beside):
        found = value(draw, rule)
    used.add(found)
    return found


def _clashes(text: str, others: Iterable[str]) -> bool:
    return any(text in other or other in text for other in others)


def tell(draw: Draw, templates: Sequence[str], person: Person, **slots: str) -> str:
    """A sentence by the person's teller."""
    return polish(draw.pick(_OPENERS) + draw.pick(templates).format(**told(person), **slots))


def tell_event(draw: Draw, person: Person, past: str, when: str) -> str:
    """A sentence by the person's teller about something that happened at ``when``, a phrase such as "yesterday"."""
    return polish(draw.pick(EVENT_TELLINGS).format(**told(person), past=past, when=when))


def lure(draw: Draw, people: Sequence[Person], today: date) -> str:
    """A sentence of the form of a fact about one of ``people``, with whatever value."""
    person = draw.pick(people)
    kind = draw.random()
    if kind < 0.5:
        attribute = draw.pick(ATTRIBUTES)
        return tell(draw, attribute.tellings, person, value=value(draw, attribute.value))
    if kind < 0.75:
        return tell(draw, draw.pick(ATTRIBUTES).musings, person)
    if kind < 0.9:
        collection = draw.pick(COLLECTIONS)
        return tell(draw, collection.tellings, person, item=value(draw, collection.item))
    event = draw.pick(EVENTS)
    return tell_event(
        draw, person, with_articles(event.past.format(item=value(draw, event.item))), recent_day(draw, today)[0]
    )
