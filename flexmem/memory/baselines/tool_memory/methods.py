"""``tool_memory``, registered."""

from __future__ import annotations

from dataclasses import replace

from flexmem.memory.baselines.tool_memory.build import ToolMemoryBuild
from flexmem.memory.baselines.tool_memory.config import ToolMemoryConfig
from flexmem.memory.protocol import FidelityCard, MethodInfo
from flexmem.memory.registry import MethodSpec


def _declares(config: ToolMemoryConfig, info: MethodInfo) -> MethodInfo:
    by_model = config.writer == "model"
    return replace(info, writes_with_model=by_model, reads_with_model=by_model)


METHODS = (
    MethodSpec(
        MethodInfo(
            name="tool_memory",
            prompts=("flexa_record_agent", "flexa_record_reader", "tool_memory_flush"),
            family="tool-managed",
            summary="lines of records and a core block; the reader searches, expands and folds with tools",
            card=FidelityCard(
                source="MemGPT, arXiv 2310.08560, and the constants of its code; Letta's server can no longer be had",
                follows="a core block of 2,000 characters, searches in pages of 5, a warning at 0.75 of the budget, "
                "a flush that summarises the oldest and keeps the last 3",
                ours="units, records and budget of FlexA-Mem; units are expanded and folded by id; lines are flushed "
                "beyond 0.75 of the room; search results stand in the memory and its budget, not in the messages",
                differs="a call is a JSON object in the reply, not the provider's function calling, so that every "
                "model can make it; the core block is the reader's own and starts empty for every question",
                tuning="nothing tuned",
            ),
            tools=True,
            rewrites_text=True,
        ),
        ToolMemoryConfig(),
        ToolMemoryBuild,
        _declares,
    ),
)
