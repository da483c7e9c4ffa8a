"""How a history answers queries: `LocalIndex` holds one that grows, `SharedIndex` reads a frozen snapshot that many
processes share. Both are a `flexmem.ports.HistoryIndex` and give results that are equal to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from flexmem.history import Piece, Unit, cut_pieces
from flexmem.ports import Embedder, FloatArray, IndexConfig, IntArray, VectorArray
from flexmem.retrieval.bm25 import Bm25, Bm25Index, FrozenBm25, RankBm25
from flexmem.retrieval.dense import GrowingArray, VectorStore, cosines_at, spread_cosines
from flexmem.retrieval.nearest import LARGE_CORPUS, nearest_chunks
from flexmem.retrieval.ordering import cosine_chunks
from flexmem.retrieval.packed import PackedUnits
from flexmem.retrieval.prefix import Prefix
from flexmem.retrieval.text import content_words

_STATE_VERSION = 1
_FIELDS = ("uid", "block", "start", "content_start", "end", "tokens")
_UID, _TOKENS = _FIELDS.index("uid"), _FIELDS.index("tokens")
_RUN = 1 << 10  # pieces that are made from one look at their columns
_NOT_DENSE = "this index holds no vectors: its configuration says dense=False"


class IndexStateError(RuntimeError):
    """The index can't answer this: it has no vectors, or its snapshot is not written to the end yet."""


@dataclass(frozen=True, eq=False)
class IndexSnapshot:
    """A finished history, frozen: what `SharedIndex` reads in place. It pickles, its arrays out of band, and its texts
    are arrays.

    ``columns`` has shape (pieces, 6): uid, block, start, content_start, end, tokens. ``first_pieces`` (units + 1,) is
    where each unit's pieces begin. ``plain`` and ``stemmed`` are the arrays of `Bm25.arrays`, None with the reference
    back-end. ``vectors`` (different contents, d) and ``rows`` (pieces,) are `VectorStore`'s, None where not dense.
    """

    config: IndexConfig
    units: PackedUnits
    columns: IntArray
    first_pieces: IntArray
    plain: Mapping[str, NDArray[Any]] | None
    stemmed: Mapping[str, NDArray[Any]] | None
    vectors: VectorArray | None
    rows: IntArray | None


class _WordIndex:
    """BM25 over the contents of ``pieces``, a sequence that may grow; takes what is new when it is asked to."""

    def __init__(self, config: IndexConfig, pieces: Sequence[Piece], *, stemmed: bool) -> None:
        self.bm25: Bm25 | RankBm25 = Bm25() if config.bm25 == "flexmem" else RankBm25()
        self._pieces = pieces
        self._stemmed = stemmed

    def catch_up(self) -> Bm25Index:
        for index in range(len(self.bm25), len(self._pieces)):
            self.bm25.append(content_words(self._pieces[index].content, stemmed=self._stemmed))
        return self.bm25


class LocalIndex:
    """The index of one history in this process. It takes units one by one; embedding is the only thing awaited, and a
    unit whose embedding fails leaves the index as it was.

    Args:
        config: how to cut and what to index.
        embedder: needed where ``config.dense``.

    Raises:
        ValueError: dense, but no embedder.
    """

    def __init__(self, config: IndexConfig, embedder: Embedder | None = None) -> None:
        if config.dense and embedder is None:
            raise ValueError("a dense index needs an embedder; give one or set dense=False")
        self.config = config
        self._embedder = embedder if config.dense else None
        self._units: list[Unit] = []
        self._pieces: list[Piece] = []
        self._columns = GrowingArray(np.int64, (len(_FIELDS),))
        self._first_pieces = [0]
        self._vectors: VectorStore | None = None
        self._plain = _WordIndex(config, self._pieces, stemmed=False)
        self._stemmed = _WordIndex(config, self._pieces, stemmed=True)

    @property
    def units(self) -> Sequence[Unit]:
        """The units so far, in order."""
        return self._units

    @property
    def pieces(self) -> Sequence[Piece]:
        """Their pieces, in order."""
        return self._pieces

    @property
    def token_counts(self) -> IntArray:
        """Tokens of each piece, shape (pieces,), read-only, not copied."""
        return self._columns.view[:, _TOKENS]

    @property
    def piece_uids(self) -> IntArray:
        """Unit of each piece, shape (pieces,), ascending, read-only, not copied."""
        return self._columns.view[:, _UID]

    def unit_pieces(self, uid: int) -> range:
        """Indices of a unit's pieces.

        Raises:
            KeyError: the unit is not in the index.
        """
        return _unit_pieces(self._first_pieces, len(self._units), uid)

    async def append(self, unit: Unit) -> None:
        """Cut, count, embed and index the next unit.

        Raises:
            ValueError: ``unit.uid`` is not the next one, or the embedder's vectors are not finite ones, one a text.
        """
        self._check_next(unit)
        pieces = self._cut(unit, len(self._pieces))
        vectors = await self._embed_new(pieces)
        self._check_next(unit)  # another append may have run while the embedder was awaited
        self._add(unit, pieces, vectors)

    def bm25(self, text: str, *, stemmed: bool = False) -> FloatArray:
        """Okapi scores of all pieces (docs/methods.md A.3), shape (pieces,). Stems are indexed from the first stemmed
        query on.
        """
        index = (self._stemmed if stemmed else self._plain).catch_up()
        return index.scores(content_words(text, stemmed=stemmed))

    def cosine(self, vector: VectorArray) -> VectorArray:
        """Cosines of all pieces, shape (pieces,), float32.

        Raises:
            IndexStateError: the index is not dense.
        """
        if not self.config.dense:
            raise IndexStateError(_NOT_DENSE)
        return self._vectors.cosine(vector) if self._vectors is not None else np.empty(0, dtype=np.float32)

    def cosine_at(self, vector: VectorArray, pieces: IntArray) -> VectorArray:
        """`cosine` of some pieces only, shape (len(pieces),), equal to the bit.

        Raises:
            IndexStateError: the index is not dense.
        """
        if not self.config.dense:
            raise IndexStateError(_NOT_DENSE)
        if self._vectors is None:
            return np.empty(0, dtype=np.float32)
        return self._vectors.cosine_at(vector, pieces)

    def nearest(self, vector: VectorArray) -> Iterator[IntArray]:
        """All pieces by (-cosine, index), lazily (`HistoryIndex.nearest`).

        Raises:
            IndexStateError: the index is not dense.
        """
        return cosine_chunks(self.cosine(vector))

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What `restore` needs beside the units themselves: a JSON-able part and arrays (none where not dense)."""
        description = self._describe()
        if self._vectors is None:
            return description, {}
        return description, {"vectors": self._vectors.vectors, "rows": self._vectors.rows}

    def restore(
        self, units: Sequence[Unit], description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> None:
        """Become the index that `state` was taken from: cuts ``units`` again and embeds nothing.

        Raises:
            ValueError: this index is not empty, or the state is of other units, another configuration, embedder or
                version.
        """
        if self._units:
            raise ValueError(f"only an empty index can be restored; this one has {len(self._units)} units")
        expected = self._describe(units)
        differing = sorted(key for key in expected if description.get(key) != expected[key])
        if differing:
            raise ValueError(f"the index state does not fit; it differs in: {', '.join(differing)}")
        pieces: list[Piece] = []
        ends = [0]
        for unit in units:
            pieces += self._cut(unit, len(pieces))
            ends.append(len(pieces))
        vectors = _vectors_by_content(pieces, arrays) if self._embedder else {}
        for unit, (first, past) in zip(units, pairwise(ends), strict=True):
            self._add(unit, pieces[first:past], vectors)

    def freeze(self) -> IndexSnapshot:
        """A snapshot of the history as it is now; later appends don't change it."""
        words: list[Mapping[str, NDArray[Any]] | None] = []
        for index in (self._plain, self._stemmed):
            bm25 = index.catch_up()
            words.append(bm25.arrays() if isinstance(bm25, Bm25) else None)
        return IndexSnapshot(
            config=self.config,
            units=PackedUnits(self._units),
            columns=self._columns.view,
            first_pieces=np.array(self._first_pieces, dtype=np.int64),
            plain=words[0],
            stemmed=words[1],
            vectors=self._vectors.vectors if self._vectors is not None else None,
            rows=self._vectors.rows if self._vectors is not None else None,
        )

    def _check_next(self, unit: Unit) -> None:
        if unit.uid != len(self._units):
            raise ValueError(f"unit {unit.uid} is not the next one: the index holds {len(self._units)} units")

    def _cut(self, unit: Unit, first_index: int) -> list[Piece]:
        return cut_pieces(unit, piece_tokens=self.config.piece_tokens, first_index=first_index)

    async def _embed_new(self, pieces: Sequence[Piece]) -> dict[str, VectorArray]:
        if self._embedder is None:
            return {}
        texts = list(dict.fromkeys(piece.content for piece in pieces))
        new = [text for text in texts if self._vectors is None or text not in self._vectors]
        if not new:
            return {}
        vectors = await self._embedder.embed(new)
        if vectors.shape != (len(new), self._embedder.dimension):
            raise ValueError(
                f"embedder {self._embedder.name} gave vectors of shape {vectors.shape} for {len(new)} texts "
                f"of dimension {self._embedder.dimension}"
            )
        if not np.isfinite(vectors).all():
            raise ValueError(f"embedder {self._embedder.name} gave vectors that are not finite")
        return dict(zip(new, vectors, strict=True))

    def _add(self, unit: Unit, pieces: Sequence[Piece], vectors: Mapping[str, VectorArray]) -> None:
        if self._vectors is None and vectors:
            # Not the embedder's `dimension`: it may have to load its model to know it, and restoring embeds nothing.
            self._vectors = VectorStore(len(next(iter(vectors.values()))))
        if self._vectors is not None:
            for piece in pieces:
                self._vectors.append(piece.content, vectors.get(piece.content))
        self._units.append(unit)
        self._pieces.extend(pieces)
        self._columns.extend([[getattr(piece, field) for field in _FIELDS] for piece in pieces])
        self._first_pieces.append(len(self._pieces))
        self._plain.catch_up()

    def _describe(self, units: Sequence[Unit] | None = None) -> dict[str, Any]:
        return {
            "version": _STATE_VERSION,
            "config": asdict(self.config),
            "embedder": self._embedder.name if self._embedder else None,
            "units": [unit.digest for unit in (self._units if units is None else units)],
        }


class SharedIndex:
    """A read-only index over a snapshot, used in place: no array is copied; units and pieces are made when they are
    looked at.

    It is written like any other, so that a method need not know which it has; `append` only checks that the unit is the
    snapshot's next. Queries are answered once all of its units are written.

    Args:
        snapshot: the history.
        large: from so many vectors on `nearest` asks FAISS for the best; results are the same.
    """

    def __init__(self, snapshot: IndexSnapshot, *, large: int = LARGE_CORPUS) -> None:
        self.config = snapshot.config
        self._snapshot = snapshot
        self._large = large
        frozen = _FrozenPieces(snapshot)
        self._units = Prefix(lambda: snapshot.units)
        self._pieces = Prefix(lambda: frozen)
        self._words = [self._word_index(snapshot.plain, False), self._word_index(snapshot.stemmed, True)]

    @property
    def units(self) -> Sequence[Unit]:
        """The units written so far, in order; each access makes the unit anew, equal to the one that was written."""
        return self._units

    @property
    def pieces(self) -> Sequence[Piece]:
        """Their pieces, in order; each access makes the piece anew."""
        return self._pieces

    @property
    def token_counts(self) -> IntArray:
        """See `LocalIndex.token_counts`."""
        return self._snapshot.columns[: len(self._pieces), _TOKENS]

    @property
    def piece_uids(self) -> IntArray:
        """See `LocalIndex.piece_uids`."""
        return self._snapshot.columns[: len(self._pieces), _UID]

    def unit_pieces(self, uid: int) -> range:
        """See `LocalIndex.unit_pieces`."""
        return _unit_pieces(self._snapshot.first_pieces, len(self._units), uid)

    async def append(self, unit: Unit) -> None:
        """Check the next unit against the snapshot.

        Raises:
            ValueError: ``unit`` is not the snapshot's next one, to the letter.
        """
        position = len(self._units)
        if not self._open:
            raise ValueError(f"unit {unit.uid} is not in the snapshot, whose {position} units are all written")
        own = self._snapshot.units[position]
        if unit != own:
            raise ValueError(f"unit {unit.uid} of {unit.history!r} is not unit {own.uid} of the shared snapshot")
        self._units.length += 1
        self._pieces.length = int(self._snapshot.first_pieces[position + 1])

    def bm25(self, text: str, *, stemmed: bool = False) -> FloatArray:
        """See `LocalIndex.bm25`.

        Raises:
            IndexStateError: not all units of the snapshot are written.
        """
        self._check_written()
        index = self._words[stemmed]
        bm25 = index.catch_up() if isinstance(index, _WordIndex) else index
        return bm25.scores(content_words(text, stemmed=stemmed))

    def cosine(self, vector: VectorArray) -> VectorArray:
        """See `LocalIndex.cosine`.

        Raises:
            IndexStateError: not all units of the snapshot are written, or the index is not dense.
        """
        if not self.config.dense:
            raise IndexStateError(_NOT_DENSE)
        self._check_written()
        if self._snapshot.vectors is None or self._snapshot.rows is None:
            return np.empty(0, dtype=np.float32)
        return spread_cosines(self._snapshot.vectors, self._snapshot.rows, vector)

    def cosine_at(self, vector: VectorArray, pieces: IntArray) -> VectorArray:
        """See `LocalIndex.cosine_at`; raises as `cosine`."""
        if not self.config.dense:
            raise IndexStateError(_NOT_DENSE)
        self._check_written()
        if self._snapshot.vectors is None or self._snapshot.rows is None:
            return np.empty(0, dtype=np.float32)
        return cosines_at(self._snapshot.vectors, self._snapshot.rows, vector, pieces)

    def nearest(self, vector: VectorArray) -> Iterator[IntArray]:
        """See `LocalIndex.nearest`; raises as `cosine`. The best of a large corpus come from FAISS."""
        if not self.config.dense:
            raise IndexStateError(_NOT_DENSE)
        self._check_written()
        if self._snapshot.vectors is None or self._snapshot.rows is None:
            return iter(())
        return nearest_chunks(self._snapshot.vectors, self._snapshot.rows, vector, large=self._large)

    def _word_index(self, arrays: Mapping[str, NDArray[Any]] | None, stemmed: bool) -> FrozenBm25 | _WordIndex:
        return _WordIndex(self.config, self._pieces, stemmed=stemmed) if arrays is None else FrozenBm25(arrays)

    @property
    def _open(self) -> bool:
        return len(self._units) < len(self._snapshot.units)

    def _check_written(self) -> None:
        if self._open:
            raise IndexStateError(
                f"{len(self._units)} of the shared snapshot's {len(self._snapshot.units)} units are written; "
                "a shared index answers for the whole history only"
            )


class _FrozenPieces(Sequence[Piece]):
    """A snapshot's pieces, made from their columns at each access."""

    def __init__(self, snapshot: IndexSnapshot) -> None:
        self._snapshot = snapshot

    def __len__(self) -> int:
        return len(self._snapshot.columns)

    @overload
    def __getitem__(self, index: int) -> Piece: ...
    @overload
    def __getitem__(self, index: slice) -> list[Piece]: ...
    def __getitem__(self, index: int | slice) -> Piece | list[Piece]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return list(self._run(start, stop)) if step == 1 else [self[n] for n in range(start, stop, step)]
        position = range(len(self))[index]
        return next(self._run(position, position + 1))

    def __iter__(self) -> Iterator[Piece]:
        for start in range(0, len(self), _RUN):
            yield from self._run(start, min(start + _RUN, len(self)))

    def _run(self, start: int, stop: int) -> Iterator[Piece]:
        texts = self._snapshot.units.texts
        rows = self._snapshot.columns[start:stop].tolist()
        for position, (uid, block, begin, content_start, end, count) in enumerate(rows, start):
            yield Piece(position, uid, block, begin, content_start, end, texts[uid][begin:end], count)


def _unit_pieces(first_pieces: Sequence[int] | IntArray, units: int, uid: int) -> range:
    if not 0 <= uid < units:
        raise KeyError(f"unit {uid} is not in the index of {units} units")
    return range(int(first_pieces[uid]), int(first_pieces[uid + 1]))


def _vectors_by_content(pieces: Sequence[Piece], arrays: Mapping[str, NDArray[Any]]) -> dict[str, VectorArray]:
    if not pieces:
        return {}
    if "rows" not in arrays or "vectors" not in arrays or len(arrays["rows"]) != len(pieces):
        raise ValueError(f"the index state does not hold a vector for each of the {len(pieces)} pieces")
    return {piece.content: arrays["vectors"][row] for piece, row in zip(pieces, arrays["rows"], strict=True)}
