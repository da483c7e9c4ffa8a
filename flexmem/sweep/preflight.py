"""Asking every configured endpoint whether it is there, before anything is started or paid."""

from __future__ import annotations

import asyncio

from flexmem.llm.config import ModelConfig, make_model
from flexmem.sweep.config import SweepConfig


def check_models(config: SweepConfig) -> None:
    """Check key and address of each model that a sweep uses.

    Raises:
        ModelError: a key is missing, an endpoint does not answer, or it knows no such model; the message says what to
        do.
    """
    models = [config.models.reader.model if config.models.reader else None, config.models.memory]
    for model in models:
        if model is not None:
            asyncio.run(_check(model))


async def _check(config: ModelConfig) -> None:
    if config.provider == "scripted":
        return
    from flexmem.llm.openai_client import OpenAIChat

    model = make_model(config)
    assert isinstance(model, OpenAIChat)
    try:
        await model.preflight()
    finally:
        await model.aclose()
