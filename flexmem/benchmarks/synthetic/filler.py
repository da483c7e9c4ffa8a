"""Filler talk: sentences about a topic, by a speaker or by an assistant, and short replies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from flexmem.benchmarks.synthetic.grammar import Grammar
from flexmem.benchmarks.synthetic.names import NAMES
from flexmem.benchmarks.synthetic.topics import COMMON, TOPICS

TOPIC_NAMES = tuple(TOPICS)

# ``friend`` is the context's: people whom the speaker may mention.
_TALK = (
    "I {did} {past_time}, and {aftermath}",
    "{past_time} I {did}",
    "{past_time} I {did} with {someone}",
    "{interjection}, I {did} {past_time}",
    "{interjection}, {trouble}, so I was {feeling}",
    "{trouble} {past_time}, and {aftermath}",
    "I keep thinking about {thing}: {verdict}",
    "I still want to {plan} {future_time}",
    "my plan is to {plan} {future_time}, unless {someone} talks me out of it",
    "{someone} says that {claim}",
    "{someone} swears that {claim}, but I'm {feeling} about it",
    "{thing} looked {adj} and {adj}, but turned out {verdict}",
    "do you think I should {plan}?",
    "have you ever tried to {plan}?",
    "what became of {thing} on your side?",
    "{thing}? {verdict}",
    "the {adj} part is that {trouble}",
    "first {trouble}, then {trouble}",
    "someone told me to {tip}, which turned out {verdict}",
    "I {did}, {did} and then {did}",
    "{interjection}, {claim}",
    "if {claim}, I might as well {plan}",
    "I'd rather {plan} than {plan}",
    "{someone} was there too and {did}",
    "what would you do about {thing}?",
    "after {number} attempts {thing} turned out {verdict}",
    "I was {feeling} about {thing} {past_time}",
    "{someone} offered to {plan} {future_time}, can you imagine?",
    "there was {thing}, {thing} and not much else",
    "remember {thing}? {trouble}",
)

# What can be said within any topic, by rule; added to the topic's own phrases.
_ANY_TOPIC: Mapping[str, tuple[str, ...]] = {
    "did": (
        "sorted out {thing}",
        "asked {someone} about {thing}",
        "spent {number} minutes on {thing}",
        "showed {someone} {thing}",
        "took another look at {thing} {where}",
        "told {someone} that {claim}",
        "gave up on {thing} after {number} minutes",
        "came across {someone} {where}",
    ),
    "plan": (
        "do something about {thing}",
        "ask {someone} about {thing}",
        "get rid of {thing}",
        "spend {number} minutes on {thing}",
        "meet {someone} {where}",
        "replace {thing} with something {adj}",
    ),
    "trouble": (
        "{someone} complained about {thing}",
        "{someone} lost {thing} {where}",
        "{thing} turned out {adj} {where}",
        "{thing} came to nothing",
        "{someone} refused to {plan}",
    ),
    "claim": (
        "{thing} can wait",
        "{someone} knows best about {thing}",
        "{thing} should be less {adj}",
        "it's smart to {tip}",
        "it pays to {plan}",
    ),
}

_ADVICE = (
    "you could {plan} first and {plan} after that",
    "it usually helps to {tip} before you {plan}",
    "a common mistake is to forget {thing}",
    "if {claim}, then it is best to {tip}",
    "in most cases {claim}",
    "many people find that {claim}",
    "start small: {tip}, and only then {plan}",
    "as for {thing}, I would {tip}",
    "since you mentioned {thing}, it may be worth a try to {plan}",
    "another option is to {plan} {future_time}",
    "set aside about {number} minutes for {thing}",
    "{thing} can turn out {adj}, so keep an eye open",
    "the simplest approach is to {tip}",
    "when you {plan}, {tip}",
    "there are {number} things to consider, above all {thing}",
    "for something {adj}, {tip} and {plan}",
    "it's understandable to feel {feeling} about {thing}",
    "would you like a checklist for {thing}?",
    "should the result look {adj}, {tip}",
    "people in {place} often {plan} instead",
    "give it {number} days before you {plan}",
    "whatever you decide, {tip}",
)

_REPLY = (
    "Good to hear",
    "That makes sense",
    "Oh no, really?",
    "I know the feeling",
    "Ha, that sounds {adj}",
    "No way!",
    "How did that go?",
    "I'd be {feeling} too",
    "That must have been {feeling_thing}",
    "Tell me more",
    "Fair enough",
    "Sounds {verdict}",
    "Thanks for telling me",
    "You never cease to amaze me",
    "What happened next?",
    "I can picture it",
    "Same here, to be honest",
    "Well done, you",
    "That's {verdict}, if you ask me",
    "Poor you",
    "Lucky you",
    "Let me know how it goes",
)

_NOTED = (
    "Got it",
    "Noted, thank you",
    "Thanks, that's useful to know",
    "Understood",
    "I'll keep that in mind",
    "That sounds {verdict}",
    "Good to know",
    "Happy to help with that",
    "Thanks for the update",
    "Okay, let's go on",
)

LIST_OPENINGS = (
    "Here are a few thoughts:",
    "These points may help:",
    "This is how I would go about it:",
    "A short checklist:",
    "Let me sum up what usually works:",
    "Some options to choose from:",
)


@cache
def grammar(topic: str) -> Grammar:
    """The grammar of a topic, with the rules ``talk``, ``advice``, ``reply`` and ``noted``; ``friend`` comes from the
    context.

    Raises:
        KeyError: no such topic.
    """
    rules: Mapping[str, tuple[str, ...] | list[str]] = {
        **{name: tuple(texts) for name, texts in NAMES.items()},
        **{name: tuple(texts) for name, texts in COMMON.items()},
        "feeling_thing": ("{adj}", "quite something", "a sight", "{adj} and {adj}"),
        "talk": _TALK,
        "advice": _ADVICE,
        "reply": _REPLY,
        "noted": _NOTED,
    }
    own = {name: (*texts, *_ANY_TOPIC.get(name, ())) for name, texts in TOPICS[topic].items()}
    return Grammar({**rules, **own})
