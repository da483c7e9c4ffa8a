"""The reader: one model call that answers a question from a memory."""

from __future__ import annotations

import hashlib
from typing import Protocol

from flexmem.ports import ChatModel, ChatReply, ChatRequest, Message

__all__ = ["EMPTY", "FRAME", "answer", "messages", "prompt_digest"]


class ReaderPrompt(Protocol):
    """How a question is asked: what a reader needs of `flexmem.benchmarks.protocol.ReaderPrompt`, which stands above
    this layer.
    """

    @property
    def system(self) -> str: ...

    @property
    def question(self) -> str: ...


# The system message is the benchmark's own. The question stands last: it is what the model should have in mind.
FRAME = "<memory>\n{memory}\n</memory>\n\n{question}"
EMPTY = "There is no memory of earlier conversations.\n\n{question}"


def messages(prompt: ReaderPrompt, memory_text: str) -> tuple[Message, ...]:
    """The benchmark's instruction, then the memory and the question. A memory without text is said to be missing, so
    that a model doesn't take an empty block for an error.
    """
    frame = FRAME if memory_text.strip() else EMPTY
    user = Message("user", frame.format(memory=memory_text, question=prompt.question))
    return (Message("system", prompt.system), user) if prompt.system else (user,)


async def answer(
    model: ChatModel, prompt: ReaderPrompt, memory_text: str, *, max_tokens: int, effort: str | None
) -> ChatReply:
    """Ask ``model`` one question with the memory that was rendered for it. ``max_tokens`` bounds the answer.

    Raises:
        ModelError: as `ChatModel.complete`.
    """
    return await model.complete(ChatRequest(messages(prompt, memory_text), "reader", max_tokens, effort=effort))


def prompt_digest() -> str:
    """Digest of this module's own wording, for fingerprints."""
    return hashlib.sha256("\0".join((FRAME, EMPTY)).encode()).hexdigest()[:16]
