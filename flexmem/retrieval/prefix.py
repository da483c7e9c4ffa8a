"""The beginning of a sequence, as a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

T = TypeVar("T", covariant=True)


class Prefix(Sequence[T]):
    """The first ``length`` items of what ``whole`` gives, looked up there: nothing is copied, and it grows with its
    ``length``.
    """

    def __init__(self, whole: Callable[[], Sequence[T]]) -> None:
        self._whole = whole
        self.length = 0

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self.length)
            if step == 1:
                return list(self._whole()[start : max(start, stop)])
            return [self[position] for position in range(start, stop, step)]
        return self._whole()[range(self.length)[index]]

    def __iter__(self) -> Iterator[T]:
        return islice(self._whole(), self.length)
