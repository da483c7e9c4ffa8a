"""MemGAS's values (docs/methods.md B.8)."""

from __future__ import annotations

from pydantic import Field

from flexmem.memory.protocol import MethodConfig


class MemgasConfig(MethodConfig):
    """The code's defaults, but for what it does not have."""

    candidates: int = Field(30, ge=2)
    """The most similar earlier nodes among which a new one's links are found: 30 in the code's retrieval, 20 in its
    construction alone."""
    unlinked_sessions: int = Field(5, ge=1)
    """The first sessions have no links of their own; the code's."""
    temperature: float = Field(0.1, gt=0)
    """Of the softmax over sessions whose entropy weighs a granularity; the code's."""
    seeds: int = Field(15, ge=1)
    """Nodes from which the random walk starts; the code's."""
    damping: float = Field(0.1, ge=0, lt=1)
    """How likely the walk follows a link instead of starting again; the code's."""
    summary_words: int = Field(80, ge=1)
    """Ours: the code asks for a short paragraph and states no length; FlexA-Mem's records have as much."""
    keywords: int = Field(8, ge=1)
    """Ours: as many as FlexA-Mem's records have; the code states no number."""
    seed: int = 0
    """The mixture's; the code's."""
