"""What a sandbox is marked with: whose it is, for which run, and until when. Containers carry it as labels, folders and
child processes in a file.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from flexmem.sandbox.owner import Process, this_process

__all__ = ["OWNER", "Mark", "run_name"]

OWNER = "flexmem.owner"
_RUN, _NODE, _EPISODE, _DEADLINE = "flexmem.run", "flexmem.node", "flexmem.episode", "flexmem.deadline"


def run_name(folder: Path) -> str:
    """How a run is named in marks: its output folder."""
    return str(folder.resolve())


@dataclass(frozen=True, slots=True)
class Mark:
    """``deadline`` is in Unix seconds: nobody needs the sandbox after it. ``episode`` is empty for a sandbox that
    serves one episode after the other.
    """

    run: str
    node: str
    owner: Process
    deadline: float
    episode: str = ""

    @classmethod
    def of_this_process(cls, run: str, deadline: float, episode: str = "") -> Self:
        """The mark of a sandbox that this process starts."""
        return cls(run, platform.node(), this_process(), deadline, episode)

    def labels(self) -> dict[str, str]:
        """As Docker takes them."""
        return {
            _RUN: self.run,
            _NODE: self.node,
            OWNER: str(self.owner),
            _EPISODE: self.episode,
            _DEADLINE: f"{self.deadline:.0f}",
        }

    @classmethod
    def parse(cls, labels: Mapping[str, str]) -> Self:
        """The mark that `labels` wrote.

        Raises:
            ValueError: it is none.
        """
        try:
            owner = Process.parse(labels[OWNER])
            return cls(labels[_RUN], labels[_NODE], owner, float(labels[_DEADLINE]), labels[_EPISODE])
        except KeyError as missing:
            raise ValueError(f"the label {missing} is missing") from None
