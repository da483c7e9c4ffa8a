"""Appending to BM25: the same at 60,000 documents as at 600."""

from __future__ import annotations

import random
from collections.abc import Iterator

from harness import Measurement, seconds

from flexmem.retrieval.bm25 import Bm25

WORDS = 12  # of a document: a turn of a conversation after stop words
VOCABULARY = 20_000


def benchmarks() -> Iterator[Measurement]:
    """``bm25.append.60000_vs_600``."""
    small, large = _filled(600), _filled(60_000)
    documents = iter(list(_documents(40_000, seed=1)))
    # Taken in turns, so that what else the machine does falls on both.
    times: dict[str, list[float]] = {"small": [], "large": []}
    for _ in range(200):
        for name, index in (("small", small), ("large", large)):
            batch = [next(documents) for _ in range(20)]
            times[name].append(
                seconds(lambda index=index, batch=batch: [index.append(d) for d in batch], repeats=1) / 20
            )
    medians = {name: sorted(values)[len(values) // 2] for name, values in times.items()}
    yield Measurement(
        "bm25.append.60000_vs_600",
        medians["large"] * 1e6,
        "us",
        medians["small"] * 1e6,
        medians["large"] / medians["small"],
        "an append at 60,000 documents beside one at 600",
    )


def _filled(documents: int) -> Bm25:
    index = Bm25()
    for words in _documents(documents, seed=0):
        index.append(words)
    return index


def _documents(count: int, seed: int) -> Iterator[list[str]]:
    drawn = random.Random(seed)
    for _ in range(count):
        yield [f"w{int(VOCABULARY * drawn.random() ** 3)}" for _ in range(WORDS)]
