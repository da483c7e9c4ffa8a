"""Headings that a rendering adds itself."""

from __future__ import annotations

from functools import cache

from flexmem import tokens
from flexmem.memory.protocol import Resolution
from flexmem.memory.selection import Fragment

TIMELINE = "# Timeline"
DETAILS = "# Details"


@cache
def heading(text: str) -> Fragment:
    """A heading's line."""
    line = text + "\n"
    return Fragment(line, tokens.count(line), (), Resolution.FRAME)
