"""What workers are sent, and the index that they open on it."""

from __future__ import annotations

import asyncio
import pickle
import tracemalloc
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import ray

from flexmem.benchmarks.protocol import Instance
from flexmem.benchmarks.registry import make_benchmark
from flexmem.ports import HistoryIndex, IndexConfig
from flexmem.retrieval.index import IndexSnapshot, LocalIndex
from flexmem.sweep import rendering_rows
from flexmem.sweep.histories import DeferredIndex
from flexmem.sweep.rendering_rows import RenderingRows
from flexmem.sweep.services.index import IndexClient
from flexmem.sweep.shipping import pack_instance
from flexmem.sweep.sink import RowSink

from .harness import LOCOMO, SYNTHETIC, WordEmbedder


def instances(name: str) -> Sequence[Instance]:
    entry = LOCOMO if name == "locomo" else SYNTHETIC
    return list(make_benchmark(name, entry["options"]).instances())


# ---------------------------------------------------------------- instances on their way


@pytest.mark.parametrize("name", ["locomo", "synthetic"])
def test_a_packed_instance_is_the_instance_to_the_letter(name: str) -> None:
    for instance in instances(name):
        packed: Instance = pickle.loads(pickle.dumps(pack_instance(instance)))
        assert tuple(packed.sessions) == instance.sessions
        assert list(packed.units) == list(instance.units)
        assert (packed.instance_id, packed.questions, packed.unit_tokens) == (
            instance.instance_id,
            instance.questions,
            instance.unit_tokens,
        )
        benchmark = make_benchmark(name, (LOCOMO if name == "locomo" else SYNTHETIC)["options"])
        for question in instance.questions:
            assert benchmark.reader_prompt(packed, question, 0) == benchmark.reader_prompt(instance, question, 0)


def test_a_worker_that_receives_a_packed_instance_holds_few_of_its_objects() -> None:
    options = {"conversations": 1, "tokens": 200_000, "questions": 10}
    (instance,) = make_benchmark("synthetic", options).instances()
    held = []
    for sent in (instance, pack_instance(instance)):
        buffers: list[pickle.PickleBuffer] = []
        assert sent.units
        data = pickle.dumps(sent, protocol=5, buffer_callback=buffers.append)
        shared = [memoryview(bytes(buffer)) for buffer in buffers]
        tracemalloc.start()
        received: Instance = pickle.loads(data, buffers=shared)
        assert sum(unit.tokens for unit in received.units) == sum(unit.tokens for unit in instance.units)
        held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    whole, packed = held
    assert packed < whole / 5


# ---------------------------------------------------------------- an index that is fetched when it is written


def index_of(instance: Instance, config: IndexConfig) -> LocalIndex:
    index = LocalIndex(config, WordEmbedder())
    asyncio.run(write(index, instance))
    return index


async def write(index: HistoryIndex, instance: Instance) -> None:
    for unit in instance.units:
        await index.append(unit)


def test_a_deferred_index_is_empty_until_it_is_written_and_then_answers_as_a_local_one() -> None:
    (instance,) = instances("synthetic")
    local = index_of(instance, IndexConfig())
    fetched = []

    async def fetch(config: IndexConfig) -> IndexSnapshot:
        fetched.append(config)
        return local.freeze()

    index = DeferredIndex(IndexConfig(), fetch)
    assert isinstance(index, HistoryIndex)
    question = np.ones(WordEmbedder.dimension, dtype=np.float32) / np.float32(np.sqrt(WordEmbedder.dimension))
    assert (list(index.units), list(index.pieces), list(index.nearest(question))) == ([], [], [])
    assert fetched == []
    asyncio.run(write(index, instance))
    assert fetched == [IndexConfig()]
    assert list(index.units) == list(local.units)
    assert list(index.pieces) == list(local.pieces)
    found, expected = (np.concatenate(list(one.nearest(question))).tolist() for one in (index, local))
    assert found == expected == np.argsort(-local.cosine(question), kind="stable").tolist()


# ---------------------------------------------------------------- pieces in parts


class Parts:
    """Takes what a sink delivers."""

    def __init__(self, failing: Sequence[int] = ()) -> None:
        self.pieces: list[list[tuple[str, int]]] = []
        self._failing = list(failing)

    async def deliver(self, part: str, tables: Mapping[str, pa.Table]) -> int:
        if self._failing and len(self.pieces) == self._failing[0]:
            self._failing.pop(0)
            raise OSError("no space left")
        found = tables["pieces"].to_pylist()
        self.pieces.append([(row["kind"], row["number"]) for row in found])
        return 0


def test_pieces_of_a_large_cut_are_handed_on_in_parts_and_all_again_where_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rendering_rows, "_PIECES_AT_ONCE", 8)
    (instance,) = instances("synthetic")
    index = index_of(instance, IndexConfig())
    kept, parts = RenderingRows(), Parts(failing=[2])

    async def run() -> None:
        def sink() -> RowSink:
            return RowSink(parts.deliver, "x", rows=10**6, seconds=10**6)

        with pytest.raises(OSError, match="no space"):
            await kept.add_pieces(sink(), "cut", instance.units, index.pieces)
        assert len(parts.pieces) == 2
        parts.pieces.clear()
        for _ in range(2):  # the second time there is nothing to do
            last = sink()
            await kept.add_pieces(last, "cut", instance.units, index.pieces)
            await last.deliver()

    asyncio.run(run())
    assert max(map(len, parts.pieces)) <= 8 + len(instance.units)
    assert len(parts.pieces) > 3
    everything = [row for part in parts.pieces for row in part]
    assert everything == [("piece", piece.index) for piece in index.pieces] + [
        ("header", unit.uid) for unit in instance.units
    ]


# ---------------------------------------------------------------- an index actor that dies


class DyingActor:
    """Dies between its answer and the reading of it, as often as it is told to."""

    def __init__(self, deaths: int) -> None:
        self.deaths = deaths
        self.asked = 0
        self.snapshot = self

    async def remote(self, *_: object) -> list[Any]:
        self.asked += 1
        return [self._value(self.asked <= self.deaths)]

    async def _value(self, lost: bool) -> str:
        if lost:
            raise ray.exceptions.OwnerDiedError("00", None, "")
        return "snapshot"


def test_a_snapshot_that_went_with_its_actor_is_asked_for_again() -> None:
    actor = DyingActor(deaths=2)
    assert asyncio.run(IndexClient(actor).snapshot("b", None, IndexConfig())) == "snapshot"
    assert actor.asked == 3


def test_an_actor_that_always_dies_is_given_up() -> None:
    actor = DyingActor(deaths=10**6)
    with pytest.raises(ray.exceptions.ObjectLostError):
        asyncio.run(IndexClient(actor).snapshot("b", None, IndexConfig()))
    assert actor.asked < 10
