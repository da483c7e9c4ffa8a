"""The judge's prompt and how its word is read."""

from __future__ import annotations

import asyncio

import pytest

from flexmem.agents.judge import RUBRICS, Verdict, judge, judge_prompt, rubric_digest
from flexmem.llm.scripted import ScriptedModel


def ask(said: str, rubric: str = "default") -> tuple[Verdict, ScriptedModel]:
    model = ScriptedModel(lambda request: said)
    asked = judge(model, rubric, "Where?", "In Rome", "Rome, I think", max_tokens=16, effort="low")
    return asyncio.run(asked), model


@pytest.mark.parametrize(
    ("said", "label", "readable"),
    [
        ("yes", 1.0, True),
        ("Yes.", 1.0, True),
        ("**YES**", 1.0, True),
        ("no", 0.0, True),
        ("No, it names another city.", 0.0, True),
        ("The reply is right", 0.0, False),
        ("", 0.0, False),
        ("nobody knows", 0.0, False),
    ],
)
def test_a_word_is_read(said: str, label: float, readable: bool) -> None:
    verdict, _ = ask(said)
    assert (verdict.label, verdict.readable) == (label, readable)


@pytest.mark.parametrize("rubric", RUBRICS)
def test_every_rubric_shows_question_answer_and_reply_and_asks_for_one_word(rubric: str) -> None:
    prompt = judge_prompt(rubric, "Where $x?", "In ${Rome}", "Rome, $answer")
    assert "Where $x?" in prompt
    assert "In ${Rome}" in prompt
    assert "Rome, $answer" in prompt
    assert prompt.rstrip().endswith("Reply with one word, yes or no.")


def test_rubrics_differ_and_have_digests_of_their_own() -> None:
    assert len({rubric_digest(rubric) for rubric in RUBRICS}) == len(RUBRICS)
    with pytest.raises(ValueError, match="unknown rubric 'harsh'"):
        judge_prompt("harsh", "", "", "")


def test_the_call_is_the_judge_s_at_temperature_0() -> None:
    _, model = ask("yes")
    (request,) = model.requests
    assert (request.role, request.temperature, request.max_tokens, request.effort) == ("judge", 0.0, 16, "low")
