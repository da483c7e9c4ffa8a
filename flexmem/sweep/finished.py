"""Which episodes have a row, in memory that a sweep of millions can afford."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from flexmem.sweep.results import read_columns

_BYTES = 32  # of a key, as `flexmem.sweep.fingerprint.digest` makes them


class FinishedKeys:
    """A set of episodes' fingerprints, 32 bytes each: a set of Python's takes four times as many."""

    def __init__(self, columns: Iterable[pa.ChunkedArray] = ()) -> None:
        """``columns`` of keys, where one may come twice."""
        keys = np.concatenate([np.zeros(0, f"S{_BYTES}"), *map(_keys, columns)])
        keys.sort()
        again = np.append(False, keys[1:] == keys[:-1])[: len(keys)]
        self._keys = keys[~again] if again.any() else keys

    @classmethod
    def read(cls, out: Path) -> FinishedKeys:
        """The finished episodes of a run folder.

        Raises:
            TornPartError: a part can't be read; the message names it.
        """
        return cls(table.column("episode") for table in read_columns(out, "episodes", ["episode"]))

    def __contains__(self, key: object) -> bool:
        wanted = str(key).encode()
        place = self._keys.searchsorted(wanted)
        return bool(place < len(self._keys) and self._keys[place] == wanted)

    def __iter__(self) -> Iterator[str]:
        return (bytes(key).decode() for key in self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """Bytes that the keys take."""
        return int(self._keys.nbytes)


def _keys(column: pa.ChunkedArray) -> NDArray[np.bytes_]:
    """A column's keys; what has another length is no key that a plan has."""
    fitting = column.filter(pc.equal(pc.binary_length(column), _BYTES))
    fixed = fitting.cast(pa.binary()).cast(pa.binary(_BYTES)).combine_chunks()
    return np.frombuffer(fixed.buffers()[1] or b"", f"S{_BYTES}", len(fixed), fixed.offset * _BYTES)
