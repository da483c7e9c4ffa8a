"""The library: memory methods for chat histories and agents' trajectories.

`Memory` serves a plain chat loop; `find_method` gives a method to build and view by hand (`flexmem.memory.protocol`).
"""

from flexmem.memory.context import HistoryChangedError, Memory
from flexmem.memory.protocol import (
    Budget,
    BudgetError,
    MemoryBuild,
    MemoryView,
    Method,
    MethodError,
    Query,
    RenderedBlock,
    Rendering,
    Resolution,
    StateError,
    WriteOrderError,
)
from flexmem.memory.registry import MethodSpec, UnknownMethodError, find_method, methods

__all__ = [
    "Budget",
    "BudgetError",
    "HistoryChangedError",
    "Memory",
    "MemoryBuild",
    "MemoryView",
    "Method",
    "MethodError",
    "MethodSpec",
    "Query",
    "RenderedBlock",
    "Rendering",
    "Resolution",
    "StateError",
    "UnknownMethodError",
    "WriteOrderError",
    "find_method",
    "methods",
]
