"""The model families that are known, and which of them a model's name stands for.

Sources: the providers' API references, their SDKs, and bug reports of gateways that map between them.
"""

from __future__ import annotations

import re
from typing import Literal

from flexmem.llm.capabilities import Capabilities

__all__ = ["FAMILIES", "capabilities"]

_OPENAI: Literal["max_completion_tokens"] = "max_completion_tokens"
_THREE = ("low", "medium", "high")

# The first row that matches counts. Rows of one API only are told by `api="messages"`; all others are found over
# OpenAI-compatible addresses.
FAMILIES: tuple[Capabilities, ...] = (
    # Models that don't reason keep max_tokens: OpenAI takes both, and servers that lend these names know only that.
    Capabilities("gpt-4", r"gpt-4(o|\.)|chatgpt-4o"),
    Capabilities("gpt-3.5", r"gpt-(4|3\.5)", schema="json_object"),
    Capabilities("gpt-5-chat", r"gpt-5(\.\d+)?-chat", limit=_OPENAI),
    # Served by Responses alone.
    Capabilities("gpt-5-pro", r"gpt-5-pro", "responses", _OPENAI, ("high",), "never"),
    Capabilities("gpt-pro", r"gpt-\d\.\d-pro", "responses", _OPENAI, ("medium", "high", "xhigh"), "never"),
    Capabilities("codex", r"(gpt-.*)?codex", "responses", _OPENAI, _THREE, "never"),
    Capabilities("o-pro", r"o[13]-pro", "responses", _OPENAI, _THREE, "never"),
    Capabilities("gpt-5", r"gpt-5(?!\.)", "chat", _OPENAI, ("minimal", *_THREE), "never"),
    Capabilities("gpt-5.1", r"gpt-5\.1(?!\d)", "chat", _OPENAI, ("none", *_THREE), "without_effort"),
    Capabilities("gpt-5.2", r"gpt-5\.[2-5](?!\d)", "chat", _OPENAI, ("none", *_THREE, "xhigh"), "without_effort"),
    Capabilities(
        "gpt-next",
        r"gpt-\d",
        limit=_OPENAI,
        efforts=("none", *_THREE, "xhigh"),
        temperature="without_effort",
        reasoning_context=True,
    ),
    Capabilities("o-series", r"o[134]\b", "chat", _OPENAI, _THREE, "never"),
    Capabilities("gpt-oss", r"gpt-oss", efforts=_THREE),
    # Anthropic's compatibility layer takes no effort and ignores response_format; from 4.7 on temperature is an error.
    Capabilities("claude-next", r"claude-[a-z]+-(4[-.][7-9]\b|[5-9])", temperature="never", schema="none"),
    Capabilities("claude", r"claude", schema="none"),
    Capabilities("gemini", r"gemini-(2\.5|[3-9])", efforts=("minimal", *_THREE)),
    Capabilities("deepseek", r"deepseek-(chat|reasoner)", schema="json_object"),
    Capabilities("plain", r"(?!)", schema="none"),  # matches no name: for a server that rejects response_format
    # ---- Anthropic's own API. Sampling is rejected while the model thinks, and from 4.7 on always.
    Capabilities("claude-3", r"claude-3-(?!7)|claude-(instant|2)", "messages", schema="none"),
    Capabilities(
        "claude-4",
        r"claude-(3-7|[a-z]+-4-(\d{8}|0))|claude-[a-z]+-4$",
        "messages",
        efforts=("none", *_THREE),
        temperature="without_effort",
        schema="none",
        thinking="budget",
    ),
    Capabilities(
        "claude-opus-4.5",
        r"claude-opus-4-5",
        "messages",
        efforts=("none", *_THREE),
        temperature="without_effort",
        closed_schema=True,
        thinking="effort_and_budget",
    ),
    Capabilities(
        "claude-4.5",
        r"claude-[a-z]+-4-[1-5]\b",
        "messages",
        efforts=("none", *_THREE),
        temperature="without_effort",
        closed_schema=True,
        thinking="budget",
    ),
    Capabilities(
        "claude-4.6",
        r"claude-[a-z]+-4-6\b",
        "messages",
        efforts=("none", *_THREE, "max"),
        temperature="without_effort",
        closed_schema=True,
        thinking="adaptive",
    ),
    Capabilities(  # they refuse to have thinking switched off
        "claude-fable",
        r"claude-(fable|mythos)",
        "messages",
        efforts=(*_THREE, "xhigh", "max"),
        temperature="never",
        closed_schema=True,
        thinking="adaptive",
    ),
    Capabilities(
        "claude-4.7",
        r"claude",
        "messages",
        efforts=("none", *_THREE, "xhigh", "max"),
        temperature="never",
        closed_schema=True,
        thinking="adaptive",
    ),
    Capabilities("messages", r"", "messages", schema="none"),  # another server that speaks Messages
    # Any other name is taken for a model on a local server (vLLM, llama.cpp, SGLang, LM Studio, Ollama).
    Capabilities("local", r""),
)


def capabilities(model: str, family: str | None = None, *, messages: bool = False) -> Capabilities:
    """The row called ``family``, else the first that matches the model's name; ``messages``: among those of Anthropic's
    own API, else among all others.

    Raises:
        ValueError: no row has that name, or it is one of the other kind.
    """
    rows = [row for row in FAMILIES if (row.api == "messages") is messages]
    if family is not None:
        for row in rows:
            if row.family == family:
                return row
        raise ValueError(f"unknown model family {family!r}; known: {', '.join(row.family for row in rows)}")
    name = model.lower().removeprefix("ft:").rsplit("/", 1)[-1]
    return next(row for row in rows if re.match(row.names, name))
