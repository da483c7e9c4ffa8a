"""What an agent acts in: one task's environment, as the loop sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from flexmem import tokens

OBSERVATION_TOKENS = 2_000  # docs/methods.md 0.5
OBSERVATION_CHARACTERS = 20_000  # AppWorld's own agents cut there


@dataclass(frozen=True)
class Observation:
    """What an action brought. ``text`` is cut already; ``characters`` is its length before that, ``done`` whether the
    task is closed, ``facts`` what the environment has to say of the action beyond its text (none of it is shown).
    """

    text: str
    characters: int
    done: bool = False
    facts: Mapping[str, str] | None = None


class Environment(Protocol):
    """One task's environment, leased for one episode."""

    async def act(self, action: str) -> Observation:
        """Carry out an action.

        Raises:
            EpisodeEndedError: it passed a limit of the sandbox, or broke it (`flexmem.sandbox.errors`).
            SandboxError: the sandbox failed for reasons outside the episode.
        """
        ...


def cut_observation(text: str, limit: int = OBSERVATION_TOKENS) -> str:
    """An output's head and tail of at most ``limit`` tokens: cut once, before agent and memory see it, alike for every
    method (docs/methods.md 0.5). Characters are cut first, so that megabytes are never counted.
    """
    if len(text) > OBSERVATION_CHARACTERS:
        half = OBSERVATION_CHARACTERS // 2
        omitted = len(text) - 2 * half
        text = f"{text[:half]}\n[... {omitted} characters omitted ...]\n{text[-half:]}"
    return tokens.head_and_tail(text, limit)
