"""What most builds share: units written in order into an index, and a piece table beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from flexmem.history import Piece, Unit
from flexmem.memory.protocol import MethodConfig, WriteOrderError
from flexmem.memory.selection import PieceTable
from flexmem.memory.state import pack_state, unpack_state
from flexmem.ports import HistoryIndex, IndexConfig, Services
from flexmem.retrieval.prefix import Prefix


class IndexedBuild:
    """Base of builds over a `HistoryIndex`. A subclass adds `written` (what it does with each unit) and
    `extra`/`restore_extra` (what it saves beside the units).

    ``units`` are those written so far. They are the index's, which may make a unit anew at each access; what a
    rendering needs of every unit stands in ``table``.
    """

    def __init__(self, family: str, config: MethodConfig, services: Services, index: IndexConfig) -> None:
        self._family = family
        self._config = config
        self.services = services
        opened = services.open_index(index)
        self.index: HistoryIndex = opened
        self._written: Prefix[Unit] = Prefix(lambda: opened.units)
        self.table = PieceTable(lambda piece: opened.pieces[piece].text)
        self.fallbacks: Counter[str] = Counter()

    @property
    def units(self) -> Sequence[Unit]:
        """The units written so far, by uid."""
        return self._written

    @property
    def pieces(self) -> Sequence[Piece]:
        """The pieces written so far, by index."""
        return self.index.pieces

    async def write(self, unit: Unit) -> None:
        """Take the next unit (`MemoryBuild.write`). A write that failed, as the model or the embedder did, can be tried
        again with the same unit.
        """
        await self._take(unit)
        try:
            await self.written(unit)
        except BaseException:
            self._written.length -= 1  # its pieces stay in the index, which only grows
            raise

    def state(self) -> bytes:
        return pack_state(self._family, self._config, self.units, self.extra())

    async def restore(self, state: bytes) -> None:
        """Become the saved build (`MemoryBuild.restore`)."""
        if self.units:
            raise WriteOrderError("only an empty build can be restored")
        units, extra = unpack_state(state, self._family, self._config)
        for unit in units:
            await self._take(unit)
        await self.restore_extra(extra)

    async def written(self, unit: Unit) -> None:
        """What else a unit's writing does; nothing here."""

    def extra(self) -> dict[str, Any]:
        """What the state holds beside the units, JSON-able."""
        return {}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        """Take back what `extra` gave; the units are in place."""

    async def _take(self, unit: Unit) -> None:
        if unit.uid != len(self.units):
            raise WriteOrderError(
                f"unit {unit.label} of {unit.history!r} can't be written now: {len(self.units)} units are written, "
                "and each is written once and in order"
            )
        if unit.uid == len(self.index.units):
            await self.index.append(unit)
            written = self.index.unit_pieces(unit.uid)
            self.table.extend(unit, self.index.pieces[written.start : written.stop])
        elif unit.digest != self.index.units[unit.uid].digest:
            raise WriteOrderError(f"unit {unit.label} of {unit.history!r} is not the one whose writing failed before")
        self._written.length += 1
