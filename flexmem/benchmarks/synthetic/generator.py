"""Writing a conversation from its plan, one session at a time.

Every session has its own stream of choices, so it can be written without the ones before it: a history of any size
streams in the memory of one session, and the questions need only the sessions that hold evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from flexmem import tokens
from flexmem.benchmarks.protocol import Instance, Question
from flexmem.benchmarks.synthetic.config import SyntheticConfig
from flexmem.benchmarks.synthetic.draw import Draw
from flexmem.benchmarks.synthetic.filler import LIST_OPENINGS, TOPIC_NAMES, grammar
from flexmem.benchmarks.synthetic.grammar import polish
from flexmem.benchmarks.synthetic.plan import Plan, Planted, make_plan
from flexmem.benchmarks.synthetic.telling import lure
from flexmem.benchmarks.synthetic.timeline import moment_label
from flexmem.history import Session, Turn, TurnRole

_ROLES: tuple[TurnRole, TurnRole] = ("user", "assistant")
_TOPICS_A_SESSION = 3
_TOPIC_LASTS = 0.9  # chance that the next turn stays with the topic
_REPLY_FIRST = 0.3  # chance that a turn opens with a reply to the one before
_LISTED = 0.25  # chance that an assistant's turn of several sentences is a list, a line each
_LIST_AT_LEAST = 4
_MINE = re.compile(r"\bmy\b", re.IGNORECASE)
_SENTENCE_TOKENS = 14  # of filler, about
_SHORTEST_TURN_TOKENS = 8  # a short reply with its speaker


@dataclass(frozen=True, slots=True)
class WrittenSession:
    """A session and the ids of the turns that the planted sentences came into, by their numbers."""

    session: Session
    turn_ids: Mapping[int, str]


def iter_sessions(config: SyntheticConfig, conversation: int) -> Iterator[Session]:
    """The sessions of one conversation in order, each written when it is asked for; only one is held at a time.

    Raises:
        IndexError: there is no conversation with this number.
    """
    plan = make_plan(config, conversation)
    return (write_session(config, plan, number).session for number in range(plan.timeline.sessions))


def questions(config: SyntheticConfig, conversation: int) -> tuple[Question, ...]:
    """The questions about one conversation, without holding or writing more of it than the sessions with evidence.

    Raises:
        IndexError: there is no conversation with this number.
    """
    plan = make_plan(config, conversation)
    asked = {number for draft in plan.drafts for number in (*draft.evidence, *draft.chain)}
    holding = sorted(one.session for ones in plan.planted.values() for one in ones if one.number in asked)
    sessions = (write_session(config, plan, number) for number in dict.fromkeys(holding))
    return _questions(config, plan, conversation, _turn_ids(sessions))


def make_instance(config: SyntheticConfig, conversation: int) -> Instance:
    """One conversation, whole, with its questions.

    Raises:
        IndexError: there is no conversation with this number.
    """
    plan = make_plan(config, conversation)
    written = [write_session(config, plan, number) for number in range(plan.timeline.sessions)]
    return Instance(
        instance_id=instance_id(config, conversation),
        sessions=tuple(one.session for one in written),
        questions=_questions(config, plan, conversation, _turn_ids(written)),
        unit_tokens=config.unit_tokens,
    )


def instance_id(config: SyntheticConfig, conversation: int) -> str:
    """``synthetic-1f0c2a-03``: conversations of other options have other names, since their texts differ."""
    return f"synthetic-{config.conversation_digest[:6]}-{conversation:02d}"


def _turn_ids(sessions: Iterable[WrittenSession]) -> dict[int, str]:
    ids: dict[int, str] = {}
    for written in sessions:
        ids.update(written.turn_ids)
    return ids


def _questions(
    config: SyntheticConfig, plan: Plan, conversation: int, turn_ids: Mapping[int, str]
) -> tuple[Question, ...]:
    history = instance_id(config, conversation)
    asked_at = moment_label(plan.timeline.held_at(plan.timeline.sessions))
    return tuple(
        Question(
            question_id=f"{history}-q{number:03d}",
            text=draft.text,
            answer=draft.answer,
            question_type=draft.kind,
            evidence=tuple(turn_ids[planted] for planted in draft.evidence),
            scored_by_evidence=bool(draft.evidence),
            asked_at=asked_at,
            details={**draft.details, "turns": tuple(turn_ids[planted] for planted in draft.chain)}
            if draft.chain
            else draft.details,
        )
        for number, draft in enumerate(plan.drafts)
    )


def write_session(config: SyntheticConfig, plan: Plan, number: int) -> WrittenSession:
    """The session with this number, counted from 0, as the plan has it."""
    return _SessionWriter(config, plan, number).write()


class _SessionWriter:
    """Writes one session turn by turn: filler, and what is planted among it. Sizes and rooms are in tokens."""

    def __init__(self, config: SyntheticConfig, plan: Plan, number: int) -> None:
        self.config = config
        self.plan = plan
        self.number = number
        self.draw = Draw(plan.key, "session", number)
        self.moment = plan.timeline.held_at(number)
        self.size = plan.timeline.size(number)
        self.topics = self.draw.sample(TOPIC_NAMES, _TOPICS_A_SESSION)
        self.grammar = grammar(self.topics[0])
        names = [speaker.name for speaker in plan.cast.speakers]
        self.speakers: list[str | None] = [*names] if config.style == "named" else [None, None]
        self.prefixes = [tokens.count(f"{name or role}:") for name, role in zip(self.speakers, _ROLES, strict=True)]
        everybody = plan.cast.circle + plan.cast.others
        tellers = (0, 1) if config.style == "named" else (0, 0)  # an assistant speaks of the user's friends
        self.friends = [
            {"friend": [person.label for person in everybody if person.teller == teller]} for teller in tellers
        ]
        self.others = [[person for person in plan.cast.others if person.teller == speaker] for speaker in range(2)]
        self.turns: list[Turn] = []
        self.turn_ids: dict[int, str] = {}
        self.used = 0

    def write(self) -> WrittenSession:
        """The whole session: full to within a shortest turn, with all its planted sentences."""
        pending = sorted(self.plan.planted.get(self.number, ()), key=lambda planted: planted.at)
        while pending or self.used + _SHORTEST_TURN_TOKENS <= self.size:
            speaker = len(self.turns) % 2
            room = self.size - self.used - sum(map(self.reserved, pending))
            due = next((one for one in pending if one.speaker == speaker and self.is_due(one, room)), None)
            if due:
                pending.remove(due)
                self.add(speaker, self.planted_turn(due, room))
                self.turn_ids[due.number] = self.turns[-1].turn_id
            else:
                self.add(speaker, self.filler_turn(speaker, room))
        name = f"{self.number + 1}"
        return WrittenSession(Session(name, tuple(self.turns), moment_label(self.moment)), self.turn_ids)

    def is_due(self, planted: Planted, room: int) -> bool:
        """Whether the place of a planted sentence is reached, or hardly any room is left before it."""
        return self.used >= planted.at * self.size or room < _SENTENCE_TOKENS

    def reserved(self, planted: Planted) -> int:
        """Tokens that a planted turn still needs, the shortest reply before it included."""
        return self.cost(planted.sentence) + self.prefixes[planted.speaker] + _SHORTEST_TURN_TOKENS

    def cost(self, sentence: str) -> int:
        """Exact within a turn but for list lines: o200k joins a blank to the word after it, and a line's end to a full
        stop.
        """
        return tokens.count(" " + sentence)

    def add(self, speaker: int, sentences: list[str]) -> None:
        """Append a turn of these sentences; an assistant's longer ones are now and then a list, where that fits."""
        text, size = " ".join(sentences), self.prefixes[speaker] + sum(map(self.cost, sentences))
        if self.is_assistant(speaker) and len(sentences) >= _LIST_AT_LEAST and self.draw.chance(_LISTED):
            opening = self.draw.pick(LIST_OPENINGS)
            listed_size = size + self.cost(opening) + len(sentences)
            if self.used + listed_size <= self.size:
                text, size = "\n- ".join([opening, *sentences]), listed_size
        self.used += size
        turn_id = f"S{self.number + 1}:{len(self.turns) + 1}"
        self.turns.append(Turn(turn_id, _ROLES[speaker], text, self.speakers[speaker]))

    def is_assistant(self, speaker: int) -> bool:
        """Whether a speaker is the assistant of a conversation with a user."""
        return speaker == 1 and self.config.style == "roles"

    def length(self, speaker: int) -> int:
        """The sentences of a speaker's next turn, drawn."""
        mean = self.config.assistant_sentences if self.is_assistant(speaker) else self.config.turn_sentences
        return self.draw.geometric(mean, self.config.longest_turn)

    def planted_turn(self, planted: Planted, room: int) -> list[str]:
        """The planted sentence among filler of the usual length."""
        around = self.sentences(planted.speaker, self.length(planted.speaker) - 1, room)
        place = self.draw.below(len(around) + 1)
        return [*around[:place], planted.sentence, *around[place:]]

    def filler_turn(self, speaker: int, room: int) -> list[str]:
        """Sentences for about ``room`` tokens at most, and never none: a short reply where there is hardly any room."""
        if not self.draw.chance(_TOPIC_LASTS):
            self.grammar = grammar(self.draw.pick(self.topics))
        reply = "noted" if self.is_assistant(speaker) else "reply"
        if room < _SENTENCE_TOKENS + _SHORTEST_TURN_TOKENS:
            return [self.grammar.sentence(reply, self.draw)]
        if self.others[speaker] and self.draw.chance(self.config.ambient):
            opening = [lure(self.draw, self.others[speaker], self.moment.date())]
        elif self.turns and self.draw.chance(_REPLY_FIRST):
            opening = [self.grammar.sentence(reply, self.draw)]
        else:
            opening = []
        room -= self.prefixes[speaker] + sum(map(self.cost, opening))
        more = self.sentences(speaker, self.length(speaker) - len(opening), room)
        return [*opening, *more] or [self.grammar.sentence(reply, self.draw)]

    def sentences(self, speaker: int, length: int, room: int) -> list[str]:
        """At most ``length`` sentences of filler, within ``room`` tokens to about half a sentence."""
        rule = "advice" if self.is_assistant(speaker) else "talk"
        found: list[str] = []
        while len(found) < length and room > _SENTENCE_TOKENS // 2:
            sentence = self.grammar.sentence(rule, self.draw, self.friends[speaker])
            if rule == "advice":
                sentence = polish(_MINE.sub("your", sentence))
            room -= self.cost(sentence)
            if room < -_SENTENCE_TOKENS // 2:
                break
            found.append(sentence)
        return found
