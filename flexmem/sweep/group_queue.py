"""Groups still to be handed out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from flexmem.sweep.plan import Group

_MOST_AGAIN = 16


class GroupQueue:
    """Fresh groups, one at a time from the plan and never more, and those that must run again.

    The latter come last, so that what failed has time to recover, but before fresh ones when they grow many: otherwise
    a service that is down would bring the whole plan into memory.
    """

    def __init__(self, fresh: Iterator[Group], number: int) -> None:
        """``number``: how many fresh ones there are, for `__len__`."""
        self._fresh = fresh
        self._left = number
        self._next = next(fresh, None)
        self._again: deque[Group] = deque()

    def __bool__(self) -> bool:
        return self._next is not None or bool(self._again)

    def __len__(self) -> int:
        return self._left + len(self._again)

    @property
    def again_is_next(self) -> bool:
        """Whether `pop` gives a group that has run before."""
        return self._next is None or len(self._again) >= _MOST_AGAIN

    def pop(self) -> Group:
        """The next group.

        Raises:
            IndexError: there is none.
        """
        group = self._next
        if group is None or self.again_is_next:
            return self._again.popleft()
        self._next = next(self._fresh, None)
        self._left -= 1
        return group

    def push_again(self, group: Group) -> None:
        """Take back what is left of a group."""
        self._again.append(group)
