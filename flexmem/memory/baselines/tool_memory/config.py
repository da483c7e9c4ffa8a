"""What of tool-managed memory can be set (docs/methods.md B.7)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from flexmem.memory.protocol import MethodConfig


class ToolMemoryConfig(MethodConfig):
    """After MemGPT's constants; what they leave open is ours."""

    writer: Literal["rule", "model"] = "model"
    """Who writes records and summaries: in the original everything is the model's."""
    record_words: int = Field(80, ge=1)
    """As FlexA-Mem's, so that lines compare."""
    summary_words: int = Field(150, ge=1)
    """The summary of flushed units; as FlexA-Mem's merged records are cut."""
    core_characters: int = Field(2_000, ge=0)
    """The core block's limit; MemGPT's."""
    page_size: int = Field(5, ge=1)
    """Search results a page; MemGPT's."""
    warn_share: float = Field(0.75, gt=0, le=1)
    """Share of the budget from which the reader is warned; MemGPT's."""
    flush_share: float = Field(0.75, gt=0, le=1)
    """Lines are flushed when they outgrow this share of the room: the rest is for what is expanded and found."""
    keep_last: int = Field(3, ge=1)
    """The newest units that a flush leaves; MemGPT's."""
    piece_tokens: int = Field(128, ge=8)
    """Size of what a search finds; as FlexA-Mem's pieces."""
