"""An agent's episode of a run, as a log: what would another memory have shown of it? No environment is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flexmem.history import Step
from flexmem.logs.log import Log
from flexmem.logs.problems import LogError

_NAMED = 5  # episodes that a message names


def load_episode(run: Path, episode: str | None) -> Log:
    """Read a run's trajectory. ``episode``: the beginning of its key (column ``episode`` of the table ``steps``) that
    no other has; None where the run has one episode only.

    Raises:
        LogError: the folder holds no steps, or the episode is not one of them.
    """
    import pyarrow.dataset as ds

    from flexmem.dataset import open_table

    try:
        steps = open_table(run / "steps")
    except FileNotFoundError as error:
        raise LogError(f"{run}: holds no steps of an agent; give the folder of a run over an agent's tasks") from error
    keys = sorted(set(steps.to_table(columns=["episode"]).column("episode").to_pylist()))
    found = [key for key in keys if key.startswith(episode or "")]
    if len(found) != 1:
        what = f"{len(found)} episodes begin with {episode!r}" if episode else f"there are {len(found)} episodes"
        named = ", ".join((found or keys)[:_NAMED])
        raise LogError(f"{run}: {what}; give --sample the key of one, such as {named}")
    table = steps.to_table(
        columns=["step", "kind", "thought", "action", "output"], filter=ds.field("episode") == found[0]
    )
    rows = sorted(table.to_pylist(), key=lambda row: row["step"])
    taken = tuple(_step(row) for row in rows if row["kind"] != "task")
    if not taken:
        raise LogError(f"{run}: episode {found[0]} has no step")
    task = next((row["output"] for row in rows if row["kind"] == "task"), "")
    return Log(str(run), "run", steps=taken, task=task, language="python", sample=found[0])


def _step(row: dict[str, Any]) -> Step:
    return Step(row["step"], row["action"] or "", row["output"] or "", row["thought"] or "")
