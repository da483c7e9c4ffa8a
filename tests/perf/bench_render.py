"""A rendering against what a first version would do: rank-bm25 rebuilt, all sorted, every candidate encoded again."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Iterator, Sequence

import numpy as np
from harness import Measurement, seconds
from rank_bm25 import BM25Okapi

from flexmem import tokens
from flexmem.benchmarks.registry import make_benchmark
from flexmem.history import Session, Unit, split_sessions
from flexmem.memory.baselines.ranked_pieces import RankedPiecesBuild
from flexmem.memory.protocol import Budget, MemoryBuild, MemoryView, Query
from flexmem.memory.registry import find_method
from flexmem.memory.selection import GAP
from flexmem.ports import Services, VectorArray
from flexmem.retrieval.index import LocalIndex
from flexmem.retrieval.text import content_words

BUDGET = 4_000
QUESTIONS = 40


class RandomEmbedder:
    """Unit vectors drawn from the text itself: the time of embedding is not what is measured here."""

    name = "random"
    dimension = 384

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        rows = [np.random.default_rng(list(text.encode("utf-8", "replace")[:64])).normal(size=384) for text in texts]
        matrix = np.array(rows, dtype=np.float32).reshape(len(texts), 384)
        return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def benchmarks() -> Iterator[Measurement]:
    """``render.piece.600`` and ``render.piece.5884``, and how the time grows between them."""
    sessions, questions, source = _history()
    times = {}
    for pieces in (600, 5_884):
        build = asyncio.run(_build(sessions, pieces))
        vectors = asyncio.run(RandomEmbedder().embed(questions))
        queries = [Query.question(text, vector) for text, vector in zip(questions, vectors, strict=True)]
        view = build.view()

        naive = Naive(build)
        assert [naive.render(query) for query in queries[:10]] == asyncio.run(_shown(view, queries[:10]))
        times[pieces] = asyncio.run(_timed(view, queries))
        slow = seconds(lambda naive=naive, queries=queries: [naive.render(q) for q in queries[:3]], repeats=5) / 3
        note = f"{len(build.pieces):,} pieces of {source}, {BUDGET:,} tokens, byte-identical"
        yield Measurement(f"render.piece.{pieces}", times[pieces] * 1e3, "ms", slow * 1e3, slow / times[pieces], note)
    growth = times[5_884] / times[600]
    yield Measurement(
        "render.piece.5884_vs_600",
        times[5_884] * 1e3,
        "ms",
        times[600] * 1e3,
        growth,
        f"{5_884 / 600:.1f} x the pieces",
    )
    fused = asyncio.run(_timed(asyncio.run(_again("fused_pieces", build)).view(), queries))
    note = f"5,884 pieces of {source}; the baseline is piece mode without a timeline"
    yield Measurement("render.fused.5884", fused * 1e3, "ms", times[5_884] * 1e3, fused / times[5_884], note)


async def _shown(view: MemoryView, queries: Sequence[Query]) -> list[str]:
    return [(await view.render(query, Budget(BUDGET))).text for query in queries]


async def _timed(view: MemoryView, queries: Sequence[Query]) -> float:
    """Median seconds of a rendering. Inside one event loop, as an agent's or a sweep's calls are: starting a loop is no
    part of a rendering.
    """
    times = []
    for _ in range(15):
        start = time.perf_counter()
        await _shown(view, queries)
        times.append((time.perf_counter() - start) / len(queries))
    return statistics.median(times)


class Naive:
    """The same rendering, written for plainness: rank-bm25 takes no new pieces, so it is built from the texts for each
    call.

    It is given the pieces' vectors.
    """

    def __init__(self, build: RankedPiecesBuild) -> None:
        self._pieces = list(build.pieces)
        self._headers = {unit.uid: unit.header for unit in build.units}
        self._vectors = asyncio.run(RandomEmbedder().embed([piece.content for piece in self._pieces]))

    def render(self, query: Query) -> str:
        scores = BM25Okapi([content_words(piece.content) for piece in self._pieces]).get_scores(
            content_words(query.text)
        )
        cosines = np.vecdot(self._vectors, query.vector)
        order = sorted(range(len(self._pieces)), key=lambda i: (-scores[i], -cosines[i], i))
        chosen: dict[int, list[int]] = {}
        room, misses = BUDGET, 0
        for piece in order:
            if room < 20 or misses >= 200:
                break
            uid = self._pieces[piece].uid
            before = self._show(uid, chosen.get(uid, []))
            after = self._show(uid, sorted([*chosen.get(uid, []), piece]))
            cost = tokens.count(after) - tokens.count(before)
            if cost <= room:
                chosen.setdefault(uid, []).append(piece)
                chosen[uid].sort()
                room -= cost
                misses = 0
            else:
                misses += 1
        return "".join(self._show(uid, group) for uid, group in sorted(chosen.items()))

    def _show(self, uid: int, group: list[int]) -> str:
        if not group:
            return ""
        parts = [self._headers[uid]]
        for position, piece in enumerate(group):
            if position and piece != group[position - 1] + 1:
                parts += ["" if parts[-1].endswith("\n") else "\n", GAP]
            parts.append(self._pieces[piece].text)
        parts.append("" if parts[-1].endswith("\n") else "\n")
        return "".join(parts)


async def _again(method: str, build: RankedPiecesBuild) -> MemoryBuild:
    """Another method's build of the same units."""
    embedder = RandomEmbedder()
    other = find_method(method).configured().build(Services(embedder, lambda c: LocalIndex(c, embedder)))
    for unit in build.units:
        await other.write(unit)
    return other


async def _build(sessions: Sequence[Session], pieces: int) -> RankedPiecesBuild:
    """A build of exactly that many pieces: units up to the number, the last one cut short."""
    embedder = RandomEmbedder()
    build = find_method("piece_retrieval").configured().build(Services(embedder, lambda c: LocalIndex(c, embedder)))
    assert isinstance(build, RankedPiecesBuild)
    trial = LocalIndex(build.index.config, embedder)
    units = split_sessions(sessions, history="bench")
    for unit in units:
        await trial.append(unit)
        if len(trial.pieces) > pieces:
            last = _cut(unit, pieces - len(build.pieces))
            await build.write(last)
            break
        await build.write(unit)
    assert len(build.pieces) == pieces, (len(build.pieces), pieces)
    return build


def _cut(unit: Unit, blocks: int) -> Unit:
    """A unit's first blocks; here a block is a piece."""
    kept = unit.blocks[:blocks]
    text = unit.text[: kept[-1].end] if kept else unit.header
    return Unit(
        uid=unit.uid,
        history=unit.history,
        kind=unit.kind,
        header=unit.header,
        text=text,
        tokens=tokens.count(text),
        blocks=kept,
        span=unit.span,
        time=unit.time,
        session=unit.session,
    )


def _history() -> tuple[list[Session], list[str], str]:
    """LoCoMo's conversations joined, where its file is at hand; else a synthetic conversation of that size."""
    if os.environ.get("FLEXMEM_DATA"):
        instances = make_benchmark("locomo").instances()
        sessions = [session for instance in instances for session in instance.sessions] * 2
        return sessions, [question.text for question in instances[0].questions[:QUESTIONS]], "LoCoMo"
    options = {"conversations": 1, "tokens": 400_000, "questions": QUESTIONS}
    instance = make_benchmark("synthetic", options).instances()[0]
    return list(instance.sessions), [question.text for question in instance.questions], "a synthetic history"
