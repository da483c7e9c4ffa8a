"""How a reader is asked one LongMemEval question. The words are ours and the same for every type: what differs between
types, and whether a question can be answered at all, is not for the reader to know.
"""

from __future__ import annotations

from flexmem.benchmarks.protocol import ReaderPrompt

_SYSTEM = (
    "You are a user's personal assistant. Below is what a memory holds of the user's earlier chats with you, dated by "
    "session. Answer what the user asks now from this memory."
)
_RULES = (
    "Give a short but complete answer: every item, number or step that is asked for, and nothing else. Work out times "
    "from the dates of the sessions and today's date. Where the memory tells different things of the same matter, the "
    "latest session counts. Where advice is asked for, base it on what the memory tells of the user. If the memory "
    "does not tell what is asked, say that the question can't be answered from it, and what is missing."
)


def reader_prompt(text: str, asked_at: str) -> ReaderPrompt:
    """Instruction and question; ``asked_at`` as the benchmark writes it."""
    return ReaderPrompt(_SYSTEM, f"Today is {asked_at}.\nQuestion: {text.strip()}\n{_RULES}")
