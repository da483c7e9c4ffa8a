"""The reader's prompt and call."""

from __future__ import annotations

import asyncio

import pytest

from flexmem.agents import reader
from flexmem.benchmarks.protocol import ReaderPrompt
from flexmem.llm.errors import Refused
from flexmem.llm.scripted import ScriptedModel
from flexmem.ports import Message

PROMPT = ReaderPrompt("Answer in one word.", "Where does {name} live?")


def test_the_call() -> None:
    model = ScriptedModel(["Rome"])
    memory = "[1] Ada: I moved to {Rome}.\n"
    reply = asyncio.run(reader.answer(model, PROMPT, memory, max_tokens=64, effort="medium"))
    assert reply.text == "Rome"
    (request,) = model.requests
    assert (request.role, request.max_tokens, request.effort, request.temperature) == ("reader", 64, "medium", None)
    system, user = request.messages
    assert system == Message("system", "Answer in one word.")
    assert user.role == "user"
    assert user.content == f"<memory>\n{memory}\n</memory>\n\nWhere does {{name}} live?"


@pytest.mark.parametrize("memory", ["", " \n"])
def test_without_memory_it_says_so(memory: str) -> None:
    _, user = reader.messages(PROMPT, memory)
    assert "no memory" in user.content
    assert "<memory>" not in user.content
    assert user.content.endswith(PROMPT.question)


def test_without_an_instruction_there_is_no_system_message() -> None:
    assert [message.role for message in reader.messages(ReaderPrompt("", "Who?"), "x")] == ["user"]


def test_failures_pass() -> None:
    with pytest.raises(Refused):
        asyncio.run(reader.answer(ScriptedModel("refuse"), PROMPT, "x", max_tokens=8, effort=None))


def test_the_digest_follows_the_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    before = reader.prompt_digest()
    assert before == reader.prompt_digest()
    monkeypatch.setattr(reader, "EMPTY", "Nothing.\n\n{question}")
    assert reader.prompt_digest() != before
