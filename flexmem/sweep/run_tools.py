"""What a worker runs the episodes of one group with."""

from __future__ import annotations

from dataclasses import dataclass

from flexmem.ports import ChatModel
from flexmem.sweep.builds import BuildStore, BuildTools
from flexmem.sweep.config import SweepConfig
from flexmem.sweep.rendering_rows import RenderingRows
from flexmem.sweep.sink import RowSink


@dataclass(frozen=True)
class RunTools:
    """Shared by the episodes of a group. ``reader`` is the model that episodes are about: the reader, or the agent."""

    config: SweepConfig
    build_tools: BuildTools
    store: BuildStore
    sink: RowSink
    rows: RenderingRows
    reader: ChatModel | None
