"""Sequences whose items stand as bytes in one array and are made anew when they are looked at (ours).

A history of millions of tokens is hundreds of thousands of Python objects. Packed, processes share its bytes and hold
none of them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from flexmem.history import Block, Unit
from flexmem.ports import IntArray

T = TypeVar("T", covariant=True)

_RECENT = 32  # items that are kept: neighbours are mostly asked for together, and some again and again


class Packed(Sequence[T]):
    """Read-only items, made by ``make`` from a row of bytes each. It pickles, its arrays out of band.

    Args:
        rows: the items' bytes.
        make: an item from its bytes; a function of a module, since it is pickled by name.
    """

    def __init__(self, rows: Sequence[bytes], make: Callable[[bytes], T]) -> None:
        ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        self._use(np.frombuffer(b"".join(rows), dtype=np.uint8), ends, make)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self._item(position) for position in range(*index.indices(len(self)))]
        return self._item(range(len(self))[index])

    def __reduce__(self) -> tuple[Any, ...]:
        return _packed, (self._data, self._ends, self._make)

    def _use(self, data: NDArray[np.uint8], ends: IntArray, make: Callable[[bytes], T]) -> None:
        self._data, self._ends, self._make = data, ends, make
        # Over a function that doesn't know this object: a cycle would keep the shared array until it is collected.
        self._item: Callable[[int], T] = lru_cache(_RECENT)(partial(_make_item, data, ends, make))


def _packed(data: NDArray[np.uint8], ends: IntArray, make: Callable[[bytes], T]) -> Packed[T]:
    items: Packed[T] = Packed.__new__(Packed)
    items._use(data, ends, make)
    return items


def _make_item(data: NDArray[np.uint8], ends: IntArray, make: Callable[[bytes], T], index: int) -> T:
    return make(data[ends[index] : ends[index + 1]].tobytes())


class PackedUnits(Sequence[Unit]):
    """Units, packed. ``texts`` holds their texts alone, for whoever needs no more."""

    def __init__(self, units: Iterable[Unit]) -> None:
        texts, forms = [], []
        for unit in units:
            texts.append(unit.text.encode("utf-8", "surrogatepass"))
            blocks = [(block.kind, block.source, block.start, block.content_start, block.end) for block in unit.blocks]
            before = (unit.uid, unit.history, unit.kind, unit.header)
            after = (unit.tokens, blocks, unit.span, unit.time, unit.session)
            forms.append(pickle.dumps((before, after), protocol=5))
        self.texts: Packed[str] = Packed(texts, _text)
        self._forms: Packed[Unit] = Packed(forms, _form)

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, index: int) -> Unit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Unit]: ...
    def __getitem__(self, index: int | slice) -> Unit | list[Unit]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        return replace(self._forms[index], text=self.texts[index])


def _text(row: bytes) -> str:
    return row.decode("utf-8", "surrogatepass")


def _form(row: bytes) -> Unit:
    """A unit without its text."""
    (uid, history, kind, header), (count, blocks, span, time, session) = pickle.loads(row)
    return Unit(uid, history, kind, header, "", count, tuple(Block(*block) for block in blocks), span, time, session)
