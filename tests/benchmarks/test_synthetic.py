"""Synthetic conversations and trajectories: determinism, sizes, evidence, shares, memory, scoring."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem import PorterStemmer
from pydantic import ValidationError

from flexmem import tokens
from flexmem.benchmarks import text_scores
from flexmem.benchmarks.protocol import Benchmark, Instance, Question
from flexmem.benchmarks.registry import make_benchmark
from flexmem.benchmarks.synthetic import (
    QUESTION_TYPES,
    QuestionShares,
    SyntheticBenchmark,
    SyntheticConfig,
    iter_sessions,
    iter_steps,
    questions,
)
from flexmem.benchmarks.synthetic.attributes import ATTRIBUTES
from flexmem.benchmarks.synthetic.config import most_questions
from flexmem.benchmarks.synthetic.draw import Draw
from flexmem.benchmarks.synthetic.events import COLLECTIONS, EVENTS
from flexmem.benchmarks.synthetic.filler import TOPIC_NAMES, grammar
from flexmem.benchmarks.synthetic.grammar import Grammar, polish
from flexmem.benchmarks.synthetic.names import NAMES
from flexmem.benchmarks.synthetic.people import Person, told
from flexmem.benchmarks.synthetic.plan import make_plan
from flexmem.history import Session, Step, Turn, pack_steps

EXTRACTIVE = {"single", "paraphrase", "update", "earlier", "list"}


def config(**options: Any) -> SyntheticConfig:
    return SyntheticConfig(**{"conversations": 1, "tokens": 6_000, "questions": 30, **options})


def instance(**options: Any) -> Instance:
    return SyntheticBenchmark(config(**options)).instances()[0]


def texts(conversation: Instance) -> dict[str, str]:
    return {turn.turn_id: turn.text for session in conversation.sessions for turn in session.turns}


def history_tokens(sessions: Iterable[Session]) -> int:
    """T of all turns as units show them."""
    return sum(tokens.count(f"{turn.speaker or turn.role}: {turn.text}\n") for one in sessions for turn in one.turns)


def all_texts(made: Instance) -> list[object]:
    """What readers see and what they are scored against; ids of instances depend on the options' names as well."""
    return [made.sessions, *((one.text, one.answer, one.evidence, one.asked_at) for one in made.questions)]


def digest(content: object) -> str:
    return hashlib.blake2b(repr(content).encode(), digest_size=8).hexdigest()


@st.composite
def configs(draw: st.DrawFn) -> SyntheticConfig:
    """Small configurations of every kind, some as full of questions as they may be."""
    size = draw(st.integers(1_000, 5_000))
    weights = draw(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=len(QUESTION_TYPES), max_size=len(QUESTION_TYPES))
    )
    shares = QuestionShares(**dict(zip(QUESTION_TYPES, weights, strict=True))) if any(weights) else QuestionShares()
    return SyntheticConfig(
        conversations=1,
        tokens=size,
        shares=shares,
        questions=draw(st.integers(1, most_questions(size, shares))),
        seed=draw(st.integers(0, 10**6)),
        style=draw(st.sampled_from(["named", "roles"])),
        session_tokens=draw(st.sampled_from([None, 150, 1_000])),
        turn_sentences=draw(st.sampled_from([1.0, 2.4, 6.0])),
        distractors=draw(st.integers(0, 4)),
        ambient=draw(st.sampled_from([0.0, 0.03, 1.0])),
    )


# ---------------------------------------------------------------- the same everywhere


# Whoever changes these on purpose raises GENERATOR_VERSION: results of other texts must not be compared.
@pytest.mark.parametrize(("style", "golden"), [("named", "a0daa24520824b81"), ("roles", "083fd2819427af6e")])
def test_texts_and_questions_are_the_same_on_every_machine(style: str, golden: str) -> None:
    made = instance(style=style)
    assert digest(all_texts(made)) == golden


def test_steps_are_the_same_on_every_machine() -> None:
    assert digest(list(iter_steps(0, 5_000))) == "ab19f459205b4f06"


def test_another_process_with_another_hash_seed_makes_the_same() -> None:
    code = (
        "from flexmem.benchmarks.synthetic import *; import hashlib\n"
        "c = SyntheticConfig(conversations=1, tokens=6_000, questions=30)\n"
        "made = SyntheticBenchmark(c).instances()[0]\n"
        "print(hashlib.blake2b(repr((made.sessions, made.questions)).encode(), digest_size=8).hexdigest())\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    made = instance()
    assert done.stdout.strip() == digest((made.sessions, made.questions))


def test_the_data_digest_changes_with_every_option_and_with_nothing_else() -> None:
    base = SyntheticBenchmark(config()).data_digest()
    assert base == SyntheticBenchmark(config()).data_digest()
    changes: list[dict[str, Any]] = [
        {"conversations": 2},
        {"tokens": 7_000},
        {"questions": 29},
        {"seed": 1},
        {"style": "roles"},
        {"shares": QuestionShares(single=0.3)},
    ]
    assert base not in {SyntheticBenchmark(config(**change)).data_digest() for change in changes}


def test_a_conversation_does_not_depend_on_how_many_there_are() -> None:
    alone, among = config(), config(conversations=3)
    assert SyntheticBenchmark(alone).instances()[0] == SyntheticBenchmark(among).instances()[0]
    assert len({one.sessions[0] for one in SyntheticBenchmark(among).instances()}) == 3


def test_seeds_give_different_conversations_and_names() -> None:
    assert instance(seed=1).sessions != instance(seed=2).sessions
    assert instance(seed=1).instance_id != instance(seed=2).instance_id


# ---------------------------------------------------------------- sizes and streaming


@pytest.mark.parametrize("style", ["named", "roles"])
@pytest.mark.parametrize("size", [1_000, 10_000, 200_000])
def test_sizes_are_within_five_per_cent(size: int, style: str) -> None:
    made = SyntheticConfig.model_validate({"conversations": 1, "tokens": size, "style": style})
    assert history_tokens(iter_sessions(made, 0)) == pytest.approx(size, rel=0.05)


def test_streaming_gives_what_the_instance_has() -> None:
    made = instance()
    assert tuple(iter_sessions(config(), 0)) == made.sessions
    assert questions(config(), 0) == made.questions


def test_a_history_of_ten_million_tokens_begins_at_once_and_its_questions_need_only_their_sessions() -> None:
    huge = SyntheticConfig(conversations=1, tokens=10_000_000)
    assert len(list(islice(iter_sessions(huge, 0), 2))) == 2
    asked = questions(huge, 0)
    assert len(asked) == 40
    assert max(int(turn_id[1:].split(":")[0]) for one in asked for turn_id in one.evidence) > huge.sessions / 2


def peak_of_streaming(size: int) -> int:
    made = SyntheticConfig(conversations=1, tokens=size, session_tokens=4_000)
    tracemalloc.start()
    for _ in iter_sessions(made, 0):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_streaming_holds_one_session_whatever_the_size() -> None:
    peak_of_streaming(20_000)  # grammars and the token table, once
    assert peak_of_streaming(1_000_000) < 2 * peak_of_streaming(100_000)


def test_more_questions_than_there_is_room_for_are_refused_and_the_default_fits() -> None:
    with pytest.raises(ValidationError, match="raise `tokens`, or ask at most"):
        SyntheticConfig(tokens=1_000, questions=40)
    assert SyntheticConfig().questions == 40
    assert 0 < SyntheticConfig(tokens=1_000).questions < 40
    with pytest.raises(ValidationError, match="weight 0"):
        QuestionShares(**dict.fromkeys(QUESTION_TYPES, 0.0))
    with pytest.raises(IndexError, match="conversation 1 of 1"):
        iter_sessions(config(), 1)


# ---------------------------------------------------------------- any configuration


@settings(max_examples=40, deadline=None)
@given(configs())
def test_every_conversation_is_sound(made: SyntheticConfig) -> None:
    conversation = SyntheticBenchmark(made).instances()[0]
    turns = [turn for session in conversation.sessions for turn in session.turns]
    by_id = {turn.turn_id: turn for turn in turns}

    assert history_tokens(conversation.sessions) == pytest.approx(made.tokens, rel=0.05)
    assert len(by_id) == len(turns)
    assert all(session.turns for session in conversation.sessions)
    assert all(one.role != other.role for session in conversation.sessions for one, other in pairwise(session.turns))
    assert sum(unit.span[1] - unit.span[0] + 1 for unit in conversation.units) == len(turns)

    dates = [session.date or "" for session in conversation.sessions]
    assert dates == sorted(set(dates))
    assert Counter(one.question_type for one in conversation.questions) == Counter(made.shares.counts(made.questions))
    assert len({one.question_id for one in conversation.questions}) == made.questions
    for question in conversation.questions:
        check_question(question, by_id)
        assert question.asked_at is not None
        assert question.asked_at > dates[-1]


def check_question(question: Question, by_id: dict[str, Turn]) -> None:
    evidence = [by_id[turn_id].text for turn_id in question.evidence]
    assert question.details["extractive"] == (question.question_type in EXTRACTIVE)
    assert question.scored_by_evidence == bool(evidence)
    if question.question_type == "unanswerable":
        assert question.answer is None
        assert not evidence
        assert any(text_scores.contains([question.details["trap"]], turn.text) for turn in by_id.values())
        return
    assert question.answer
    if question.question_type in ("list", "count"):
        parts = question.details["parts"]
        assert len({turn_id.split(":")[0] for turn_id in question.evidence}) == len(parts) == len(set(parts))
        assert question.answer == (", ".join(parts) if question.question_type == "list" else str(len(parts)))
        assert all(text_scores.contains([part], text) for part, text in zip(parts, evidence, strict=True))
    elif question.question_type == "temporal":
        assert question.details["happened"] in evidence[0]
        assert question.details["said"].lower() in evidence[0].lower()
    else:
        assert text_scores.contains([question.answer], evidence[0])


# ---------------------------------------------------------------- by hand


def test_a_small_conversation_checked_by_hand() -> None:
    made = SyntheticBenchmark(SyntheticConfig(conversations=1, tokens=1_000, questions=8)).instances()[0]
    dates = [session.date for session in made.sessions]
    assert dates == [
        "2019/10/17 (Thu) 12:48",
        "2019/10/30 (Wed) 11:59",
        "2019/11/06 (Wed) 11:07",
        "2019/11/08 (Fri) 10:20",
    ]
    told = texts(made)
    asked = [(one.question_type, one.text, one.answer, one.evidence) for one in made.questions]
    assert asked == [
        ("single", "Which name did Ivo's puppy get?", "Bramble", ("S4:7",)),
        ("unanswerable", "Which café does Xander's classmate Benedikt like most?", None, ()),
        ("update", "What is Xander's usual order?", "almond cortado with vanilla", ("S3:4",)),
        (
            "earlier",
            "What was Xander's usual order before almond cortado with vanilla?",
            "oat latte with cinnamon",
            ("S1:6",),
        ),
        ("paraphrase", "Which broadband provider does Wilma use?", "Lumiform", ("S1:8",)),
        ("temporal", "When did Xander cross the Mallowwick bridge on foot?", "2 November 2019", ("S3:6",)),
        (
            "list",
            "What has Ivo found at the flea market?",
            "an embroidered camera, an enamel tea caddy",
            ("S1:3", "S2:3"),
        ),
        ("single", "What is Xander's allergy to?", "lupin", ("S4:6",)),
    ]
    assert told["S4:7"] == "I forgot to say, I named the puppy Bramble."
    assert told["S1:6"] == "News: I ordered oat latte with cinnamon, as usual."
    assert told["S3:4"] == "My usual order has changed to almond cortado with vanilla."
    assert told["S1:8"] == "I forgot to say, my colleague Wilma signed up with Lumiform for the internet."
    assert told["S3:6"] == "Four days ago I crossed the Mallowwick bridge on foot."
    assert told["S1:3"] == "Also, I found an embroidered camera at the flea market."
    assert told["S2:3"].endswith("By the way, I found an enamel tea caddy at the flea market.")
    assert told["S4:6"] == "It turns out I have an allergy to lupin."
    assert any(
        "the café where they know my colleague Katrin's face is the Tin Barrel" in text for text in told.values()
    )


# ---------------------------------------------------------------- question types


def of_type(kind: str, **options: Any) -> tuple[Instance, list[Question]]:
    made = instance(tokens=20_000, questions=60, **options)
    return made, [question for question in made.questions if question.question_type == kind]


@pytest.mark.parametrize("style", ["named", "roles"])
def test_every_type_is_asked_by_default(style: str) -> None:
    made = instance(tokens=20_000, questions=40, style=style)
    assert {question.question_type for question in made.questions} == set(QUESTION_TYPES)


def test_shares_are_met_to_the_question() -> None:
    counts = QuestionShares().counts(40)
    assert counts == {
        "single": 8,
        "paraphrase": 6,
        "update": 6,
        "earlier": 4,
        "temporal": 6,
        "list": 2,
        "count": 2,
        "unanswerable": 6,
    }
    only = QuestionShares(**{**dict.fromkeys(QUESTION_TYPES, 0.0), "update": 2.0, "count": 1.0})
    assert {kind: number for kind, number in only.counts(10).items() if number} == {"update": 7, "count": 3}


def test_the_newest_turn_is_an_updates_evidence_and_an_older_one_an_earlier_questions() -> None:
    made, updates = of_type("update")
    place = {turn_id: number for number, turn_id in enumerate(texts(made))}
    for question in updates:
        turns, values = question.details["turns"], question.details["values"]
        assert [place[turn] for turn in turns] == sorted({place[turn] for turn in turns})
        assert question.evidence == turns[-1:]
        assert question.answer == values[-1]
        told = [texts(made)[turn] for turn in turns]
        assert all(text_scores.contains([value], text) for value, text in zip(values, told, strict=True))
    _, earlier = of_type("earlier")
    assert earlier
    for question in earlier:
        turns, values = question.details["turns"], question.details["values"]
        before = values.index(question.answer)
        assert values[before + 1] in question.text
        assert question.evidence == (turns[before],)


def test_a_day_told_as_so_long_ago_is_counted_from_its_session() -> None:
    made, dated = of_type("temporal")
    held = {turn.turn_id: session.date for session in made.sessions for turn in session.turns}
    back = {"today": 0, "this morning": 0, "yesterday": 1, "a week ago": 7, "two weeks ago": 14, "three weeks ago": 21}
    numbers = {"two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
    assert dated
    for question in dated:
        session = datetime.strptime((held[question.evidence[0]] or "")[:10], "%Y/%m/%d")
        day = datetime.strptime(question.answer or "", "%d %B %Y")
        said = question.details["said"]
        if said.startswith("this past"):
            assert said.endswith(day.strftime("%A"))
            assert timedelta(1) <= session - day <= timedelta(6)
        else:
            assert session - day == timedelta(back.get(said, numbers.get(said.split()[0], -1)))


def times_told(made: Instance, person: Person, templates: Iterable[str]) -> int:
    """How often the person's teller says one of the templates of that person, with any value."""
    teller = made.sessions[0].turns[person.teller].speaker
    said = [turn.text for session in made.sessions for turn in session.turns if turn.speaker == teller]
    filled = [template.format(value="\0", item="\0", **told(person)) for template in templates]
    patterns = [r"\b" + re.escape(text).replace(re.escape("\0"), ".+") for text in filled]
    return sum(bool(re.search(pattern, text, re.IGNORECASE)) for pattern in patterns for text in said)


@pytest.mark.parametrize("style", ["named", "roles"])
def test_facts_are_told_as_often_as_questions_need_and_never_by_filler_or_lures(style: str) -> None:
    options = config(tokens=60_000, questions=120, style=style, distractors=4, ambient=0.2)
    made = SyntheticBenchmark(options).instances()[0]
    people = {person.name: person for person in make_plan(options, 0).cast.subjects}
    attributes = {one.key: one for one in ATTRIBUTES}
    collections = {one.key: one for one in COLLECTIONS}
    for question in made.questions:
        person, key = people[question.details["subject"]], question.details["attribute"]
        if question.question_type in ("list", "count"):
            templates = collections[key].tellings
        elif question.question_type == "temporal":
            templates = ("{who} " + question.details["happened"],)
        else:
            templates = attributes[key].tellings + attributes[key].updates
        needed = question.details.get("turns", question.evidence)
        assert times_told(made, person, templates) == len(needed), question


def test_without_names_the_user_asks_about_me() -> None:
    made, asked = of_type("single", style="roles")
    assert all(turn.speaker is None for session in made.sessions for turn in session.turns)
    about_me = [question for question in asked if question.details["subject"] == ""]
    assert about_me
    assert all({"my", "I"} & set(question.text.split()) for question in about_me)


def test_lures_grow_with_distractors_and_with_the_history() -> None:
    def musings(**options: Any) -> int:
        wanted = {template.split("} ")[1][:25] for one in ATTRIBUTES for template in one.musings}
        return sum(any(words in text for words in wanted) for text in texts(instance(**options)).values())

    none = musings(tokens=20_000, distractors=0, ambient=0.0)
    assert none == 0
    assert musings(tokens=20_000, distractors=3, ambient=0.0) > 5
    assert musings(tokens=80_000, distractors=0) > 2 * musings(tokens=20_000, distractors=0) > 0


# ---------------------------------------------------------------- the catalogue


def stems(text: str) -> set[str]:
    """Stems of a template's own content words."""
    stem = PorterStemmer().stem
    words = {word.strip(".,?!'").lower() for word in re.sub(r"\{\w+\}", " ", text).split()}
    return {stem(word) for word in words - COMMON_WORDS}


# fmt: off
COMMON_WORDS = {
    "a", "an", "the", "to", "of", "on", "in", "at", "is", "are", "was", "be", "for", "and", "or", "with", "by", "from",
    "up", "who", "whose", "what", "which", "where", "when", "how", "do", "does", "did", "has", "have", "it", "that",
    "this", "as", "so", "not", "now", "me", "i", "my", "own", "one", "they", "their", "no", "than", "but", "all", "new",
    "old", "over", "out", "before", "after", "never", "must", "should", "go", "get", "goes", "got", "keep", "part",
    "like", "things", "s", "",
}
# fmt: on


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda one: one.key)
def test_direct_questions_share_words_with_each_telling_and_paraphrases_none(attribute: Any) -> None:
    told = [stems(template) for template in attribute.tellings + attribute.updates]
    for question in attribute.questions:
        assert all(stems(question) & words for words in told), question
    for question in attribute.paraphrases:
        assert not any(stems(question) & words for words in told), question
    for template in attribute.tellings + attribute.updates:
        assert "{value}" in template
    assert not any("{value}" in template for template in attribute.musings)
    assert bool(attribute.updates) == bool(attribute.earlier)


def test_the_catalogue_uses_rules_that_exist() -> None:
    values = Grammar(NAMES)
    for rule in {one.value for one in ATTRIBUTES} | {one.item for one in EVENTS} | {one.item for one in COLLECTIONS}:
        assert values.expand(rule, Draw("any", rule))


@pytest.mark.parametrize("topic", TOPIC_NAMES)
def test_filler_is_whole_sentences_in_every_topic(topic: str) -> None:
    draw = Draw("filler", topic)
    for rule in ("talk", "advice", "reply", "noted"):
        made = [grammar(topic).sentence(rule, draw, {"friend": ["my cousin Ines"]}) for _ in range(200)]
        assert all(text[0].isupper() and text[-1] in ".!?" and "{" not in text for text in made)
        assert len(set(made)) > (100 if rule in ("talk", "advice") else 5)


def test_polish_sets_articles_capitals_and_stops() -> None:
    assert polish("a old dog saw a user of a ukulele? never") == "An old dog saw a user of a ukulele? Never."


def test_streams_of_choices_are_named() -> None:
    assert [Draw("a", 1).below(100) for _ in range(2)] == [Draw("a/1").below(100)] * 2
    assert sorted(Draw("b").sample(range(5), 9)) == [0, 1, 2, 3, 4]
    assert {Draw("c", number).geometric(3.0, 4) for number in range(50)} == {1, 2, 3, 4}


# ---------------------------------------------------------------- the benchmark


def test_it_is_a_benchmark() -> None:
    benchmark: Benchmark = make_benchmark("synthetic", {"conversations": 2, "tokens": 2_000})
    assert benchmark.name == "synthetic"
    assert tuple(benchmark.metrics) == ("f1", "contains")
    conversations = benchmark.instances()
    assert len(conversations) == 2
    assert conversations[1] is conversations[-1]
    assert [one.instance_id for one in conversations] == [one.instance_id for one in conversations[:]]
    with pytest.raises(IndexError):
        conversations[2]
    assert "say nothing about any public benchmark" in " ".join(benchmark.notes())


@pytest.mark.parametrize("style", ["named", "roles"])
def test_gold_answers_score_one_and_abstaining_scores_nothing_but_where_it_is_right(style: str) -> None:
    benchmark = SyntheticBenchmark(config(style=style))
    for question in benchmark.instances()[0].questions:
        best = benchmark.score(question, question.answer or "Not mentioned.", 0)
        assert best == {"f1": 1.0, "contains": 1.0}
        other = benchmark.score(question, "Not mentioned." if question.answer else "Dr. Tarnow", 0)
        assert other == {"f1": 0.0, "contains": 0.0}


def test_the_prompt_has_the_rules_the_day_and_the_question() -> None:
    benchmark = SyntheticBenchmark(config())
    conversation = benchmark.instances()[0]
    question = conversation.questions[0]
    prompt = benchmark.reader_prompt(conversation, question, seed=0)
    assert all((turn.speaker or "") in prompt.system for turn in conversation.sessions[0].turns)
    assert "Not mentioned" in prompt.system
    assert prompt.question == f"Today is {question.asked_at}. Question: {question.text}\nAnswer:"
    nameless = SyntheticBenchmark(config(style="roles"))
    first = nameless.instances()[0]
    assert "the assistant" in nameless.reader_prompt(first, first.questions[0], seed=0).system


@pytest.mark.parametrize(
    ("gold", "reply", "f1", "contained"),
    [
        ("9 March 2024", "On March 9th, 2024.", 6 / 7, True),
        ("9 March 2024", "2024-03-09", 1.0, True),
        ("9 March 2024", "the 9th of March, 2024", 1.0, True),
        ("9 March 2024", "2024-99-09", 1 / 3, False),
        ("3", "Three.", 1.0, True),
        ("$4,300", "about 4300", 2 / 3, True),
        ("5:40", "at 5:40 am", 1 / 2, True),
        ("the Copper Kettle", "Copper Kettle", 1.0, True),
        ("the Copper Kettle", "the Kettle of Copper", 4 / 5, False),
        ("cobalt", "cobalts", 0.0, False),
        ("cobalt", "", 0.0, False),
    ],
)
def test_scores_by_hand(gold: str, reply: str, f1: float, contained: bool) -> None:
    assert text_scores.f1(gold, reply) == pytest.approx(f1)
    assert text_scores.contains([gold], reply) is contained


def test_a_list_may_come_in_any_order() -> None:
    question = Question("q", "Which?", "Peru, Malta", "list", details={"parts": ("Peru", "Malta")})
    benchmark = SyntheticBenchmark()
    assert benchmark.score(question, "Malta and Peru") == {"f1": pytest.approx(4 / 5), "contains": 1.0}
    assert benchmark.score(question, "Malta") == {"f1": pytest.approx(2 / 3), "contains": 0.0}


@pytest.mark.parametrize(
    "reply", ["Not mentioned", "The conversation does not say.", "It can't be answered", "Unknown"]
)
def test_ways_to_say_that_it_is_not_told(reply: str) -> None:
    assert text_scores.abstains(reply)
    assert not text_scores.abstains("Mentioned on Monday: Dr. Tarnow")


# ---------------------------------------------------------------- steps


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1_000, 20_000))
def test_steps_make_units_of_the_size_asked_for(seed: int, size: int) -> None:
    steps = list(iter_steps(seed, size))
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert all(step.action and step.output for step in steps)
    units = pack_steps(steps, history="h", limit=10**9)
    assert units[0].tokens == pytest.approx(size, rel=0.05)


def test_a_small_trajectory_has_a_step_and_a_long_one_everything() -> None:
    assert len(list(iter_steps("tiny", 1))) == 1
    steps = list(iter_steps("long", 60_000))
    outputs = "\n".join(step.output for step in steps)
    assert all(found in outputs for found in ("Traceback", '"status": 401', '"status": 422', '"access_token"'))
    assert any("page_index=2" in step.action for step in steps)
    assert 0.3 < sum(bool(step.thought) for step in steps) / len(steps) < 0.7


def test_steps_stream() -> None:
    first: list[Step] = list(islice(iter_steps(3, 10**9), 5))
    assert [step.number for step in first] == [1, 2, 3, 4, 5]
