"""`LocalIndex` and `SharedIndex`: order of writing, equality of live, restored and shared, and clear refusals."""

from __future__ import annotations

import asyncio
import hashlib
import json
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.history import Session, Step, Turn, Unit, cut_pieces, pack_steps, split_sessions
from flexmem.ports import HistoryIndex, IndexConfig, VectorArray
from flexmem.retrieval.index import IndexSnapshot, IndexStateError, LocalIndex, SharedIndex

QUERY = "Where did Ann put the red kettle, and the kettle's lid?"


class HashEmbedder:
    """Unit vectors drawn from a text's hash; counts the texts that it is given."""

    name = "hash"
    dimension = 16

    def __init__(self) -> None:
        self.seen: list[str] = []

    def vector(self, text: str) -> VectorArray:
        seed = int.from_bytes(hashlib.blake2b(text.encode()).digest()[:8])
        row = np.random.default_rng(seed).standard_normal(self.dimension).astype(np.float32)
        unit: VectorArray = row / np.linalg.norm(row)
        return unit

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        self.seen += texts
        await asyncio.sleep(0)
        return np.stack([self.vector(text) for text in texts])


def conversation(lines: Sequence[str], limit: int = 40) -> list[Unit]:
    turns = tuple(
        Turn(f"D1:{number}", "user" if number % 2 == 0 else "assistant", line, speaker="Ann" if number % 2 else "Bo")
        for number, line in enumerate(lines)
    )
    return split_sessions([Session("1", turns, "2023/05/20")], history="test", limit=limit)


LINES = [
    "The red kettle stands on the stove.",
    "Hello!",
    "Ann put the lid of the kettle into the drawer.\nAnd the cups?\nOn the shelf.",
    "The cups are blue. " * 12,
    "Hello!",
    "Hello!",
]
UNITS = conversation(LINES)


def write(index: HistoryIndex, units: Sequence[Unit]) -> None:
    async def run() -> None:
        for unit in units:
            await index.append(unit)

    asyncio.run(run())


def local(units: Sequence[Unit] = UNITS, config: IndexConfig | None = None) -> LocalIndex:
    config = config or IndexConfig(piece_tokens=16)
    index = LocalIndex(config, HashEmbedder() if config.dense else None)
    write(index, units)
    return index


def shared(snapshot: IndexSnapshot, units: Sequence[Unit] = UNITS, *, large: int = 0) -> SharedIndex:
    """With ``large`` 0, FAISS is asked for the nearest however few there are."""
    index = SharedIndex(snapshot, large=large)
    write(index, units)
    return index


def nearest(index: HistoryIndex, query: str = QUERY) -> list[int]:
    return [piece for stretch in index.nearest(HashEmbedder().vector(query)) for piece in stretch.tolist()]


def assert_equal(one: LocalIndex | SharedIndex, other: LocalIndex | SharedIndex, query: str = QUERY) -> None:
    assert list(one.units) == list(other.units)
    assert list(one.pieces) == list(other.pieces)
    assert [one.unit_pieces(unit.uid) for unit in one.units] == [other.unit_pieces(unit.uid) for unit in one.units]
    assert one.token_counts.tolist() == other.token_counts.tolist()
    assert one.piece_uids.tolist() == other.piece_uids.tolist()
    for stemmed in (False, True):
        assert one.bm25(query, stemmed=stemmed).tolist() == other.bm25(query, stemmed=stemmed).tolist()
    if one.config.dense:
        vector = HashEmbedder().vector(query)
        assert one.cosine(vector).tolist() == other.cosine(vector).tolist()
        assert nearest(one, query) == nearest(other, query) == np.argsort(-one.cosine(vector), kind="stable").tolist()


# ---------------------------------------------------------------- LocalIndex


def test_pieces_are_cut_counted_and_indexed_row_by_row() -> None:
    index = local()
    expected = []
    for unit in UNITS:
        expected += cut_pieces(unit, piece_tokens=16, first_index=len(expected))
    assert isinstance(index, HistoryIndex)
    assert list(index.pieces) == expected
    assert [i for unit in UNITS for i in index.unit_pieces(unit.uid)] == list(range(len(expected)))
    assert index.token_counts.tolist() == [piece.tokens for piece in expected]
    assert index.piece_uids.tolist() == [piece.uid for piece in expected]
    assert len(index.bm25(QUERY)) == len(index.cosine(HashEmbedder().vector(QUERY))) == len(expected)


def test_the_best_match_is_the_piece_that_holds_the_words() -> None:
    index = local()
    best = index.pieces[int(index.bm25("the lid of the kettle").argmax())]
    assert "lid of the kettle" in best.text


def test_stems_match_other_forms_of_a_word() -> None:
    units = conversation([*LINES, "More kettles were standing around."])
    index = local(units[:-1])
    assert not index.bm25("kettles standing").any()
    assert index.bm25("kettles standing", stemmed=True).any()
    write(index, units[-1:])
    assert index.bm25("kettles standing", stemmed=True)[-1] > 0  # the stemmed index follows later appends


def test_the_words_that_we_add_are_not_indexed_but_the_speaker_is() -> None:
    units = pack_steps([Step(number, f"look {number}", "nothing") for number in range(1, 6)], history="test", limit=20)
    index = local(units)
    assert not index.bm25("step action output thought").any()
    assert local().bm25("Ann").any()


def test_equal_contents_are_embedded_once_and_have_equal_cosines() -> None:
    embedder = HashEmbedder()
    index = LocalIndex(IndexConfig(piece_tokens=16), embedder)
    write(index, UNITS)
    contents = [piece.content for piece in index.pieces]
    assert len(contents) > len(set(contents))
    assert sorted(embedder.seen) == sorted(set(contents))
    cosines = index.cosine(embedder.vector(QUERY)).tolist()
    assert len({content: cosines[i] for i, content in enumerate(contents)}) == len(set(cosines))
    assert cosines == pytest.approx([float(embedder.vector(text) @ embedder.vector(QUERY)) for text in contents])


def test_units_come_in_order_and_once() -> None:
    index = local(UNITS[:1])
    with pytest.raises(ValueError, match="unit 0 is not the next one: the index holds 1 units"):
        write(index, UNITS[:1])
    with pytest.raises(ValueError, match="unit 2 is not the next one"):
        write(index, UNITS[2:])
    with pytest.raises(KeyError):
        index.unit_pieces(1)


def test_of_two_appends_of_one_unit_at_the_same_time_one_is_refused() -> None:
    index = LocalIndex(IndexConfig(), HashEmbedder())

    async def run() -> list[BaseException | None]:
        return await asyncio.gather(index.append(UNITS[0]), index.append(UNITS[0]), return_exceptions=True)

    assert [type(outcome) for outcome in asyncio.run(run())] == [type(None), ValueError]
    assert len(index.units) == 1
    assert len(index.pieces) == len(index.token_counts) == len(index.bm25(QUERY))


class BadEmbedder(HashEmbedder):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        if isinstance(self.answer, Exception):
            raise self.answer
        rows: VectorArray = self.answer(await super().embed(texts))
        return rows


@pytest.mark.parametrize("answer", [RuntimeError("down"), lambda rows: rows[:-1], lambda rows: rows * np.nan])
def test_a_unit_whose_embedding_fails_leaves_no_trace(answer: Any) -> None:
    embedder = BadEmbedder(answer)
    index = LocalIndex(IndexConfig(), embedder)
    with pytest.raises((RuntimeError, ValueError)):
        write(index, UNITS[:1])
    assert not index.units
    assert not index.pieces
    embedder.answer = lambda rows: rows
    write(index, UNITS)
    assert_equal(index, local(config=IndexConfig()))


def test_an_empty_index_answers_with_nothing() -> None:
    index = local([])
    assert index.bm25(QUERY).shape == index.bm25(QUERY, stemmed=True).shape == (0,)
    assert index.cosine(HashEmbedder().vector(QUERY)).shape == (0,)
    assert nearest(index) == []
    assert_equal(shared(index.freeze(), []), index)


def test_without_vectors_there_is_no_cosine() -> None:
    with pytest.raises(ValueError, match="needs an embedder"):
        LocalIndex(IndexConfig())
    index = local(config=IndexConfig(dense=False))
    assert index.bm25(QUERY).any()
    for one in (index, shared(index.freeze())):
        for ask in (one.cosine, one.nearest):
            with pytest.raises(IndexStateError, match="dense=False"):
                ask(np.zeros(16, dtype=np.float32))


def test_the_reference_back_end_gives_the_same_scores() -> None:
    ours, theirs = (local(config=IndexConfig(piece_tokens=16, bm25=name)) for name in ("flexmem", "rank_bm25"))
    np.testing.assert_allclose(ours.bm25("kettle lid"), theirs.bm25("kettle lid"), rtol=1e-12)


# ---------------------------------------------------------------- state


@pytest.mark.parametrize("dense", [True, False])
def test_a_restored_index_equals_the_saved_one_and_embeds_nothing(dense: bool) -> None:
    config = IndexConfig(piece_tokens=16, dense=dense)
    saved = local(UNITS[:-1], config)
    description, arrays = saved.state()
    embedder = HashEmbedder()
    restored = LocalIndex(config, embedder)
    restored.restore(UNITS[:-1], json.loads(json.dumps(description)), arrays)
    assert embedder.seen == []
    assert_equal(restored, saved)
    for index in (restored, saved):
        write(index, UNITS[-1:])
    assert_equal(restored, saved)


def test_a_state_that_does_not_fit_is_refused() -> None:
    description, arrays = local().state()

    def restore(index: LocalIndex, units: Sequence[Unit], vectors: Any) -> None:
        index.restore(units, description, vectors)

    with pytest.raises(ValueError, match="differs in: units"):
        restore(local([]), UNITS[:-1], arrays)
    with pytest.raises(ValueError, match="differs in: config"):
        restore(local([], IndexConfig()), UNITS, arrays)
    with pytest.raises(ValueError, match="only an empty index"):
        restore(local(), UNITS, arrays)
    half = local([])
    with pytest.raises(ValueError, match="vector for each of the"):
        restore(half, UNITS, {**arrays, "rows": arrays["rows"][:-1]})
    assert not half.units


# ---------------------------------------------------------------- SharedIndex


def through_pickle(snapshot: IndexSnapshot) -> IndexSnapshot:
    """As a shared object store hands it over: arrays out of band and read-only."""
    buffers: list[pickle.PickleBuffer] = []
    packed = pickle.dumps(snapshot, protocol=5, buffer_callback=buffers.append)
    copy: IndexSnapshot = pickle.loads(packed, buffers=[memoryview(bytes(buffer)) for buffer in buffers])
    return copy


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("bm25", ["flexmem", "rank_bm25"])
def test_shared_equals_local(dense: bool, bm25: Any) -> None:
    live = local(config=IndexConfig(piece_tokens=16, dense=dense, bm25=bm25))
    index = shared(through_pickle(live.freeze()))
    assert isinstance(index, HistoryIndex)
    assert_equal(index, live)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(LINES) | st.text(max_size=60), max_size=12), st.text(max_size=40))
def test_shared_equals_local_on_any_text(lines: list[str], query: str) -> None:
    units = conversation([line.encode("utf-8", "replace").decode() for line in lines])
    live = local(units)
    assert_equal(shared(live.freeze(), units), live, query.encode("utf-8", "replace").decode())


def test_a_snapshot_does_not_follow_later_appends() -> None:
    live = local(UNITS[:-1])
    snapshot = live.freeze()
    before = local(UNITS[:-1])
    write(live, UNITS[-1:])
    assert_equal(shared(snapshot, UNITS[:-1]), before)


def test_a_shared_index_answers_only_when_all_is_written() -> None:
    index = SharedIndex(local().freeze())
    vector = HashEmbedder().vector(QUERY)
    for position, unit in enumerate(UNITS):
        assert len(index.units) == position
        assert len(index.pieces) == len(index.token_counts) == len(index.piece_uids)
        with pytest.raises(IndexStateError, match=f"{position} of the shared snapshot's {len(UNITS)} units"):
            index.bm25(QUERY)
        for ask in (index.cosine, index.nearest):
            with pytest.raises(IndexStateError, match="whole history"):
                ask(vector)
        write(index, [unit])
    assert index.pieces[-1] == index.pieces[len(index.pieces) - 1]
    assert index.pieces[:2] == list(index.pieces)[:2]
    assert index.pieces[-3::2] == list(index.pieces)[-3::2]
    assert index.units[1:] == UNITS[1:]
    with pytest.raises(IndexError):
        index.pieces[len(index.pieces)]
    with pytest.raises(KeyError):
        index.unit_pieces(len(UNITS))


def test_a_shared_index_takes_only_the_units_it_was_made_from() -> None:
    snapshot = local().freeze()
    with pytest.raises(ValueError, match="unit 1 of 'test' is not unit 0"):
        write(SharedIndex(snapshot), UNITS[1:])
    changed = conversation(["The red kettle stands on the floor.", *LINES[1:]])
    with pytest.raises(ValueError, match="unit 0 of 'test' is not unit 0 of the shared snapshot"):
        write(SharedIndex(snapshot), changed)
    with pytest.raises(ValueError, match="are all written"):
        write(shared(snapshot), [UNITS[0]])


def test_a_shared_index_uses_the_arrays_in_place() -> None:
    snapshot = through_pickle(local().freeze())
    index = shared(snapshot)
    assert np.shares_memory(index.token_counts, snapshot.columns)
    assert snapshot.vectors is not None
    assert not snapshot.vectors.flags.writeable
    assert index.cosine(HashEmbedder().vector(QUERY)).flags.owndata
