"""The last lines that a sandbox wrote, kept while it runs: whatever removes itself can't be asked afterwards."""

from __future__ import annotations

import threading
from collections import deque

_CHUNKS = 64
_BYTES = 8_192  # of one chunk, and of what is shown
_LINES = 30


class LogTail:
    """Bounded whatever is written. One thread writes, any may read."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque(maxlen=_CHUNKS)
        self._lock = threading.Lock()

    def write(self, chunk: bytes) -> None:
        """Take what came."""
        with self._lock:
            self._chunks.append(chunk[-_BYTES:])

    def text(self) -> str:
        """The last lines, at most 30 and 8 kB."""
        with self._lock:
            kept = b"".join(self._chunks)
        return "\n".join(kept[-_BYTES:].decode("utf-8", errors="replace").splitlines()[-_LINES:])
