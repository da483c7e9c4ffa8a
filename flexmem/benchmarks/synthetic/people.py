"""Who is in a conversation: the speakers, the people they are asked about, and those who only distract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flexmem.benchmarks.synthetic.draw import Draw
from flexmem.benchmarks.synthetic.names import FIRST_NAMES, NAMES, RELATIONS

Voice = Mapping[str, str]

_OTHERS = 40  # enough that a lure rarely contradicts an earlier one about the same person
_CIRCLE_AT_LEAST = 6
_QUESTIONS_PER_PERSON = 8  # so that no person runs out of attributes

_FIRST_PERSON: Voice = {"who": "I", "whose": "my", "whom": "me", "have": "have", "be": "am", "do": "do"}


@dataclass(frozen=True, slots=True)
class Person:
    """A speaker (``relation`` is None), or somebody whom the speaker number ``teller`` knows and talks about."""

    name: str
    teller: int
    relation: str | None = None

    @property
    def label(self) -> str:
        """How the teller introduces a person who is no speaker: ``my cousin Ines``."""
        return f"my {self.relation} {self.name}"


@dataclass(frozen=True, slots=True)
class Cast:
    """Names are unique across the three groups. Nothing is ever asked about ``others``."""

    speakers: tuple[Person, ...]
    circle: tuple[Person, ...]
    others: tuple[Person, ...]

    @property
    def subjects(self) -> tuple[Person, ...]:
        return self.speakers + self.circle


def make_cast(draw: Draw, *, speakers: int, questions: int) -> Cast:
    """Two named ``speakers``, or one without a name who only ever says "I"."""
    circle = max(_CIRCLE_AT_LEAST, -(-questions // _QUESTIONS_PER_PERSON))
    first = draw.sample(FIRST_NAMES, len(FIRST_NAMES))
    names = first[2:] if 2 + circle + _OTHERS <= len(first) else _full_names(draw, first[2:], circle + _OTHERS)

    def known(name: str) -> Person:
        return Person(name, draw.below(speakers), draw.pick(RELATIONS))

    return Cast(
        speakers=tuple(Person(first[k], k) for k in range(2)) if speakers == 2 else (Person("", 0),),
        circle=tuple(known(name) for name in names[:circle]),
        others=tuple(known(name) for name in names[circle : circle + _OTHERS]),
    )


def _full_names(draw: Draw, first: Sequence[str], number: int) -> list[str]:
    """Where first names don't suffice, everybody but the speakers has a surname, lest a name be part of another."""
    names: dict[str, None] = {}
    while len(names) < number:
        names[f"{draw.pick(first)} {draw.pick(NAMES['surname_stem'])}{draw.pick(NAMES['surname_end'])}"] = None
    return list(names)


def told(person: Person) -> Voice:
    """The voice in which the person's teller speaks of the person."""
    return _FIRST_PERSON if person.relation is None else _third_person(person.label)


def asked(person: Person, cast: Cast, *, by_name: bool) -> Voice:
    """The voice of a question about the person. A user without a name asks in the first person; ``by_name`` leaves out
    how a person is related to a speaker.
    """
    speaker = cast.speakers[person.teller]
    if person.relation is None:
        return _third_person(person.name) if person.name else _FIRST_PERSON
    if by_name:
        return _third_person(person.name)
    return _third_person(f"{speaker.name}'s {person.relation} {person.name}" if speaker.name else person.label)


def _third_person(label: str) -> Voice:
    return {"who": label, "whose": f"{label}'s", "whom": label, "have": "has", "be": "is", "do": "does"}
