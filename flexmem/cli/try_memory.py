"""``flexmem try``: what a memory would have shown in somebody's log."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from platformdirs import user_cache_dir
from pydantic import TypeAdapter, ValidationError

from flexmem.agents.controls import CONTROLS
from flexmem.cli.output import expected_errors, print_json
from flexmem.llm.config import ModelConfig, make_model
from flexmem.ports import ChatModel, Embedder
from flexmem.retrieval.embedding import CachedEmbedder, SentenceTransformerEmbedder
from flexmem.sweep.config import ConfigError, Tokens

if TYPE_CHECKING:
    from flexmem.logs import Log, LogFormat, Shown


class Format(StrEnum):
    """Whose log it is."""

    CHAT = "chat"
    SWE_AGENT = "swe-agent"
    INSPECT = "inspect"
    RUN = "run"


class Provider(StrEnum):
    """Who serves the memory model, as in a sweep's ``models.memory``."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    SCRIPTED = "scripted"


def try_memory(
    file: Annotated[
        Path, typer.Argument(help="Chat messages (JSON, JSONL), a SWE-agent .traj, an Inspect log, a run.")
    ],
    method: Annotated[list[str], typer.Option(help="A memory method; several are shown one after the other.")],
    budget: Annotated[str, typer.Option(help="Tokens of memory and recent window, such as 4000 or 4k.")] = "4k",
    *,
    query: Annotated[
        str | None, typer.Option(help="Ask this about the whole log; without, its next call is shown.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="The agent's task, in place of the log's own.")] = None,
    log_format: Annotated[
        Format | None, typer.Option("--format", help="The log's format; else told by its content.")
    ] = None,
    sample: Annotated[
        str | None, typer.Option(help="An Inspect log's sample (id or id/epoch), a run's episode (key).")
    ] = None,
    at: Annotated[int | None, typer.Option(min=1, help="Stop after so many steps or messages.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="KEY=VALUE of the methods' configuration.")] = None,
    model: Annotated[str | None, typer.Option(help="The memory model, for methods that need one.")] = None,
    base_url: Annotated[str | None, typer.Option(help="The memory model's address.")] = None,
    provider: Annotated[Provider, typer.Option(help="Who serves the memory model.")] = Provider.OPENAI,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output, with provenance.")] = False,
) -> None:
    """Show what a memory would show of a log: for its next call, or for a question about it."""
    from flexmem.cli.try_output import as_rows, print_shown
    from flexmem.logs import load_log

    with expected_errors():
        wanted, options = _budget(budget), _options(option or [])
        told: LogFormat | None = None if log_format is None else log_format.value
        log = load_log(file, told, sample)
        if at is not None:
            log = log.cut(at)
        log = _with_task(log, task)
        if query is not None and not query.strip():
            raise ConfigError("--query: it is empty; leave it out to see the next call's memory")
        shown = asyncio.run(_show(log, _methods(method), options, query, wanted, _model(model, base_url, provider)))
    if as_json:
        print_json(as_rows(log, query, options, shown))
    else:
        print_shown(log, query, shown)


def local_embedder() -> Embedder:
    """all-MiniLM-L6-v2 on this machine, its vectors kept where `flexmem.memory.Memory` keeps them."""
    folder = Path(os.environ.get("FLEXMEM_CACHE") or user_cache_dir("flexmem"))
    return CachedEmbedder(SentenceTransformerEmbedder(), folder / "vectors.sqlite")


async def _show(
    log: Log, methods: Sequence[str], options: dict[str, Any], query: str | None, budget: int, model: ChatModel | None
) -> list[Shown]:
    from flexmem.logs import Tools, show_answer, show_next_call

    tools = Tools(local_embedder(), model)
    try:
        if query is not None:
            return [await show_answer(log, name, options, query, budget, tools) for name in methods]
        return [await show_next_call(log, name, options, budget, tools) for name in methods]
    finally:
        close = getattr(model, "aclose", None)
        if close is not None:
            await close()


def _budget(text: str) -> int:
    try:
        return TypeAdapter(Tokens).validate_python(text)
    except ValidationError as error:
        what = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise ConfigError(f"--budget {text}: {what}") from error


def _methods(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name in CONTROLS:
            raise ConfigError(f"--method {name}: a control arm of sweeps, not a memory method; see `flexmem methods`")
        if names.count(name) > 1:
            raise ConfigError(f"--method {name}: it is given twice")
    return names


def _options(given: Sequence[str]) -> dict[str, Any]:
    """Options by key; values are YAML, as in a sweep."""
    options: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ConfigError(f"--option {text}: an option is KEY=VALUE, such as timeline_share=0.5")
        if key in options:
            raise ConfigError(f"--option {text}: {key} is given twice")
        try:
            options[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"--option {text}: its value is no YAML ({error})") from error
    return options


def _with_task(log: Log, task: str | None) -> Log:
    if task is None:
        return log
    if log.kind != "agent":
        raise ConfigError(f"--task: {log.source} is a chat, which has no task; ask about it with --query")
    return replace(log, task=task)


def _model(name: str | None, base_url: str | None, provider: Provider) -> ChatModel | None:
    if name is None:
        if base_url is not None or provider is not Provider.OPENAI:
            raise ConfigError("--base-url and --provider are about a model, and none is given; add --model NAME")
        return None
    try:
        config = ModelConfig(provider=provider.value, model=name, base_url=base_url)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(f"--model {name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    return make_model(config)
