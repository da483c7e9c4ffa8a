"""What a memory shows of a log: for the next call of its agent or chat, or to a reader who asks about it.

A call sees what earlier calls have done to a memory (an agent's records are merged for good, docs/methods.md A.5), so
the calls that the log's agent or chat has made before are made again, in order. Only where reading asks the memory
model anew each time (`MethodInfo.asks_per_call`) they are not: nothing of them would last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from flexmem import tokens
from flexmem.agents.agent_memory import AgentMemory
from flexmem.history import AGENT_UNIT_TOKENS, ChatPacker, Unit, pack_steps, split_sessions
from flexmem.logs.dates import sessions_by_day
from flexmem.logs.log import Log
from flexmem.logs.shown import ShowingError, Shown, Tools
from flexmem.memory.chat import ChatMessage, message_text, message_turn, split_messages
from flexmem.memory.context import PREFACE, Memory
from flexmem.memory.protocol import Budget, BudgetError, Query
from flexmem.memory.registry import ConfiguredMethod, find_method


async def show_answer(
    log: Log, name: str, options: Mapping[str, Any], question: str, budget: int, tools: Tools
) -> Shown:
    """What a reader sees who asks a question when all is over: every unit is written, nothing is recent.

    Raises:
        MethodError: the method is unknown, not for such a history, or needs a model; or the budget is too small.
        FlexmemError: a model or the embedder can't answer.
    """
    method = _method(log, name, options, tools)
    build = method.build(tools.services(budget if method.info.build_per_budget else None))
    units = _units(log)
    for unit in units:
        await build.write(unit)
    query = Query.question(question, (await tools.embedder.embed([question]))[0])
    try:
        rendering = await build.view().render(query, Budget(budget))
    except BudgetError as error:
        raise BudgetError(f"method {name!r}, budget {budget}: {error}") from error
    outside = tokens.count(question)
    return Shown(name, budget, units, len(units), rendering, outside=outside, fallbacks=dict(build.fallbacks))


async def show_next_call(log: Log, name: str, options: Mapping[str, Any], budget: int, tools: Tools) -> Shown:
    """What the log's agent or chat sees in the call that comes after its end: memory, and the recent window.

    Raises:
        MethodError: as `show_answer`; a budget may be too small for an earlier call too, which is then named.
        FlexmemError: a model or the embedder can't answer.
    """
    method = _method(log, name, options, tools)
    if log.kind == "agent":
        return await _next_step(log, name, method, budget, tools)
    return await _next_message(log, name, options, method, budget, tools)


async def _next_step(log: Log, name: str, method: ConfiguredMethod, budget: int, tools: Tools) -> Shown:
    # A build per budget is written for what the window leaves as a rule (docs/methods.md 0.6).
    build = method.build(tools.services(budget - budget // 4 if method.info.build_per_budget else None))
    memory = AgentMemory(log.task, budget, tools.embedder, build, history=log.source, language=log.language)
    calls = 0
    for step in log.steps:
        if not method.info.asks_per_call:
            with _call(name, budget, "step", len(memory.steps)):
                await memory.context()
            calls += 1
        memory.append(step)
    with _call(name, budget, "step", len(memory.steps)):
        context = await memory.context()
    return Shown(
        name,
        budget,
        memory.units,
        len(memory.written),
        context.rendering,
        tuple({"role": message.role, "content": message.content} for message in context.window),
        context.window_tokens,
        tokens.count(log.task),
        calls + 1,
        dict(build.fallbacks),
    )


async def _next_message(
    log: Log, name: str, options: Mapping[str, Any], method: ConfiguredMethod, budget: int, tools: Tools
) -> Shown:
    messages = [message.as_sent() for message in log.messages]
    opening, _ = split_messages(messages)
    # As `Memory` would choose it itself; said here, since the units are packed again below.
    unit_tokens = max(1, min(AGENT_UNIT_TOKENS, budget // 4))
    memory = Memory(name, options=options, model=tools.model, embedder=tools.embedder, unit_tokens=unit_tokens)
    ends = [n for n, message in enumerate(messages) if message["role"] == "assistant" and n > len(opening)]
    ends = [*([] if method.info.asks_per_call else ends), len(messages)]
    shown: list[dict[str, Any]] = []
    for end in ends:
        with _call(name, budget, "message", end):
            shown = await memory.acontext(messages[:end], budget)
    window = shown[len(opening) + (memory.rendering is not None) :]
    units = _chat_units(messages, unit_tokens)
    first_recent = sum(len(unit.blocks) for unit in units) - len(window)
    heading = tokens.count(PREFACE) if memory.rendering is not None else 0
    return Shown(
        name,
        budget,
        units,
        sum(unit.span[1] < first_recent for unit in units),
        memory.rendering,
        tuple(window),
        _tokens(window) + heading,
        _tokens(opening),
        len(ends),
        None,
    )


def _method(log: Log, name: str, options: Mapping[str, Any], tools: Tools) -> ConfiguredMethod:
    method = find_method(name).configured(options)
    if log.kind not in method.info.tasks:
        kinds = {"agent": "an agent's steps", "reader": "a chat's messages"}
        wanted = " and ".join(kinds[task] for task in method.info.tasks)
        raise ShowingError(f"method {name!r} is for {wanted}; {log.source} holds {kinds[log.kind]}")
    if tools.model is None and (method.info.writes_with_model or method.info.reads_with_model):
        when = "writes" if method.info.writes_with_model else "reads"
        raise ShowingError(f"method {name!r} {when} with a model, and none is given (--model NAME)")
    return method


def _units(log: Log) -> list[Unit]:
    """A log's units for a reader: of steps, or of sessions by day, opening system messages left out."""
    if log.kind == "agent":
        return pack_steps(log.steps, history=log.source)
    opening, _ = split_messages([message.as_sent() for message in log.messages])
    said = list(enumerate(log.messages))[len(opening) :]
    turns = [message_turn(message.as_sent(), f"m{number}") for number, message in said]
    return split_sessions(sessions_by_day([message.day for _, message in said], turns), history=log.source)


def _chat_units(messages: Sequence[ChatMessage], unit_tokens: int) -> list[Unit]:
    """The units that `Memory` packs, a block for each message."""
    packer = ChatPacker(history="chat", limit=unit_tokens)
    turns = 0
    for item in split_messages(messages)[1]:
        packer.append([message_turn(message, f"m{turns + n}") for n, message in enumerate(item)])
        turns += len(item)
    return packer.units()


def _tokens(messages: Iterable[ChatMessage]) -> int:
    return sum(tokens.count(message_text(message)) for message in messages)


@contextmanager
def _call(method: str, budget: int, item: str, number: int) -> Iterator[None]:
    """Names the call in which a budget proves too small."""
    try:
        yield
    except BudgetError as error:
        place = f"method {method!r}, budget {budget}, the call after {item} {number}"
        raise BudgetError(f"{place}: {error}") from error
