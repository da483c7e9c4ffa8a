"""What is planted where in one conversation, and what is asked about it: all decided before any text is written.

A plan is small (it grows with the questions, not with the history), and a history is written from it one session at a
time, in any order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from flexmem.benchmarks.synthetic.attributes import ATTRIBUTES, Attribute
from flexmem.benchmarks.synthetic.config import (
    GENERATOR_VERSION,
    LARGEST_COLLECTION,
    LONGEST_CHAIN,
    PLANTED_TOKENS,
    QuestionType,
    SyntheticConfig,
)
from flexmem.benchmarks.synthetic.draw import Draw
from flexmem.benchmarks.synthetic.events import COLLECTIONS, EVENT_QUESTIONS, EVENTS, Collection, Event
from flexmem.benchmarks.synthetic.grammar import polish, with_articles
from flexmem.benchmarks.synthetic.people import Cast, Person, asked, make_cast
from flexmem.benchmarks.synthetic.telling import fresh_value, tell, tell_event
from flexmem.benchmarks.synthetic.timeline import Timeline, day_label, recent_day

_FILLED = 0.8  # of a session's tokens that planted turns may take
_ROOM_TRIES = 200  # before the fullest histories are searched for the emptiest sessions
_LURED = 0.35  # of the history's tokens that planted turns may take once lures are added


@dataclass(frozen=True, slots=True)
class Planted:
    """A sentence that speaker number ``speaker`` says in a session, after about the share ``at`` of its tokens."""

    number: int
    session: int
    at: float
    speaker: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A question whose ``evidence`` still names planted sentences by number; ``chain``, where a fact changed, has all
    that told it, oldest first.
    """

    kind: QuestionType
    text: str
    answer: str | None
    evidence: tuple[int, ...]
    chain: tuple[int, ...]
    details: Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """One conversation before it is written. ``key`` names its streams of choices; ``planted`` is by session."""

    key: str
    timeline: Timeline
    cast: Cast
    planted: Mapping[int, Sequence[Planted]]
    drafts: Sequence[Draft]


def make_plan(config: SyntheticConfig, conversation: int) -> Plan:
    """The plan of the conversation with this number.

    Raises:
        IndexError: ``conversation`` is not from 0 to ``config.conversations`` - 1.
    """
    if not 0 <= conversation < config.conversations:
        raise IndexError(f"conversation {conversation} of {config.conversations}")
    return _Planner(config, f"synthetic/{GENERATOR_VERSION}/{config.seed}/{conversation}").plan()


@dataclass
class _Chain:
    """The values that an attribute or a collection takes, oldest first, and the sentences that tell them."""

    values: list[str] = field(default_factory=list)
    evidence: list[int] = field(default_factory=list)


class _Planner:
    """Draws one conversation's plan: each question with the facts that it needs, then lures."""

    def __init__(self, config: SyntheticConfig, key: str) -> None:
        self.config = config
        self.key = key
        self.draw = Draw(key, "plan")
        self.timeline = Timeline(key, config.tokens, config.sessions)
        self.cast = make_cast(
            Draw(key, "cast"), speakers=2 if config.style == "named" else 1, questions=config.questions
        )
        self.planted: dict[int, list[Planted]] = defaultdict(list)
        self.number = 0
        self.load: Counter[int] = Counter()
        self.taken: set[tuple[str, str]] = set()
        self.values: dict[str, set[str]] = defaultdict(set)
        self.drafts: list[Draft] = []
        self.lures: list[Callable[[], tuple[Person, str]]] = []

    def plan(self) -> Plan:
        """The plan with as many questions of each type as the configuration's shares say, in an order of their own."""
        counts = self.config.shares.counts(self.config.questions)
        for _ in range(counts["single"]):
            self.fact("single")
        for _ in range(counts["paraphrase"]):
            self.fact("paraphrase")
        self.chains(counts["update"], counts["earlier"])
        for _ in range(counts["temporal"]):
            self.event()
        for _ in range(counts["list"]):
            self.collection("list")
        for _ in range(counts["count"]):
            self.collection("count")
        for _ in range(counts["unanswerable"]):
            self.unanswerable()
        self.plant_lures()
        drafts = self.draw.sample(self.drafts, len(self.drafts))
        return Plan(self.key, self.timeline, self.cast, dict(self.planted), drafts)

    # ------------------------------------------------------------ questions

    def fact(self, kind: QuestionType) -> None:
        """A question about something told once."""
        attribute, person = self.unasked_attribute(ATTRIBUTES)
        chain = self.chain(attribute, person, 1)
        questions = attribute.questions if kind == "single" else attribute.paraphrases
        self.ask(kind, questions, person, chain.values[0], chain.evidence, {"attribute": attribute.key})

    def chains(self, updates: int, earlier: int) -> None:
        """Questions about what changed: so many about the latest value and about an earlier one, which share their
        facts as far as their numbers allow.
        """
        changing = [attribute for attribute in ATTRIBUTES if attribute.updates]
        for number in range(max(updates, earlier)):
            attribute, person = self.unasked_attribute(changing)
            chain = self.chain(attribute, person, self.draw.between(2, LONGEST_CHAIN))
            details = {"attribute": attribute.key, "values": tuple(chain.values)}
            if number < updates:
                wordings = attribute.questions + attribute.paraphrases
                self.ask(
                    "update",
                    wordings,
                    person,
                    chain.values[-1],
                    chain.evidence[-1:],
                    details,
                    chain=chain.evidence,
                )
            if number < earlier:
                later = self.draw.between(1, len(chain.values) - 1)
                self.ask(
                    "earlier",
                    (attribute.earlier,),
                    person,
                    chain.values[later - 1],
                    chain.evidence[later - 1 : later],
                    details,
                    chain=chain.evidence,
                    current=chain.values[later],
                )

    def event(self) -> None:
        """A question about the day of an event that is told by its distance from the session's day."""
        event, person, past, base = self.happening()
        while (person.name, past) in self.taken:
            event, person, past, base = self.happening()
        self.taken.add((person.name, past))
        session = self.sessions(1)[0]
        phrase, day = recent_day(self.draw, self.timeline.held_at(session).date())
        evidence = [self.plant(session, person.teller, tell_event(self.draw, person, past, phrase))]
        details = {"attribute": event.key, "said": phrase, "happened": past}
        self.lures.append(partial(self.event_lure, past))
        self.ask("temporal", EVENT_QUESTIONS, person, day_label(day), evidence, details, past=past, base=base)

    def collection(self, kind: QuestionType) -> None:
        """A question about all items of a collection, told in as many sessions, or about their number."""
        collection, person = self.draw.pick(COLLECTIONS), self.subject()
        while (person.name, collection.key) in self.taken:
            collection, person = self.draw.pick(COLLECTIONS), self.subject()
        self.taken.add((person.name, collection.key))
        size = self.draw.between(2, LARGEST_COLLECTION)
        found = _Chain()
        for session in self.sessions(size):
            item = fresh_value(self.draw, collection.item, self.values[collection.key], found.values)
            found.values.append(item)
            found.evidence.append(
                self.plant(session, person.teller, tell(self.draw, collection.tellings, person, item=item))
            )
        self.lures.append(partial(self.collection_lure, collection))
        parts = tuple(found.values)
        answer, question = (
            (", ".join(parts), collection.listing) if kind == "list" else (str(size), collection.counting)
        )
        details = {"attribute": collection.key, "parts": parts}
        self.ask(kind, (question,), person, answer, found.evidence, details)

    def unanswerable(self) -> None:
        """A question about what nobody tells of this person; it is told of another one, as a trap."""
        attribute, person = self.unasked_attribute(ATTRIBUTES)
        other = self.draw.pick(self.cast.others)
        trap = fresh_value(self.draw, attribute.value, self.values[attribute.key])
        self.plant(self.sessions(1)[0], other.teller, tell(self.draw, attribute.tellings, other, value=trap))
        self.lures.append(partial(self.attribute_lure, attribute, person))
        self.ask("unanswerable", attribute.questions, person, None, (), {"attribute": attribute.key, "trap": trap})

    def ask(
        self,
        kind: QuestionType,
        wordings: Sequence[str],
        person: Person,
        answer: str | None,
        evidence: Sequence[int],
        details: Mapping[str, Any],
        *,
        chain: Sequence[int] = (),
        **slots: str,
    ) -> None:
        """Add a question in one of the ``wordings``, filled with the person and the ``slots``. ``evidence`` and
        ``chain`` are numbers of planted sentences.
        """
        by_name = kind == "paraphrase" or self.draw.chance(0.5)
        text = self.draw.pick(wordings).format(**asked(person, self.cast, by_name=by_name), **slots)
        extractive = kind not in ("temporal", "count", "unanswerable")
        more = {"extractive": extractive, "subject": person.name, **details}
        self.drafts.append(Draft(kind, polish(text), answer, tuple(evidence), tuple(chain), more))

    # ------------------------------------------------------------ facts

    def chain(self, attribute: Attribute, person: Person, length: int) -> _Chain:
        """Plant an attribute's ``length`` values, each later than the one before it."""
        chain = _Chain()
        for place, session in enumerate(self.sessions(length)):
            value = fresh_value(self.draw, attribute.value, self.values[attribute.key], chain.values)
            templates = attribute.updates if place else attribute.tellings
            chain.values.append(value)
            chain.evidence.append(self.plant(session, person.teller, tell(self.draw, templates, person, value=value)))
        self.lures.append(partial(self.attribute_lure, attribute, person))
        return chain

    def happening(self) -> tuple[Event, Person, str, str]:
        """An event, whose it is, and its words in the past tense and in the base form."""
        event, person = self.draw.pick(EVENTS), self.subject()
        item = fresh_value(self.draw, event.item, self.values[f"event {event.key}"])
        past, base = (with_articles(form.format(item=item)) for form in (event.past, event.base))
        return event, person, past, base

    def subject(self) -> Person:
        """A speaker as often as somebody else."""
        return self.draw.pick(self.cast.speakers if self.draw.chance(0.5) else self.cast.circle)

    def unasked_attribute(self, attributes: Sequence[Attribute]) -> tuple[Attribute, Person]:
        """An attribute of a person that no other question is about; there are always more of these than questions."""
        attribute, person = self.draw.pick(attributes), self.subject()
        while (person.name, attribute.key) in self.taken:
            attribute, person = self.draw.pick(attributes), self.draw.pick(self.cast.subjects)
        self.taken.add((person.name, attribute.key))
        return attribute, person

    def plant(self, session: int, speaker: int, sentence: str) -> int:
        """Plant a sentence at a drawn place in a session; returns its number."""
        number = self.number
        self.planted[session].append(Planted(number, session, self.draw.random(), speaker, sentence))
        self.load[session] += 1
        self.number += 1
        return number

    def sessions(self, size: int) -> list[int]:
        """``size`` different sessions in order, with room for one more planted turn each."""
        chosen: set[int] = set()
        for _ in range(_ROOM_TRIES):
            session = self.draw.below(self.timeline.sessions)
            if session not in chosen and self.room(session) > 0:
                chosen.add(session)
                if len(chosen) == size:
                    return sorted(chosen)
        others = [session for session in range(self.timeline.sessions) if session not in chosen]
        others.sort(key=self.room, reverse=True)
        return sorted([*chosen, *others[: size - len(chosen)]])

    def room(self, session: int) -> float:
        """How many more planted turns a session takes, about; below 0 where it has too many."""
        return _FILLED * self.timeline.size(session) / PLANTED_TOKENS - self.load[session]

    # ------------------------------------------------------------ lures

    def plant_lures(self) -> None:
        """Plant sentences that resemble the facts asked about, as many as are wanted and as there is room for."""
        room = int(_LURED * self.config.tokens / PLANTED_TOKENS) - self.number
        wanted = self.draw.sample(self.lures * self.config.distractors, len(self.lures) * self.config.distractors)
        for lure in wanted[: max(0, room)]:
            person, sentence = lure()
            self.plant(self.sessions(1)[0], person.teller, sentence)

    def attribute_lure(self, attribute: Attribute, subject: Person) -> tuple[Person, str]:
        """The subject's musing about an attribute, which tells no value, or another one's value; and whose it is."""
        if self.draw.chance(0.5):
            return subject, tell(self.draw, attribute.musings, subject)
        other = self.draw.pick(self.cast.others)
        value = fresh_value(self.draw, attribute.value, self.values[attribute.key])
        return other, tell(self.draw, attribute.tellings, other, value=value)

    def event_lure(self, past: str) -> tuple[Person, str]:
        """The same event, of another person on another day."""
        other = self.draw.pick(self.cast.others)
        phrase, _ = recent_day(self.draw, self.timeline.held_at(0).date())
        return other, tell_event(self.draw, other, past, phrase)

    def collection_lure(self, collection: Collection) -> tuple[Person, str]:
        """An item of the same kind, of another person."""
        other = self.draw.pick(self.cast.others)
        item = fresh_value(self.draw, collection.item, self.values[collection.key])
        return other, tell(self.draw, collection.tellings, other, item=item)
