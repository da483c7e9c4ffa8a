"""An episode worker's mind: histories, models and row sink of one process; no Ray here."""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from flexmem.benchmarks.agent_protocol import AgentBenchmark, Environments, is_agent_benchmark
from flexmem.benchmarks.protocol import Benchmark, Instance
from flexmem.benchmarks.registry import make_benchmark
from flexmem.llm.accounts import budget_for
from flexmem.llm.config import ModelConfig, make_model
from flexmem.llm.stored import StoredModel
from flexmem.ports import ChatModel, Embedder, HistoryIndex, IndexConfig, IndexFactory, RateBudget, ReplyStore
from flexmem.retrieval.index import IndexSnapshot, LocalIndex
from flexmem.sweep.activity import Activity
from flexmem.sweep.agent_episodes import run_agent_group
from flexmem.sweep.arms import Arm, choice_arms, make_arms
from flexmem.sweep.builds import BuildStore, BuildTools
from flexmem.sweep.config import BenchmarkEntry, SweepConfig
from flexmem.sweep.episodes import ServiceFailedError, run_group, stop_if_fatal
from flexmem.sweep.failures import describe
from flexmem.sweep.histories import History
from flexmem.sweep.plan import Group, task_kind
from flexmem.sweep.rendering_rows import RenderingRows
from flexmem.sweep.run_tools import RunTools
from flexmem.sweep.sink import Deliver, RowSink

HISTORIES_KEPT = 4  # of the newest groups; one is large where a history has millions of tokens

FetchInstance = Callable[[str, str], Awaitable[Instance]]
"""Gives the instance of (benchmark, instance id)."""
FetchSnapshot = Callable[[str, Instance, IndexConfig], Awaitable[IndexSnapshot]]
"""Gives a history's frozen index."""


class EpisodeWorker:
    """Runs groups one after the other or side by side; histories are shared between them.

    With ``replies`` no model call is paid twice; ``owner`` names this worker to the store, which gives up its calls
    when told that it is gone. ``activity`` says what its work waits for.
    """

    def __init__(
        self,
        config: SweepConfig,
        out: Path,
        *,
        embedder: Embedder,
        fetch_instance: FetchInstance,
        fetch_snapshot: FetchSnapshot,
        deliver: Deliver,
        replies: ReplyStore | None = None,
        owner: str = "worker",
        budgets: Mapping[str, RateBudget] | None = None,
    ) -> None:
        self._config = config
        self._out = out
        self._environments: dict[str, Environments] = {}
        self._embedder = embedder
        self._fetch_instance = fetch_instance
        self._fetch_snapshot = fetch_snapshot
        self._deliver = deliver
        listed = make_arms(config.arms, task_kind(config))
        self._arms: dict[str, Arm] = {arm.name: arm for arm in (*listed, *choice_arms(listed))}
        self._benchmarks: dict[str, Benchmark] = {}
        for entry in config.benchmarks:
            self._add_benchmark(entry)
        models = config.models
        self._reader = _model(models.acting.model, budgets or {}) if models.acting else None
        self._memory = _model(models.memory, budgets or {}) if models.memory else None
        self._replies = replies
        self._owner = owner
        self.activity = Activity()
        self._store = BuildStore(out)
        self._rows = RenderingRows()
        self._histories: OrderedDict[tuple[str, str], History] = OrderedDict()
        self._opening = asyncio.Lock()

    async def run(self, group: Group) -> dict[str, int]:
        """Run a group's episodes; see `run_group`.

        Raises:
            ServiceFailedError: the history could not be prepared.
        """
        benchmark = self._benchmarks[group.benchmark]
        if is_agent_benchmark(benchmark):
            return await self._run_agent(group, benchmark)
        try:
            with self.activity.during("history", f"{group.benchmark}/{group.instance}"):
                history = await self._history(group.benchmark, group.instance)
        except Exception as error:  # noqa: BLE001 - no method has run yet, so none is at fault
            stop_if_fatal(error)
            raise ServiceFailedError(describe(error)) from None
        tools = self._tools(group, history.open_index)
        return await run_group(group, self._arms[group.arm], benchmark, history, tools)

    async def _run_agent(self, group: Group, benchmark: AgentBenchmark) -> dict[str, int]:
        if group.benchmark not in self._environments:
            engine = self._config.engine
            self._environments[group.benchmark] = benchmark.environments(
                engine.environment, self._out, engine.environments
            )
        try:
            instance = await self._fetch_instance(group.benchmark, group.instance)
        except Exception as error:  # noqa: BLE001 - no method has run yet, so none is at fault
            raise ServiceFailedError(describe(error)) from None

        def open_index(config: IndexConfig) -> HistoryIndex:
            return LocalIndex(config, self._embedder)

        tools, environments = self._tools(group, open_index), self._environments[group.benchmark]
        return await run_agent_group(group, self._arms[group.arm], benchmark, instance, environments, tools)

    def _tools(self, group: Group, open_index: IndexFactory) -> RunTools:
        memory = self._kept(self._memory, group.repeat, f"build:{group.build}")
        engine = self._config.engine
        return RunTools(
            config=self._config,
            build_tools=BuildTools(self._embedder, open_index, memory, activity=self.activity),
            store=self._store,
            sink=RowSink(
                self._deliver,
                uuid.uuid4().hex,  # a name that no other sink has: two workers never write the same part
                rows=engine.rows_per_part,
                seconds=engine.flush_s,
                activity=self.activity,
            ),
            rows=self._rows,
            reader=self._kept(self._reader, group.repeat),
        )

    async def aclose(self) -> None:
        """End the environments, and close the models' connections."""
        for environments in self._environments.values():
            await environments.close()
        self._environments.clear()
        for model in (self._reader, self._memory):
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()

    def _kept(self, model: ChatModel | None, repeat: int, subject: str = "") -> ChatModel | None:
        """The model behind the reply store; each repeat draws its own replies."""
        if model is None or self._replies is None:
            return model
        most_usd = getattr(model, "most_usd", None)  # models without a price have none
        return StoredModel(model, self._replies, repeat, self._owner, subject=subject, most_usd=most_usd)

    async def _history(self, benchmark: str, instance_id: str) -> History:
        async with self._opening:
            return await self._open(benchmark, instance_id)

    async def _open(self, benchmark: str, instance_id: str) -> History:
        place = (benchmark, instance_id)
        if place not in self._histories:
            instance = await self._fetch_instance(benchmark, instance_id)

            async def snapshot(config: IndexConfig) -> IndexSnapshot:
                with self.activity.during("history", f"{benchmark}/{instance_id}"):
                    return await self._fetch_snapshot(benchmark, instance, config)

            history = History(instance, snapshot)
            await history.prepare(self._embedder)
            self._histories[place] = history
            while len(self._histories) > HISTORIES_KEPT:
                self._histories.popitem(last=False)
        self._histories.move_to_end(place)
        return self._histories[place]

    def _add_benchmark(self, entry: BenchmarkEntry) -> None:
        """The benchmark and the one that may stand in for it; making one reads no data."""
        self._benchmarks[entry.name] = make_benchmark(entry.name, entry.options)
        if entry.otherwise is not None:
            self._add_benchmark(entry.otherwise)


def _model(config: ModelConfig, budgets: Mapping[str, RateBudget]) -> ChatModel:
    """A configured model that keeps to its account's budget."""
    budget = budget_for(config, budgets)
    return make_model(config) if budget is None else make_model(config, budget)
