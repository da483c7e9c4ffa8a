"""A cache of vectors on disk, keyed by embedder and content hash."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from flexmem.ports import VectorArray

_LOOKUP_BATCH = 500


def content_key(embedder: str, text: str) -> bytes:
    """BLAKE2b-128 of an embedder's name and a text."""
    digest = hashlib.blake2b(embedder.encode(), digest_size=16)
    digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    return digest.digest()


class VectorCache:
    """float32 vectors in one SQLite file (WAL), safe for several threads and processes and against kills.

    Two embedders never share an entry: the embedder's name is part of each key.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, timeout=60, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")  # a lost vector is computed again
        self._connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")
        self._connection.commit()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, VectorArray]:
        """The vectors that are there."""
        found: dict[bytes, VectorArray] = {}
        with self._lock:
            for first in range(0, len(keys), _LOOKUP_BATCH):
                batch = keys[first : first + _LOOKUP_BATCH]
                marks = ",".join("?" * len(batch))
                rows = self._connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", batch)
                found.update((key, np.frombuffer(vector, dtype=np.float32)) for key, vector in rows)
        return found

    def put(self, vectors: Mapping[bytes, VectorArray] | Iterable[tuple[bytes, VectorArray]]) -> None:
        """Store vectors; durable against a kill of this process when it returns."""
        rows = vectors.items() if isinstance(vectors, Mapping) else vectors
        with self._lock, self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
                [(key, np.asarray(vector, dtype=np.float32).tobytes()) for key, vector in rows],
            )

    def __len__(self) -> int:
        with self._lock:
            return int(self._connection.execute("SELECT count(*) FROM vectors").fetchone()[0])

    def close(self) -> None:
        self._connection.close()
