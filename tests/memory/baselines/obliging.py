"""The contract with a memory model that fills a method's forms by a rule of its own, so that what replies name (notes,
pages) is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from flexmem.contract.cases import Case
from flexmem.contract.checks import CHECKS, run
from flexmem.memory.protocol import MemoryBuild, MethodInfo
from flexmem.memory.registry import find_method
from flexmem.ports import ChatModel, ChatReply, ChatRequest, Services

Rule = Callable[[ChatRequest], str]


class ByRule:
    """A chat model that asks another, whose failures and counts it keeps, and replies by rule."""

    name = "by rule"

    def __init__(self, model: ChatModel, rule: Rule) -> None:
        self._model = model
        self._rule = rule

    def describe(self) -> Mapping[str, Any]:
        return self._model.describe()

    async def complete(self, request: ChatRequest) -> ChatReply:
        return replace(await self._model.complete(request), text=self._rule(request))


class Obliging:
    """A method whose memory model replies by ``rule``."""

    def __init__(self, name: str, rule: Rule, **options: Any) -> None:
        self._method = find_method(name).configured(options)
        self._rule = rule

    @property
    def info(self) -> MethodInfo:
        return self._method.info

    def build(self, services: Services) -> MemoryBuild:
        assert services.model is not None
        return self._method.build(replace(services, model=ByRule(services.model, self._rule)))


def keeps_the_contract(method: Obliging, case: Case) -> None:
    """All checks."""
    for check in CHECKS:
        run(check, method, case)


def uid_in(text: str) -> int:
    """The id in the first unit header of a prompt."""
    header = re.search(r"^### u(\d+)", text, re.MULTILINE)
    assert header is not None, text
    return int(header.group(1))


def prompt_of(request: ChatRequest) -> str:
    return request.messages[-1].content


def fields_of(request: ChatRequest) -> frozenset[str]:
    """Names of the form's fields; none where text is asked for."""
    return frozenset(request.schema["required"]) if request.schema else frozenset()


def numbers_in(request: ChatRequest, pattern: str) -> list[int]:
    """All numbers that the pattern's group finds in the prompt."""
    return [int(found) for found in re.findall(pattern, prompt_of(request), re.MULTILINE)]


def as_json(**fields: object) -> str:
    return json.dumps(fields)
