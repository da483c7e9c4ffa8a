"""A scripted model that fills every form and keeps every stated length."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from flexmem.llm.form_filler import WORDS, stated_length
from flexmem.ports import ChatRequest, Message

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "short": {"type": "string"},
        "words": {"type": "array", "items": {"type": "string"}},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "one": {"type": "integer"},
        "yes": {"type": "boolean"},
        "share": {"type": "number"},
        "kind": {"type": "string", "enum": ["add", "rewrite"]},
        "kinds": {"type": "array", "items": {"type": "string", "enum": ["add", "rewrite"]}},
        "lists": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    },
}


def ask(prompt: str, schema: dict[str, object] | None = None) -> str:
    return stated_length(ChatRequest((Message("system", "x:"), Message("user", prompt)), "memory", 100, schema=schema))


def test_text_has_the_stated_length_and_comes_from_the_material() -> None:
    assert ask("Write at most 3 words.\n\nText:\none two three four") == "one two three"
    assert ask("one two at most 4 plain words three") == "one two at most"
    assert len(ask("word " * 200).split()) == WORDS


def test_a_form_is_filled_with_what_the_prompt_holds() -> None:
    prompt = "At most 3 words, then at most 2 words.\n[u04 | x] kettle\n[u07] garden garden\nText:\ngarden kettle stove"
    filled = json.loads(ask(prompt, SCHEMA))
    assert list(filled) == list(SCHEMA["properties"])  # type: ignore[call-overload]
    assert filled["text"] == "garden kettle stove"
    assert filled["short"] == "garden kettle"
    assert filled["words"] == ["garden", "kettle", "stove"]
    assert sorted(filled["ids"]) == [4, 7]
    assert filled["one"] in (4, 7)
    assert isinstance(filled["yes"], bool)
    assert 0 <= filled["share"] <= 1
    assert {filled["kind"], *filled["kinds"]} <= {"add", "rewrite"}
    assert filled["lists"] == [["garden", "kettle", "stove"]] * 2


@given(st.text(max_size=300))
def test_the_reply_depends_on_the_request_alone(prompt: str) -> None:
    assert ask(prompt, SCHEMA) == ask(prompt, SCHEMA)
    json.loads(ask(prompt, SCHEMA))
    ask(prompt)
