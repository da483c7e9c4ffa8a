"""Dated happenings and growing collections: what temporal, list and count questions are about.

Templates as in `attributes`, with ``{item}`` for the object and ``{when}`` for a phrase such as "two days ago".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens once on a day: ``past`` and ``base`` form of the same verb phrase, over the rule ``item``
    of `NAMES`.
    """

    key: str
    item: str
    past: str
    base: str


EVENTS: tuple[Event, ...] = (
    Event("planting", "tree", "planted a {item} behind the house", "plant a {item}"),
    Event("sale", "heirloom", "sold the old {item}", "sell the old {item}"),
    Event("paperwork", "paper", "handed in the {item}", "hand in the {item}"),
    Event("exam", "exam", "passed the {item} exam", "pass the {item} exam"),
    Event("party", "party", "hosted a {item} party", "host a {item} party"),
    Event("talk", "subject", "gave a talk on {item}", "give a talk on {item}"),
    Event("adoption", "stray", "brought home a {item} from the shelter", "bring home a {item} from the shelter"),
    Event("keys", "place", "collected the keys to the studio in {item}", "collect the keys to the studio in {item}"),
    Event("race", "place", "finished the {item} half marathon", "finish the {item} half marathon"),
    Event("repair", "machine", "got the {item} working again", "get the {item} working again"),
    Event("lease", "street", "signed the lease for the garage on {item}", "sign the lease for the garage on {item}"),
    Event("parcel", "heirloom", "took delivery of a {item}", "take delivery of a {item}"),
    Event("interview", "firm", "had the interview at {item}", "have the interview at {item}"),
    Event("bridge", "place", "crossed the {item} bridge on foot", "cross the {item} bridge on foot"),
)

EVENT_TELLINGS: tuple[str, ...] = (
    "{who} {past} {when}",
    "{when} {who} {past}",
    "guess what, {who} {past} {when}",
    "{when} {who} {past}, and it went better than feared",
    "{who} {past} {when} and slept for ten hours afterwards",
)

EVENT_QUESTIONS: tuple[str, ...] = (
    "When did {who} {base}?",
    "On which day did {who} {base}?",
    "What was the date when {who} {past}?",
)


@dataclass(frozen=True, slots=True)
class Collection:
    """Something a person gathers one by one over many sittings; ``tellings`` add one ``{item}`` each."""

    key: str
    item: str
    tellings: tuple[str, ...]
    listing: str
    counting: str


COLLECTIONS: tuple[Collection, ...] = (
    Collection(
        "museums",
        "museum",
        ("{who} visited {item} and stayed until closing time", "{who} spent a rainy afternoon visiting {item}"),
        "Which museums {have} {who} visited?",
        "How many museums {have} {who} visited?",
    ),
    Collection(
        "mountains",
        "peak",
        ("{who} climbed {item} in thick fog", "{who} made it up {item}, with blisters"),
        "Which mountains {have} {who} climbed?",
        "How many mountains {have} {who} climbed?",
    ),
    Collection(
        "bands",
        "band",
        ("{who} saw {item} live and lost a shoe in the crowd", "{who} went to hear {item} play live"),
        "Which bands {have} {who} seen live?",
        "How many bands {have} {who} seen live?",
    ),
    Collection(
        "birds",
        "bird",
        ("{who} spotted a {item} from the hide", "a {item} sat right there and {who} got a photo of it"),
        "Which birds {have} {who} spotted or photographed?",
        "How many kinds of bird {have} {who} spotted or photographed?",
    ),
    Collection(
        "games",
        "game",
        ("{who} bought the board game {item}", "{who} came home with a new board game, {item}"),
        "Which board games {have} {who} bought?",
        "How many board games {have} {who} bought?",
    ),
    Collection(
        "novels",
        "novel",
        ("{who} finished reading the novel {item}", "{who} got to the last page of {item}, what a novel"),
        "Which novels {have} {who} finished?",
        "How many novels {have} {who} finished?",
    ),
    Collection(
        "countries",
        "country",
        ("{who} travelled to {item} for a long weekend", "{who} got back from {item}, what a country"),
        "Which countries {have} {who} been to?",
        "How many countries {have} {who} been to?",
    ),
    Collection(
        "supper club",
        "dish",
        ("{who} brought {item} to the supper club", "at the supper club it was {who} who served {item}"),
        "Which dishes {have} {who} made for the supper club?",
        "How many dishes {have} {who} made for the supper club?",
    ),
    Collection(
        "workshops",
        "skill",
        ("{who} completed a weekend workshop on {item}", "{who} took a weekend workshop in {item}"),
        "Which weekend workshops {have} {who} taken?",
        "How many weekend workshops {have} {who} taken?",
    ),
    Collection(
        "volunteering",
        "charity",
        ("{who} volunteered at {item} for a day", "{who} did a volunteer shift with {item}"),
        "Where {have} {who} volunteered?",
        "In how many places {have} {who} volunteered?",
    ),
    Collection(
        "flea market",
        "find",
        ("{who} found {item} at the flea market", "the flea market had {item}, and {who} took it home"),
        "What {have} {who} found at the flea market?",
        "How many things {have} {who} found at the flea market?",
    ),
)
