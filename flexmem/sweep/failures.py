"""Failures of episodes: what can go wrong, and what a run makes of it. The one place where exceptions become outcomes.

    class            example                            retried            in the denominator
    infrastructure   worker killed, 5xx, Docker down    yes, then listed   no: the cell is incomplete until it has run
    limit            the model's context overflows, an  no                 yes, as a failure
                     agent's step, time or memory limit
    method           the method raised, broke its       no                 yes, as a failure, and flagged
                     budget or the protocol
    agent            the model refused, the agent broke no                 yes
                     its sandbox
    configuration    no key, no quota, unknown model,   no                 no: the run stops
                     replies that can't be kept

An episode that failed for reasons of its own (limit, method, agent) is finished: it has a row in ``episodes`` with a
score of 0. One that failed for reasons outside it (infrastructure, configuration) is not: it has a row in ``failures``
and is run again by the same command.
"""

from __future__ import annotations

from typing import Literal

from flexmem.benchmarks.agent_protocol import GradingError
from flexmem.llm.errors import ContextOverflow, ModelError, Refused, Truncated
from flexmem.llm.reply_store import ReplyStoreError
from flexmem.retrieval.embedding import EmbeddingError
from flexmem.sandbox.errors import EpisodeEndedError, SandboxError
from flexmem.sweep.config import ConfigError

ErrorClass = Literal["infrastructure", "limit", "method", "agent", "configuration"]

FINAL: frozenset[ErrorClass] = frozenset({"limit", "method", "agent"})


def classify(error: BaseException) -> ErrorClass:
    """The class of whatever an episode or a build raised. What nothing else claims is the method's own fault."""
    if isinstance(error, ModelError):
        if error.stops_run:
            return "configuration"
        if isinstance(error, ContextOverflow | Truncated):
            return "limit"
        if isinstance(error, Refused):
            return "agent"
        return "infrastructure"
    if isinstance(error, EmbeddingError | ConfigError | ReplyStoreError):
        return "configuration"
    if isinstance(error, SandboxError | EpisodeEndedError | GradingError):
        return error.failure
    if isinstance(error, OSError | MemoryError | TimeoutError) or _from_ray(error):
        return "infrastructure"
    return "method"


def _from_ray(error: BaseException) -> bool:
    """Whether Ray itself failed, told by the module's name: this module is imported where Ray may not be."""
    return type(error).__module__.split(".")[0] == "ray"


def describe(error: BaseException) -> str:
    """One line for tables; of an error that came through Ray, its cause, without the traceback that Ray adds."""
    cause = getattr(error, "cause", None) if _from_ray(error) else None
    error = cause if isinstance(cause, BaseException) else error
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:2_000] if text else type(error).__name__
