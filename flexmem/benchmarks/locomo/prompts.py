"""How a reader is asked one LoCoMo question (docs/methods.md E.1). Word for word ours; the rules are the benchmark's:
a short answer, a hint to dates in category 2, two options in category 5.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from flexmem.benchmarks.protocol import ReaderPrompt

NOT_MENTIONED = "Not mentioned in the conversation"

_TEMPORAL = 2
_SHORT = "Reply with the answer alone, as a short phrase, in the words of the conversation where you can."
_DATES = "Work out from the dates of the sessions when it was, and give an approximate date."
_CHOICE = "One of two answers is right. Reply with the words of that answer, not with its letter alone."
_LETTER = re.compile(r"\(?([ab])\)?[.:]?")


def reader_prompt(
    *, speakers: Sequence[str], category: int, text: str, options: tuple[str, str] | None
) -> ReaderPrompt:
    """Instruction and question. ``options`` are the two answers of category 5 in the order to show them."""
    system = (
        f"Below is what a memory holds of the talks of {' and '.join(speakers)}, dated by session. Answer the question "
        "that follows it from what they said."
    )
    lines = [f"Question: {text.strip()}"]
    if options is not None:
        lines += [_CHOICE, f"(a) {options[0]}", f"(b) {options[1]}"]
    else:
        lines += [_DATES] if category == _TEMPORAL else []
        lines.append(_SHORT)
    return ReaderPrompt(system=system, question="\n".join(lines))


def options(trap: str, question_id: str, seed: int) -> tuple[str, str]:
    """The trap and `NOT_MENTIONED` in an order that is a fair coin of (seed, question)."""
    coin = hashlib.blake2b(f"{seed}/{question_id}".encode(), digest_size=1).digest()[0] & 1
    return (trap, NOT_MENTIONED) if coin else (NOT_MENTIONED, trap)


def spelled_out(reply: str, shown: tuple[str, str]) -> str:
    """The option that a reply of one letter means; any other reply unchanged."""
    letter = _LETTER.fullmatch(reply.strip().lower())
    return shown["ab".index(letter[1])] if letter else reply
