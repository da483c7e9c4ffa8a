"""One history of 100,000 pieces: what each of eight workers adds to it, and the nearest of its pieces."""

from __future__ import annotations

import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from harness import Measurement

from flexmem.ports import VectorArray
from flexmem.retrieval.dense import top_k_exact
from flexmem.sweep.cluster import import_ray

TOKENS, WARM_TOKENS = 4_000_000, 20_000
WORKERS = 8
PIECES = 100_000
DIMENSION = 384
NEAREST = 256
QUERIES = 25


def benchmarks() -> Iterator[Measurement]:
    """``index.nearest.100000`` and ``index.worker_memory``."""
    yield _nearest()
    yield _worker_memory()


def _nearest() -> Measurement:
    """FAISS beside numpy, on vectors in read-only memory as workers have them; both in turns, one thread."""
    drawn = np.random.default_rng(0)
    vectors, queries = _unit(drawn, PIECES), _unit(drawn, QUERIES)
    vectors.flags.writeable = False
    times: dict[str, list[float]] = {"faiss": [], "numpy": []}
    for number, query in enumerate(queries):
        best = []
        for name in sorted(times, reverse=number % 2 == 0):
            start = time.perf_counter()
            best.append(top_k_exact(vectors, query, NEAREST, backend=name))  # type: ignore[arg-type]
            times[name].append(time.perf_counter() - start)
        (ids, cosines), (other_ids, other_cosines) = best
        assert np.array_equal(ids, other_ids)
        assert np.array_equal(cosines, other_cosines)
    faiss, numpy = (statistics.median(taken) * 1e3 for taken in times.values())
    note = f"the first {NEAREST} of {PIECES:,} vectors by FAISS; baseline: by numpy, same ids and bits"
    return Measurement(f"index.nearest.{PIECES}", faiss, "ms", numpy, faiss / numpy, note)


def _unit(drawn: np.random.Generator, count: int) -> VectorArray:
    rows = drawn.standard_normal((count, DIMENSION), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _worker_memory() -> Measurement:
    """The path of a sweep: index actor, episode workers, results on disk. Memory is what a process shares with none."""
    sys.path.append(str(Path(__file__).parents[2]))
    from tests.sweep.corpus import MB, Corpus, instance_of, plan_of, read_alone

    plan, warm = plan_of(TOKENS), plan_of(WARM_TOKENS)
    ray = import_ray()
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=1_024 * MB,
    )
    try:
        alone = read_alone(plan)
        with tempfile.TemporaryDirectory(prefix="bench") as folder:
            corpus = Corpus(Path(folder) / "run", plan, warm)
            workers = corpus.workers(WORKERS, warm)
            embedded = corpus.texts()
            grown = max(one.most for one in corpus.read(workers, plan)) / MB
            questions = WORKERS * len(instance_of(plan).questions)
            assert corpus.texts() - embedded == alone.contents + questions, "the history must be indexed once"
            shown = corpus.shown()
            assert all(shown[episode] == {digest} for episode, digest in alone.shown.items()), "results must be equal"
            corpus.end()
    finally:
        ray.shutdown()
    assert alone.pieces >= PIECES
    note = (
        f"the most that one of {WORKERS} episode workers grew at any moment (unshared memory) over {alone.pieces:,} "
        "pieces indexed once: history prepared, piece_retrieval and dense_pieces built, read and kept, rows delivered; "
        "baseline: history, index and one build in a process alone; equal renderings"
    )
    return Measurement("index.worker_memory", grown, "MB", alone.grown / MB, grown / (alone.grown / MB), note)
