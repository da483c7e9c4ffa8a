"""Large histories on a real Ray: indexed once, read in place, found again after a kill, and never a worker's burden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ..sweep.corpus import MB, Alone, Corpus, instance_of, plan_of, read_alone
from ..sweep.ray_harness import own_ray

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_200)]

WORKERS = 8
SMALL, LARGE, HUGE = 20_000, 4_000_000, 10_000_000  # tokens
WORKER_MB = 100
"""What a worker may add over a corpus of 100,000 pieces, at any moment."""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with own_ray(object_store_mb=1_600):
        yield


@pytest.fixture(scope="module")
def alone() -> Alone:
    return read_alone(plan_of(LARGE))


def test_eight_workers_read_one_corpus_that_is_indexed_once_and_again_after_its_actor_is_killed(
    tmp_path: Path, alone: Alone
) -> None:
    plan, warm = plan_of(LARGE), plan_of(SMALL)
    assert sum(len(session.turns) for session in instance_of(plan).sessions) >= 100_000
    asked = WORKERS * len(instance_of(plan).questions)
    corpus = Corpus(tmp_path / "run", plan, warm)
    try:
        workers = corpus.workers(WORKERS, warm)
        embedded = corpus.texts()
        grown = corpus.read(workers, plan)
        assert corpus.texts() - embedded == alone.contents + asked
        assert max(one.most for one in grown) < WORKER_MB * MB
        expected = {key: {digest} for key, digest in alone.shown.items()}
        shown = corpus.shown()
        assert {key: shown[key] for key in expected} == expected

        process = corpus.index_process()
        process.kill()
        process.wait(60)
        others = corpus.workers(2, warm)
        embedded = corpus.texts()
        corpus.read([*others, workers[0]], plan)
        # Indexed again for those who came after the kill; who had it before goes on with what it has.
        assert corpus.texts() - embedded == alone.contents + 2 * len(instance_of(plan).questions)
        assert corpus.index_process().pid != process.pid
        shown = corpus.shown()
        assert {key: shown[key] for key in expected} == expected
    finally:
        corpus.end()
