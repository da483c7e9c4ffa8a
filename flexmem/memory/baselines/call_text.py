"""What a call is about, as a memory model is told."""

from __future__ import annotations

from flexmem.memory.protocol import Query


def call_text(query: Query) -> str:
    """A reader's question; an agent's task and its newest steps."""
    return query.text if query.task is None else f"Task: {query.task}\n\nNewest steps:\n{query.text}"
