"""Vectors of things that come one by one, and may be given others."""

from __future__ import annotations

import numpy as np

from flexmem.ports import VectorArray
from flexmem.retrieval.dense import GrowingArray


class GrowingVectors:
    """Row i is thing i's vector, float32."""

    def __init__(self, dimension: int) -> None:
        self._rows = GrowingArray(np.float32, (dimension,))

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def array(self) -> VectorArray:
        """Shape (things, dimension), read-only: what is there now, whatever comes later."""
        return self._rows.view

    def append(self, vector: VectorArray) -> None:
        """Add the next thing's vector."""
        self._rows.extend(vector[np.newaxis])

    def replace(self, row: int, vector: VectorArray) -> None:
        """Give a thing another vector; arrays handed out before keep the old one.

        Raises:
            IndexError: there is no such thing.
        """
        if not 0 <= row < len(self):
            raise IndexError(f"there are {len(self)} vectors, none at {row}")
        changed = self.array.copy()
        changed[row] = vector
        self._rows = GrowingArray(np.float32, changed.shape[1:])
        self._rows.extend(changed)
