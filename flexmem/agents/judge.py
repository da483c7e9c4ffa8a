"""The judge: one model call that says whether a reader's reply is right (docs/methods.md E.2, E.3)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template

from flexmem.ports import ChatModel, ChatReply, ChatRequest, Message

RUBRICS = ("default", "temporal", "knowledge_update", "preference", "abstention", "locomo")
"""What a reply is held against; a benchmark names one for each question."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's word on one reply. ``label`` is 1.0 for right and 0.0 for wrong; ``readable`` is False where the judge
    said neither yes nor no, which counts as wrong.
    """

    label: float
    readable: bool
    reply: ChatReply


@cache
def rubric_text(rubric: str) -> Template:
    """The prompt of a rubric, ``flexmem/agents/judge_texts/<rubric>.txt``.

    Raises:
        ValueError: there is no such rubric.
    """
    if rubric not in RUBRICS:
        raise ValueError(f"unknown rubric {rubric!r}; known: {', '.join(RUBRICS)}")
    return Template(files("flexmem.agents").joinpath("judge_texts", f"{rubric}.txt").read_text("utf-8"))


@cache
def rubric_digest(rubric: str) -> str:
    """Digest of a rubric's wording, for the keys of judgements."""
    return hashlib.blake2b(rubric_text(rubric).template.encode(), digest_size=8).hexdigest()


@cache
def all_rubrics_digest() -> str:
    """Digest of every rubric's wording: a judge under one label holds all replies against the same."""
    return hashlib.blake2b("".join(map(rubric_digest, RUBRICS)).encode(), digest_size=8).hexdigest()


def judge_prompt(rubric: str, question: str, answer: str, reply: str) -> str:
    """The one message that a judge is sent."""
    return rubric_text(rubric).substitute(question=question, answer=answer, reply=reply)


async def judge(
    model: ChatModel, rubric: str, question: str, answer: str, reply: str, *, max_tokens: int, effort: str | None
) -> Verdict:
    """Ask whether ``reply`` answers ``question`` as the gold ``answer`` has it, at temperature 0.

    Raises:
        ModelError: as `ChatModel.complete`.
    """
    message = Message("user", judge_prompt(rubric, question, answer, reply))
    request = ChatRequest((message,), "judge", max_tokens, temperature=0.0, effort=effort)
    said = await model.complete(request)
    words = set(re.findall(r"[a-z]+", said.text.lower()))
    return Verdict(float("yes" in said.text.lower()), bool(words & {"yes", "no"}), said)
