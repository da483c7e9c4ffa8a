"""SWE-agent's trajectories (``.traj``): an object with ``trajectory``, a list of steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from flexmem.history import Step
from flexmem.logs.content import read_content
from flexmem.logs.files import LogFile
from flexmem.logs.log import Log
from flexmem.logs.problems import LogError, a_list, an_object, expected, member, text_or_none

_STEP = "a step: an object with 'action' and 'observation'"
_READ = frozenset({"action", "observation", "thought", "response", "execution_time"})
_FRAME = re.compile(r"^\s*```.*$|</?\w+>", re.MULTILINE)  # fences and tags that a reply puts around its action


def load_swe_agent(file: LogFile) -> Log:
    """The file's steps; the task is the first message of the user in its ``history`` that is no demonstration.

    Raises:
        LogError: it is no trajectory, or has no step.
    """
    wanted = "a SWE-agent trajectory: an object with 'trajectory', a list of steps"
    value = file.value
    if file.lines is not None or not isinstance(value, Mapping) or "trajectory" not in value:
        raise expected(file.source, wanted, value)
    steps = a_list(value["trajectory"], f"{file.source}: trajectory", wanted)
    if not steps:
        raise LogError(f"{file.source}: its trajectory has no step")
    left_out: Counter[str] = Counter()
    return Log(
        file.source,
        "swe-agent",
        steps=tuple(_step(step, n, f"{file.source}: trajectory[{n - 1}]", left_out) for n, step in enumerate(steps, 1)),
        task=_task(value.get("history"), f"{file.source}: history"),
        language="bash",
        left_out=dict(left_out),
    )


def _step(value: Any, number: int, place: str, left_out: Counter[str]) -> Step:
    step = an_object(value, place, _STEP)
    action = text_or_none(member(step, "action", place, _STEP), f"{place}.action")
    output = text_or_none(member(step, "observation", place, _STEP), f"{place}.observation")
    thought = text_or_none(step.get("thought"), f"{place}.thought")
    response = text_or_none(step.get("response"), f"{place}.response")
    if not thought and not action:
        thought = response  # a reply that no action could be read from
    elif _says_more(response, thought, action):
        left_out["raw response that says more than thought and action"] += 1
    for key, content in step.items():
        if key not in _READ and content not in (None, "", [], {}):
            left_out[f"field {key!r}"] += 1
    return Step(number, action, output, thought)


def _says_more(response: str, thought: str, action: str) -> bool:
    """Whether something is left of a reply beside what was parsed out of it."""
    for parsed in (thought.strip(), action.strip()):
        if parsed:
            response = response.replace(parsed, "", 1)
    return bool(_FRAME.sub("", response).strip())


def _task(history: Any, place: str) -> str:
    for number, value in enumerate(a_list([] if history is None else history, place, "a list of messages")):
        at = f"{place}[{number}]"
        message = an_object(value, at, "a message: an object with 'role' and 'content'")
        if message.get("role") == "user" and not message.get("is_demo"):
            return read_content(message.get("content"), f"{at}.content", Counter()).text
    return ""
