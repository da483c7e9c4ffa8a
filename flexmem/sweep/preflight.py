"""Asking every configured endpoint whether it is there, before anything is started or paid."""

from __future__ import annotations

import asyncio

from flexmem.llm.config import ModelConfig, make_model
from flexmem.llm.prices import find_price
from flexmem.sweep.config import ConfigError, SweepConfig


def check_models(config: SweepConfig) -> None:
    """Check key and address of each model that a sweep uses, and its price where the sweep has a cap.

    Raises:
        ModelError: a key is missing, an endpoint does not answer, or it knows no such model; the message says what to
            do.
        ConfigError: there is a cap, and the price of a model is not known.
    """
    models = configured_models(config)
    if config.engine.max_usd is not None:
        for model in models:
            if find_price(model) is None:
                raise ConfigError(
                    f"engine.max_usd caps what the run costs, but the price of {model.model} is not known; give "
                    "`price` or `price_file` in its configuration (0 for a model that costs nothing), or no cap"
                )
    for model in models:
        asyncio.run(_check(model))


def configured_models(config: SweepConfig) -> list[ModelConfig]:
    """The models of all roles."""
    roles = [
        config.models.reader.model if config.models.reader else None,
        config.models.memory,
        *(entry.model for entry in config.models.judges),
    ]
    return [model for model in roles if model is not None]


async def _check(config: ModelConfig) -> None:
    if config.provider == "scripted":
        return
    from flexmem.llm.http_chat import HttpChat

    model = make_model(config)
    assert isinstance(model, HttpChat)
    try:
        await model.preflight()
    finally:
        await model.aclose()
