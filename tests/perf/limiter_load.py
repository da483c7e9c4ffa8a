"""Workers that ask a limited endpoint as fast as they can, with a shared budget and without one."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

import openai
from ray import cloudpickle

from flexmem.llm.accounts import account_limits
from flexmem.llm.config import ModelConfig
from flexmem.llm.errors import ModelError
from flexmem.llm.openai_client import OpenAIChat
from flexmem.ports import ChatRequest, Message
from flexmem.sweep.services.actor import start_actor
from flexmem.sweep.services.rates import RateClient, start_rates
from tests.llm.endpoint import ChatEndpoint, Limited, ok

LIMIT = 600  # requests a minute
WORKERS = 8
AT_ONCE = 16  # calls of one worker
CALLS = 400


@dataclass(frozen=True)
class Load:
    """What became of all calls. ``share``: of the limit, while there were calls; ``rejected``: of all requests."""

    answered: int
    share: float
    rejected: float


class Asker:
    """One worker."""

    async def shared(self, config: ModelConfig, owner: str, numbers: range) -> int:
        """Calls answered through the account's budget."""
        ((account, limits),) = account_limits([config]).items()
        model = OpenAIChat(config, budget=RateClient(account, limits, owner))
        return await self._all(numbers, lambda number: self._answered(model, number))

    async def alone(self, url: str, numbers: range) -> int:
        """Calls answered by the SDK with its own retries."""
        client = openai.AsyncOpenAI(base_url=url, api_key="no-key")

        async def one(number: int) -> bool:
            messages: Any = [{"role": "user", "content": f"question {number}"}]
            try:
                await client.chat.completions.create(model="local", messages=messages, max_tokens=16)
            except openai.OpenAIError:
                return False
            return True

        return await self._all(numbers, one)

    async def _answered(self, model: OpenAIChat, number: int) -> bool:
        try:
            await model.complete(ChatRequest((Message("user", f"question {number}"),), "reader", 16))
        except ModelError:
            return False
        return True

    async def _all(self, numbers: range, one: Any) -> int:
        waiting = iter(numbers)

        async def lane() -> int:
            return sum([await one(number) for number in waiting])

        return sum(await asyncio.gather(*(lane() for _ in range(AT_ONCE))))


def run_load(ray: Any, *, budget: bool, calls: int = CALLS) -> Load:
    """All calls from eight workers, Ray being connected."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    askers = [start_actor(Asker, num_cpus=0, max_concurrency=1) for _ in range(WORKERS)]
    parts = [range(worker, calls, WORKERS) for worker in range(WORKERS)]
    limited = Limited(LIMIT, ok())
    with ChatEndpoint([limited]) as endpoint:
        ray.get([asker.alone.remote(endpoint.url, range(0)) for asker in askers])  # their processes have started
        if budget:
            config = ModelConfig(model="local", base_url=endpoint.url, requests_per_minute=LIMIT)
            rates = start_rates([config])
            asked = [
                asker.shared.remote(config, str(number), part)
                for number, (asker, part) in enumerate(zip(askers, parts, strict=True))
            ]
        else:
            rates = {}
            asked = [asker.alone.remote(endpoint.url, part) for asker, part in zip(askers, parts, strict=True)]
        answered = sum(ray.get(asked))
        rates.clear()
        log = endpoint.chats
    for asker in askers:
        ray.kill(asker)
    good = [call.at for call in log if call.outcome == "reply"]
    # The endpoint's bucket was full before anyone asked: that much was no minute's.
    share = (len(good) - LIMIT / 60) / (LIMIT / 60 * (max(call.at for call in log) - log[0].at))
    return Load(answered, share, 1 - len(good) / len(log))
