from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from .endpoint import Behaviour, ChatEndpoint
from .session import Open, Session

_FOREIGN = (
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS"),
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_PROFILE"),
    "ANTHROPIC_CUSTOM_HEADERS",
)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, address or proxy of whoever runs the tests."""
    for name in _FOREIGN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens endpoints that go through a script, each with a client; options are the client's, the rest its
    configuration.
    """
    with contextlib.ExitStack() as stack:

        def open_session(
            script: Sequence[Behaviour], models: Behaviour | None = None, options: Any = None, **config: Any
        ) -> Session:
            return Session(stack.enter_context(ChatEndpoint(script, models)), options or {}, config)

        yield open_session
