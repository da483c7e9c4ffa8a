"""How AppWorld's environments are run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["EnvironmentSettings"]


class EnvironmentSettings(BaseModel):
    """None of it changes what an episode is asked or how it is scored, except by limits.

    Attributes:
        isolation: ``docker``: a container each. ``process``: a child process, with no isolation at all: an agent's code
            can do to this machine what this user can, and read the ground truth. For machines without Docker.
        servers: environments that run at once.
        image: the image's name; see `flexmem.benchmarks.appworld.image`.
        python: of ``process``: the interpreter of an environment that AppWorld is installed in.
        memory_mb: MiB an environment may take; one takes some 300, and an agent's data is small.
        outputs_mb: MiB of files an environment may write, which count as its memory.
        pids: processes and threads of an environment; AppWorld needs a handful.
        cpus: processors of an environment, None for no limit: steps are short, and wait for the model between.
        max_episodes: after so many, a server is replaced. An episode is a fork that leaves nothing in it, so this only
            bounds what nobody thought of.
        lifetime_s: seconds after which a server ends by itself, even if nobody is left to end it.
        start_s: seconds until a server must be ready; it imports all apps and loads a task, some 5 s of one CPU.
        begin_s: seconds until a task must be loaded (0.2 s of one CPU).
        execute_s: AppWorld's own limit of one execution, of which the agent is told. 100 is AppWorld's default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    isolation: Literal["docker", "process"] = "docker"
    servers: int = Field(2, ge=1)
    image: str = "flexmem/appworld"
    python: Path | None = None
    memory_mb: int = Field(1_024, ge=512)
    outputs_mb: int = Field(128, ge=16)
    pids: int = Field(128, ge=16)
    cpus: float | None = Field(None, gt=0)
    max_episodes: int = Field(20, ge=1)
    lifetime_s: float = Field(6 * 3_600, gt=0)
    start_s: float = Field(180, gt=0)
    begin_s: float = Field(120, gt=0)
    execute_s: int = Field(100, ge=1)
