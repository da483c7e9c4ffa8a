"""What `flexmem.cli.try_memory` prints."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from flexmem.cli.output import console
from flexmem.logs import Log, Shown
from flexmem.memory.chat import message_text


def as_rows(log: Log, query: str | None, options: Mapping[str, Any], shown: Sequence[Shown]) -> dict[str, Any]:
    """The log and what each method shows of it, JSON-able. A block of ``memory`` is ``memory[start:end]``, shown for
    ``units``; their ``places`` say where those stand in the log.
    """
    return {
        "file": log.source,
        "format": log.format,
        "sample": log.sample,
        "kind": f"{log.item}s",
        "length": log.length,
        "task": log.task or None,
        "query": query,
        "options": dict(options),
        "left_out": dict(log.left_out),
        "methods": [_row(one) for one in shown],
    }


def _row(shown: Shown) -> dict[str, Any]:
    rendering = shown.rendering
    return {
        "method": shown.method,
        "budget": shown.budget,
        "room": shown.room,
        "calls": shown.calls,
        "units": len(shown.units),
        "units_written": shown.written,
        "memory_tokens": shown.memory_tokens,
        "window_tokens": shown.window_tokens,
        "outside_tokens": shown.outside,
        "over_tokens": shown.over,
        "utilisation": shown.utilisation,
        "tokens_by_resolution": {} if rendering is None else rendering.tokens_by_resolution(),
        "fallbacks": None if shown.fallbacks is None else dict(shown.fallbacks),
        "memory": None if rendering is None else rendering.text,
        "window": [dict(message) for message in shown.window],
        "blocks": [
            {
                "units": list(block.uids),
                "places": [shown.units[uid].place for uid in block.uids],
                "resolution": block.resolution.value,
                "pieces": list(block.pieces),
                "start": block.start,
                "end": block.end,
                "tokens": block.tokens,
            }
            for block in (() if rendering is None else rendering.blocks)
        ],
    }


def print_shown(log: Log, query: str | None, shown: Sequence[Shown]) -> None:
    """The log in a line, then each method's memory and window, word for word."""
    name = log.source if log.sample is None else f"{log.source}, sample {log.sample}"
    _line(f"{name}: {log.length:,} {log.item}s ({log.format})")
    if log.left_out:
        _line("left out: " + ", ".join(f"{count:,} x {what}" for what, count in sorted(log.left_out.items())))
    if log.kind == "agent" and query is None and not log.task:
        _line("note: the log names no task, so memory is asked with the newest steps alone; --task TEXT gives one")
    for one in shown:
        _print(log, query, one)


def _print(log: Log, query: str | None, shown: Shown) -> None:
    what = f"the call after {log.item} {log.length}" if query is None else f"the question {query!r}"
    _line(f"\n{shown.method}, budget {shown.budget:,}: {what}")
    outside = {"agent": "the task", "reader": "opening system messages"}[log.kind] if query is None else "the question"
    _line(f"  units    {shown.written:,} of {len(shown.units):,} written")
    _line(f"  memory   {_use(shown)}")
    if query is None:
        _line(f"  window   {shown.window_tokens:,} tokens, {len(shown.window):,} messages")
    _line(f"  outside  {shown.outside:,} tokens of {outside}, for which the budget does not pay")
    for reason, count in sorted((shown.fallbacks or {}).items()):
        _line(f"  note     {count:,} x {reason}")
    if shown.over:
        _line(f"  note     the memory has {shown.over:,} tokens more than its room: a defect of the method")
    if shown.rendering is not None:
        _line(f"--- memory: {shown.method}")
        _verbatim(shown.text)
    if query is None:
        _line(f"--- recent window: {shown.method}")
        for message in shown.window:
            _line(f"[{message['role']}]")
            _verbatim(message_text(message))


def _use(shown: Shown) -> str:
    if shown.rendering is None:
        return "none: all that has been said is in the recent window"
    shares = ", ".join(f"{name} {count:,}" for name, count in shown.rendering.tokens_by_resolution().items())
    used = "" if shown.utilisation is None else f" ({100 * shown.utilisation:.0f} %)"
    return f"{shown.memory_tokens:,} of {shown.room:,} tokens{used}" + (f": {shares}" if shares else "")


def _line(text: str) -> None:
    console().print(_printable(text), soft_wrap=True, markup=False, highlight=False)


def _verbatim(text: str) -> None:
    """A text as it is: not wrapped, nothing in it taken for a mark."""
    sys.stdout.write(_printable(text if text.endswith("\n") or not text else text + "\n"))


def _printable(text: str) -> str:
    """Lone surrogates, which no terminal takes, as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
