"""What is looked at before anything is started or paid: prices, the file of replies, and every configured endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from flexmem.benchmarks.agent_protocol import is_agent_benchmark
from flexmem.benchmarks.protocol import Benchmark
from flexmem.llm.config import ModelConfig, make_model
from flexmem.llm.http_chat import HttpChat
from flexmem.llm.prices import find_price
from flexmem.llm.reply_store import check_replay, check_store
from flexmem.ports import ChatModel
from flexmem.sweep.config import ConfigError, SweepConfig


def check_prices(models: Iterable[ModelConfig], max_usd: float | None) -> None:
    """Check that the price of each model is known, where there is a cap.

    Raises:
        ConfigError: there is a cap, and the price of a model is not known.
    """
    for model in models if max_usd is not None else ():
        if find_price(model) is None:
            raise ConfigError(
                f"engine.max_usd caps what the run costs, but the price of {model.model} is not known; give "
                "`price` or `price_file` in its configuration (0 for a model that costs nothing), or no cap"
            )


def check_replies(store: Path, replay: Path | None) -> None:
    """Open the file of replies that a run will use, and close it again: a message here says more than a service that
    does not start.

    Raises:
        ReplyStoreError: it can't be read or written, or there is no such file to replay.
    """
    if replay is not None:
        check_replay(replay)
    elif store.exists():
        check_store(store)


def check_endpoints(models: Iterable[ModelConfig]) -> None:
    """Check key and address of each model.

    Raises:
        ModelError: a key is missing, an endpoint does not answer, or it knows no such model; the message says what to
            do.
    """
    for model in models:
        asyncio.run(_check(model))


def check_environments(benchmarks: Iterable[Benchmark], settings: Mapping[str, Any]) -> None:
    """Check that an agent's environments can be had on this machine.

    Raises:
        FlexmemError: they can't; the message says what is missing.
    """
    for benchmark in benchmarks:
        if is_agent_benchmark(benchmark):
            benchmark.check_environment(settings)


def configured_models(config: SweepConfig) -> list[ModelConfig]:
    """The models of all roles."""
    roles = [
        config.models.acting.model if config.models.acting else None,
        config.models.memory,
        *(entry.model for entry in config.models.judges),
    ]
    return [model for model in roles if model is not None]


async def check_model(model: ChatModel) -> None:
    """Ask a model's endpoint whether it is there; one that has none is.

    Raises:
        ModelError: a key is missing, the endpoint does not answer, or it knows no such model.
    """
    if isinstance(model, HttpChat):
        await model.preflight()


async def _check(config: ModelConfig) -> None:
    model = make_model(config)
    try:
        await check_model(model)
    finally:
        if isinstance(model, HttpChat):
            await model.aclose()
