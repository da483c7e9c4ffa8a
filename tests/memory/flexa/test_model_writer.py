"""Records and merges by the memory model (docs/methods.md A.5, A.8)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from flexmem.history import Session, Step, Turn, Unit, pack_steps, split_sessions
from flexmem.llm.errors import Malformed, ModelError, Refused, Transient
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.merging import merge_by_rule
from flexmem.memory.flexa.model_writer import ModelWriter
from flexmem.memory.flexa.records import Record
from flexmem.memory.flexa.rule_writer import RuleWriter
from tests.memory.examples import words

(CHAT,) = split_sessions(
    [Session("1", (Turn("a", "user", "I sold my $kettle."), Turn("b", "assistant", "Good.")), "8 May 2023")],
    history="h",
)
(STEPS,) = pack_steps([Step(1, "ls", "a.txt")], history="h")


def reply(record: object = "8 May 2023: sold.", keywords: object = ("kettle",), entities: object = ("$kettle",)) -> str:
    return json.dumps({"record": record, "keywords": keywords, "entities": entities})


class Writing:
    """One writer behind a scripted model."""

    def __init__(self, replies: str | Sequence[str | ModelError], **options: Any) -> None:
        self.model = ScriptedModel(replies)
        self.fallbacks: Counter[str] = Counter()
        self.writer = ModelWriter(self.model, FlexaConfig(writer="model", **options), self.fallbacks)

    def record(self, unit: Unit = CHAT, previous: str | None = None) -> Record:
        return asyncio.run(self.writer.write(unit, previous))

    def merge(self, texts: Sequence[str] = ("one", "two")) -> str:
        return asyncio.run(self.writer.merge(texts, [f"u{n:02d} | session 1" for n in range(len(texts))]))


def by_rule(unit: Unit) -> Record:
    return asyncio.run(RuleWriter(80, 120).write(unit, None))


# ---------------------------------------------------------------- records


def test_a_good_reply_is_the_record() -> None:
    writing = Writing([reply()])
    assert writing.record() == Record(0, "8 May 2023: sold.", ("kettle",), ("$kettle",))
    assert not writing.fallbacks


@pytest.mark.parametrize(
    ("unit", "previous", "told"),
    [
        (CHAT, "7 May 2023: Hi.", ["I sold my $kettle.", "7 May 2023: Hi.", "at most 80 words", "conversation"]),
        (CHAT, None, ["(none)"]),
        (STEPS, "1: cd", ["Step 1\nAction:\nls\nOutput:\na.txt", "1: cd", "agent"]),
    ],
)
def test_the_request_has_the_unit_the_previous_record_and_the_limits(
    unit: Unit, previous: str | None, told: list[str]
) -> None:
    writing = Writing([reply()])
    writing.record(unit, previous)
    (request,) = writing.model.requests
    assert (request.role, request.effort, request.temperature) == ("memory", "low", 0.0)
    assert request.schema is not None
    assert set(request.schema["required"]) == {"record", "keywords", "entities"}
    (message,) = request.messages
    assert all(part in message.content for part in told)


def test_a_record_is_cut_at_80_words_and_the_fields_at_8_and_12() -> None:
    long = reply("8 May 2023: " + words(100), [f"k{n}" for n in range(20)], [f"e{n}" for n in range(20)])
    record = Writing([long]).record()
    assert record.text == f"8 May 2023: {words(77)}"
    assert record.keywords == tuple(f"k{n}" for n in range(8))
    assert record.entities == tuple(f"e{n}" for n in range(12))
    assert len(Writing([reply(words(100))], record_words=10).record(STEPS).text.split()) == 10


def test_a_date_that_the_reply_leaves_out_is_put_in_front_and_counts() -> None:
    assert Writing([reply("Sold the kettle.")]).record().text == "8 May 2023: Sold the kettle."
    assert Writing([reply("On 8 May 2023 sold.")]).record().text == "On 8 May 2023 sold."
    assert Writing([reply(words(80))]).record().text == f"8 May 2023: {words(77)}"
    assert Writing([reply("Listed.")]).record(STEPS).text == "Listed."


@pytest.mark.parametrize("wrapped", ["Sure!\n{}\nAnything else?", "```json\n{}\n```", "{}{{"])
def test_text_around_the_object_is_forgiven(wrapped: str) -> None:
    assert Writing([wrapped.replace("{}", reply()).replace("{{", "{")]).record().text == "8 May 2023: sold."


@pytest.mark.parametrize("missing", [{"record": "x on 8 May 2023"}, {"record": "x on 8 May 2023", "keywords": []}])
def test_missing_fields_are_empty(missing: dict[str, object]) -> None:
    assert Writing([json.dumps(missing)]).record() == Record(0, "x on 8 May 2023", (), ())


UNUSABLE = [
    "",
    "no JSON",
    "}{ <<",
    '{"record": "cut off',
    "[]",
    reply(record=""),
    reply(record="  "),
    reply(record=7),
    reply(keywords="kettle"),
    reply(entities=[1]),
    '{"record": "x", "keywords": ' + "[" * 5_000,
    Refused("no"),
    Malformed("html"),
]


@pytest.mark.parametrize("unusable", UNUSABLE, ids=lambda reply: repr(reply)[:24])
def test_after_one_unusable_reply_it_asks_again(unusable: str | ModelError) -> None:
    writing = Writing([unusable, reply()])
    assert writing.record().text == "8 May 2023: sold."
    assert writing.model.calls["memory"] == 2
    assert not writing.fallbacks


@pytest.mark.parametrize("unusable", UNUSABLE, ids=lambda reply: repr(reply)[:24])
def test_after_two_unusable_replies_the_rule_writes_and_it_is_counted(unusable: str | ModelError) -> None:
    writing = Writing([unusable, unusable])
    assert writing.record() == by_rule(CHAT)
    assert writing.fallbacks == {"record written by rule, not by the model": 1}


def test_a_model_that_refuses_leaves_a_rule_writers_memory() -> None:
    writing = Writing("refuse")
    assert writing.record(STEPS) == by_rule(STEPS)
    assert writing.merge(["1: a -> b", "2: c -> d"]) == merge_by_rule(["1: a -> b", "2: c -> d"], 120)
    assert writing.fallbacks == {
        "record written by rule, not by the model": 1,
        "records merged by rule, not by the model": 1,
    }
    assert writing.model.calls["memory"] == 4


def test_a_model_that_follows_no_instruction_leaves_a_rule_writers_records() -> None:
    writing = Writing("garbage")
    assert writing.record(STEPS) == by_rule(STEPS)
    assert writing.fallbacks == {"record written by rule, not by the model": 1}


def test_other_failures_are_the_callers() -> None:
    with pytest.raises(Transient):
        Writing([Transient("down")]).record()
    with pytest.raises(Transient):
        Writing([Transient("down")]).merge()


def test_the_rules_statistics_go_on_while_the_model_writes() -> None:
    """A fallback late in a history is the record that the rule would have written there: after two units about tea, the
    violin is the rarer one.
    """
    said = ("Tea tastes. Tea tastes.", "Tea tastes. Tea tastes.", "Tea tastes. Violin sounds.")
    units = split_sessions([Session(str(n), (Turn("a", "user", text),)) for n, text in enumerate(said)], history="h")
    writing = Writing([reply(), reply(), "", ""], record_words=2)
    assert [writing.record(unit).text for unit in units] == ["8 May", "8 May", "Violin sounds."]


# ---------------------------------------------------------------- merges


def test_a_merge_is_the_reply_cut_at_150_words() -> None:
    writing = Writing(["All of it.", words(151)])
    assert writing.merge() == "All of it."
    assert writing.merge() == words(150)
    assert not writing.fallbacks


def test_the_merge_request_has_the_entries_with_their_spans_in_order() -> None:
    writing = Writing(["ok"])
    writing.merge(["Ann sang.", "Bo left for $9."])
    (request,) = writing.model.requests
    assert (request.role, request.effort, request.schema) == ("memory", "low", None)
    content = request.messages[0].content
    assert "[u00 | session 1] Ann sang.\n[u01 | session 1] Bo left for $9." in content
    assert "at most 120 words" in content


@pytest.mark.parametrize("unusable", ["", " \n", Refused("no"), Malformed("html")])
def test_a_merge_is_asked_for_twice_and_then_made_by_rule(unusable: str | ModelError) -> None:
    assert Writing([unusable, "ok"]).merge() == "ok"
    writing = Writing([unusable, unusable])
    assert writing.merge(["Ann sang.", "Bo left."]) == "Ann sang. Bo left."
    assert writing.fallbacks == {"records merged by rule, not by the model": 1}
