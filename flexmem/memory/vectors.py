"""Vectors of things that come one by one: a matrix that grows without being copied at every step."""

from __future__ import annotations

import numpy as np

from flexmem.ports import VectorArray

_FIRST = 16


class GrowingVectors:
    """Row i is thing i's vector, float32."""

    def __init__(self, dimension: int) -> None:
        self._rows = np.zeros((0, dimension), dtype=np.float32)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def array(self) -> VectorArray:
        """Shape (things, dimension): a view of what is there now, to be read only."""
        return self._rows[: self._used]

    def append(self, vector: VectorArray) -> None:
        """Add the next thing's vector."""
        if self._used == len(self._rows):
            grown = np.zeros((max(_FIRST, 2 * self._used), self._rows.shape[1]), dtype=np.float32)
            grown[: self._used] = self.array
            self._rows = grown
        self._rows[self._used] = vector
        self._used += 1

    def replace(self, row: int, vector: VectorArray) -> None:
        """Give a thing another vector; arrays handed out before keep the old one.

        Raises:
            IndexError: there is no such thing.
        """
        if not 0 <= row < self._used:
            raise IndexError(f"there are {self._used} vectors, none at {row}")
        self._rows = self._rows.copy()
        self._rows[row] = vector
