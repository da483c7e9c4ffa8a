"""Large histories on a real Ray: indexed once, read in place, found again after a kill, and never a worker's burden."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import ray

from ..sweep.corpus import MB, Alone, Corpus, Grown, instance_of, plan_of, read_alone
from ..sweep.ray_harness import own_ray

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_200)]

WORKERS = 8
SMALL, LARGE, HUGE = 20_000, 4_000_000, 10_000_000  # tokens
WORKER_MB = 100
"""What a worker may add over a corpus of 100,000 pieces, at any moment."""
HUGE_WORKER = 3
"""Times as much over a history of 10 million tokens, two and a half times the pieces; a query's arrays grow with it."""
PER_PIECE = 1.6
"""Times the memory and the work that a piece may take in a history of 10 million tokens, beside one of 4 million. What
is done per piece for each other piece would make it 2.5; arrays that grow by doubling take up to 1.5.
"""


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
    assert alone.pieces >= 100_000
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


@dataclass
class Cost:
    """Of indexing a history in its actor and reading it in one worker, in bytes and seconds of computing."""

    pieces: int
    index_bytes: int
    index_work: float
    worker: Grown
    worker_work: float


def test_a_history_of_ten_million_tokens_is_indexed_and_read_at_the_price_of_its_size(tmp_path: Path) -> None:
    large, huge = (cost_of(tokens, tmp_path / str(tokens)) for tokens in (LARGE, HUGE))
    assert huge.pieces >= 230_000
    assert huge.pieces > 2 * large.pieces
    assert huge.index_bytes / huge.pieces < PER_PIECE * large.index_bytes / large.pieces
    assert huge.index_work / huge.pieces < PER_PIECE * large.index_work / large.pieces
    assert huge.worker_work / huge.pieces < PER_PIECE * large.worker_work / large.pieces
    assert huge.worker.most < HUGE_WORKER * large.worker.most


def cost_of(tokens: int, out: Path) -> Cost:
    plan, warm = plan_of(tokens), plan_of(SMALL)
    corpus = Corpus(out, plan, warm)
    try:
        (worker,) = corpus.workers(1, warm)
        index, reader = corpus.index_process(), psutil.Process(ray.get(worker.pid.remote()))
        bytes_before, index_before, reader_before = peak(index), work(index), work(reader)
        (grown,) = corpus.read([worker], plan)
        return Cost(
            sum(len(session.turns) for session in instance_of(plan).sessions),  # a piece each, and a few of two
            peak(index) - bytes_before,
            work(index) - index_before,
            grown,
            work(reader) - reader_before,
        )
    finally:
        corpus.end()


def peak(process: psutil.Process) -> int:
    """The most resident memory that a process ever had, what it shares included."""
    lines = Path(f"/proc/{process.pid}/status").read_text("ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def work(process: psutil.Process) -> float:
    """Seconds of computing, whatever else the machine does."""
    times = process.cpu_times()
    return float(times.user + times.system)
