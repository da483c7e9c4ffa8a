"""The actors of one sweep: what its workers share, and how each is started."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from flexmem.sweep.ledger import REPLIES
from flexmem.sweep.plan import Plan
from flexmem.sweep.preflight import configured_models
from flexmem.sweep.services import embedding
from flexmem.sweep.services.actor import SERVICE, start_actor
from flexmem.sweep.services.index import IndexActor, IndexClient
from flexmem.sweep.services.rates import RateClient, start_rates
from flexmem.sweep.services.replies import ReplyActor, ReplyClient
from flexmem.sweep.services.results import ResultActor, ResultClient
from flexmem.sweep.services.workers import ACTIVITY, WorkerActor
from flexmem.sweep.shipping import pack_instance


class SweepActors:
    """Result writer, reply store, rate budgets, embedder and index of a sweep, and as many workers as are asked for.

    Args:
        ray: Ray, connected.
        plan: what is run.
        out: the output folder.
        vectors: where vectors are kept across runs.
        wait: gives the value of a reference that may take long, named by what is waited for.
        replay: a finished run's reply store, from which all replies are taken; None: models are called.
    """

    def __init__(
        self,
        ray: Any,
        plan: Plan,
        out: Path,
        vectors: Path,
        wait: Callable[[Any, str], Any],
        replay: Path | None = None,
    ) -> None:
        self._ray = ray
        self._plan = plan
        self._out = out
        self._replay = str(replay) if replay is not None else None
        self._session = uuid.uuid4().hex
        self._embedded = 0
        self._asked: Any = None
        self.writer = start_actor(ResultActor, str(out), **SERVICE)
        try:
            self.replies = self._start_replies()
            # A replay sends nothing, so nothing has to take turns.
            self._rates = start_rates(configured_models(plan.config)) if replay is None else {}
            self._start_retrieval(vectors, wait)
        except BaseException:
            self.end()
            raise
        self._instances = {
            (loaded.name, instance.instance_id): ray.put(pack_instance(instance))
            for loaded in plan.benchmarks
            for instance in loaded.instances.values()
        }

    def worker(self, number: int) -> Any:
        """Start an episode worker."""
        replies = ReplyClient(self.replies) if self.replies is not None else None
        owner = self._owner(number)
        budgets = {account: RateClient(account, limits, owner) for account, (limits, _) in self._rates.items()}
        services = (self._embedder, self._index, ResultClient(self.writer), replies, owner, budgets)
        return start_actor(
            WorkerActor,
            *(self._plan.config, str(self._out), self._instances, *services),
            num_cpus=1,
            max_concurrency=64,
            concurrency_groups={ACTIVITY: 1},
        )

    def release(self, number: int) -> None:
        """Let others make the calls of a worker that is gone, and have its turns."""
        for _, actor in self._rates.values():
            actor.release.remote(self._owner(number))
        if self.replies is not None:
            self._ray.get(self.replies.release.remote(self._owner(number)))

    def embedding_steps(self) -> int:
        """What the embedder has done, as it said last; asks again and does not wait."""
        if self._asked is not None and self._ray.wait([self._asked], timeout=0)[0]:
            with suppress(self._ray.exceptions.RayError):  # it died, and starts again
                self._embedded = self._ray.get(self._asked)
            self._asked = None
        if self._asked is None:
            self._asked = self.embedding.steps.remote()
        return self._embedded

    def end(self) -> None:
        """Let go of the output folder, which the writer holds until it ends: long after the last handle, maybe."""
        self._ray.kill(self.writer)

    def _owner(self, number: int) -> str:
        """A worker's name in the reply store."""
        return f"{self._session}/{number}"

    def _start_replies(self) -> Any:
        """The reply store, where the sweep has a model whose replies cost something."""
        models = self._plan.config.models
        if models.acting is None and models.memory is None:
            return None
        store = (str(self._out / REPLIES), self._session, self._plan.config.engine.max_usd, self._replay)
        return start_actor(ReplyActor, *store, **SERVICE)

    def _start_retrieval(self, vectors: Path, wait: Callable[[Any, str], Any]) -> None:
        entry = self._plan.config.embedding
        gpus = 1 if entry.device is None and self._ray.cluster_resources().get("GPU") else 0
        model = (entry.model, entry.device, entry.batch_size, str(vectors))
        name = f"flexmem-embedding-{uuid.uuid4().hex}"
        # The handle is kept: an actor found by name alone ends with the last handle of those who started it.
        self.embedding = start_actor(embedding.EmbeddingActor, *model, **SERVICE, num_gpus=gpus, name=name)
        try:
            dimension = wait(self.embedding.dimension.remote(), "embedding")
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None  # what the user can mend, without the traceback of another process
        self._embedder = embedding.EmbeddingClient(name, self._plan.embedder, dimension)
        self._index = IndexClient(start_actor(IndexActor, name, self._plan.embedder, dimension, **SERVICE))
