"""Replies that outlive a failed write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class KeptReplies:
    """What a model said of the unit that is being written. Where the writing fails later, trying again neither asks for
    the same twice nor counts a fallback twice.
    """

    def __init__(self) -> None:
        self._uid = -1
        self._replies: dict[str, Any] = {}

    async def get(self, uid: int, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        """What ``ask`` gave for this unit under the name ``what``; asked for where it is not there. Another unit's
        replies are forgotten.
        """
        if uid != self._uid:
            self._uid, self._replies = uid, {}
        if what not in self._replies:
            self._replies[what] = await ask()
        reply: T = self._replies[what]
        return reply
