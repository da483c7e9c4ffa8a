"""How long the own world's tasks are: ``python -m flexmem.benchmarks.appworld.world_lengths [ROOT]`` prints a table."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from flexmem.benchmarks.appworld.inside_process import last_line, run_inside
from flexmem.benchmarks.appworld.installation import Installation
from flexmem.benchmarks.appworld.world import make_world
from flexmem.tokens import count

__all__ = ["TaskLength", "world_lengths"]

LONG_CALLS = range(15, 41)
LONG_TOKENS = range(10_000, 16_001)

_DOCUMENTATION = "api_docs.show_api_doc"
_CALLS_S = 1_800.0


@dataclass(frozen=True, slots=True)
class TaskLength:
    """Of a task's solution: API calls and log-ins among them, and o200k tokens of what is printed of the replies and of
    the documentation of the APIs it calls, ``documents`` of them.
    """

    task_id: str
    calls: int
    log_ins: int
    reply_tokens: int
    documents: int
    document_tokens: int

    @property
    def tokens(self) -> int:
        """All that an agent sees which looks up each API once and prints each reply."""
        return self.reply_tokens + self.document_tokens

    @property
    def is_long(self) -> bool:
        """Whether it is long in calls and in tokens."""
        return self.calls in LONG_CALLS and self.tokens in LONG_TOKENS


def world_lengths(at: Path, installation: Installation | None = None) -> list[TaskLength]:
    """The lengths of all tasks, by running their solutions.

    Raises:
        InsideError: AppWorld failed. InstallationError: it is not installed.
    """
    what = f"measuring tasks in {at}"
    arguments = ["-m", "world", "calls", str(at)]
    out = run_inside(installation or Installation.find(), arguments, root=at, deadline_s=_CALLS_S, what=what)
    return [_length(task_id, told["calls"]) for task_id, told in last_line(out, what).items()]


def _length(task_id: str, calls: list[tuple[str, str]]) -> TaskLength:
    documents = [shown for name, shown in calls if name == _DOCUMENTATION]
    replies = [(name, shown) for name, shown in calls if name != _DOCUMENTATION]
    return TaskLength(
        task_id=task_id,
        calls=len(replies),
        log_ins=sum(name.endswith(".login") for name, _ in replies),
        reply_tokens=sum(count(shown) for _, shown in replies),
        documents=len(documents),
        document_tokens=sum(map(count, documents)),
    )


def main() -> None:
    """Print the table."""
    at = make_world(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    table = Table("task", "calls", "log-ins", "reply tokens", "documents", "their tokens", "tokens", "long")
    for found in world_lengths(at):
        numbers = (found.calls, found.log_ins, found.reply_tokens, found.documents, found.document_tokens, found.tokens)
        table.add_row(found.task_id, *map(str, numbers), "yes" if found.is_long else "")
    Console().print(table)


if __name__ == "__main__":
    main()
