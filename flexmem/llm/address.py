"""Where a model is called: the address of a configuration, and what may be told of it."""

from __future__ import annotations

import ipaddress
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from flexmem.llm.config import ModelConfig

__all__ = ["DEFAULT_URLS", "endpoint_url", "is_local", "public_url"]

DEFAULT_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
_URL_VARIABLES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}


def endpoint_url(config: ModelConfig) -> str:
    """The address that ``config`` names, else its provider's variable, else the provider's own; empty for a scripted
    model.
    """
    if config.provider == "scripted":
        return ""
    return config.base_url or os.environ.get(_URL_VARIABLES[config.provider]) or DEFAULT_URLS[config.provider]


def is_local(url: str) -> bool:
    """Whether the host is this machine, in a private network, or a name without a dot."""
    host = urlsplit(url).hostname or ""
    if "." not in host and ":" not in host:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.endswith((".local", ".internal", ".localhost"))
    return address.is_private or address.is_unspecified


def public_url(url: str) -> str:
    """The address without a user's name and password, a query or a trailing slash."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
