"""Coroutines for callers without an event loop, and for notebooks, whose own loop is busy."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """An event loop in a thread of its own, started at first use; it ends with the process."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result, or what it raises."""
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="flexmem", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
