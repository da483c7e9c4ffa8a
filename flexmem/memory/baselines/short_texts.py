"""Short texts of a unit: asked of the memory model, cut to their length, shown on one line."""

from __future__ import annotations

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.asking import MemoryModel
from flexmem.memory.flexa.records import first_words
from flexmem.memory.prompts import template
from flexmem.memory.protocol import Resolution
from flexmem.memory.selection import Fragment

_REPLY_TOKENS = 600  # some four times what 80 words take: a model that reasons pays for that from the same limit


async def shortened(model: MemoryModel, prompt: str, unit: Unit, words: int, fallback: str) -> str:
    """The unit in at most ``words`` words, by the template ``prompt`` (placeholders ``unit`` and ``words``). A longer
    reply is cut; where none is usable the unit's own first words stand in, counted as ``fallback``.

    Raises:
        ModelError: the model could not be asked.
    """
    reply = await model.text(template(prompt).substitute(unit=unit.text, words=words), _REPLY_TOKENS, fallback)
    return first_words(own_text(unit) if reply is None else reply, words)


def own_text(unit: Unit) -> str:
    """A unit's text without the header line that we add."""
    return unit.text[len(unit.header) :]


def one_line(text: str) -> str:
    """The text with single blanks for all white space."""
    return " ".join(text.split())


def labelled(unit: Unit, text: str, resolution: Resolution) -> Fragment:
    """``[u07 | session 3, 8 May 2023] text`` on one line, standing for the unit."""
    line = f"[{unit.label} | {unit.place}] {one_line(text)}".rstrip() + "\n"
    return Fragment(line, tokens.count(line), (unit.uid,), resolution)
