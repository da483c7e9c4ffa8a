"""How a reader is asked one PersonaMem question. What is to be answered, and the special token before the letter, are
the benchmark's own instruction; the frame is ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from flexmem.benchmarks.personamem.options import LETTERS
from flexmem.benchmarks.protocol import ReaderPrompt

FINAL = "<final_answer>"

_SYSTEM = (
    "You are a user's personal assistant. Below is what a memory holds of the user's earlier chats with you and of who "
    "the user is. Choose the reply to the user's new message that suits what the memory tells."
)
_INSTRUCTION = (
    "Find the most appropriate model response and give your final answer (a), (b), (c), or (d) after the special token "
    f"{FINAL}."
)


def reader_prompt(text: str, options: Sequence[str]) -> ReaderPrompt:
    """Message, instruction and options, in this order."""
    shown = (f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=True))
    return ReaderPrompt(_SYSTEM, "\n".join([f"{text}\n\n{_INSTRUCTION}\n", *shown]))
