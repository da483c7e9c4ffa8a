"""What the memory model is asked for, and what becomes of replies that are no answer."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest
from pydantic import Field

from flexmem.contract.cases import services
from flexmem.llm.errors import Malformed, Refused, Transient
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.asking import MemoryModel, ReplyForm, json_schema, memory_model, read_object
from flexmem.memory.protocol import MethodError


class Pages(ReplyForm):
    """A small form."""

    pages: list[int]
    reason: str = ""
    names: list[list[str]] = Field(default_factory=list)


def ask(model: ScriptedModel) -> tuple[Pages | None, Counter[str]]:
    fallbacks: Counter[str] = Counter()
    return asyncio.run(MemoryModel(model, fallbacks).fill(Pages, "Which?", 50, "no pages")), fallbacks


def test_the_schema_is_strict_and_bare() -> None:
    assert json_schema(Pages) == {
        "type": "object",
        "properties": {
            "pages": {"type": "array", "items": {"type": "integer"}},
            "reason": {"type": "string"},
            "names": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        },
        "required": ["pages", "reason", "names"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "reply",
    ['{"pages": [3, 1]}', 'Sure:\n```json\n{"pages": [3, 1], "more": null}\n```', '{"pages": [3, 1], "reason": ""} {'],
)
def test_an_object_is_found_in_what_stands_around_it(reply: str) -> None:
    assert read_object(Pages, reply) == Pages(pages=[3, 1])


@pytest.mark.parametrize(
    "reply", ["", "3, 1", '{"pages": ["3"]}', '{"pages": 3}', '{"pages": [3', "[" * 5000, "{" * 5000]
)
def test_what_has_another_form_is_no_answer(reply: str) -> None:
    assert read_object(Pages, reply) is None


def test_an_unusable_reply_is_asked_for_once_more_as_another_sample() -> None:
    model = ScriptedModel(["3, 1", '{"pages": [3, 1]}'])
    found, fallbacks = ask(model)
    assert found == Pages(pages=[3, 1])
    assert not fallbacks
    assert [request.sample for request in model.requests] == [0, 1]
    first = model.requests[0]
    assert (first.role, first.effort, first.temperature, first.max_tokens) == ("memory", "low", 0.0, 50)
    assert json.dumps(first.schema) == json.dumps(json_schema(Pages))


def test_after_two_the_fallback_is_counted() -> None:
    for replies in (["", "no"], [Malformed("x"), Refused("x")]):
        assert ask(ScriptedModel(replies)) == (None, Counter({"no pages": 1}))


def test_a_failure_is_the_callers() -> None:
    with pytest.raises(Transient):
        ask(ScriptedModel([Transient("the endpoint failed")]))


def test_text_is_stripped_and_blank_text_is_none() -> None:
    fallbacks: Counter[str] = Counter()
    model = MemoryModel(ScriptedModel([" \n", " A line. \n", "", ""]), fallbacks)
    assert asyncio.run(model.text("Say", 10, "nothing said")) == "A line."
    assert asyncio.run(model.text("Say", 10, "nothing said")) is None
    assert fallbacks == {"nothing said": 1}


def test_a_method_that_needs_a_model_says_so() -> None:
    with pytest.raises(MethodError, match="needs a memory model"):
        memory_model(services(None), Counter())
