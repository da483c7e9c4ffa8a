"""Logs of Inspect (inspect_ai) as JSON: an object with ``eval`` and ``samples``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from flexmem.logs.calls import as_steps, before_first_step, has_calls, task_of
from flexmem.logs.files import LogFile
from flexmem.logs.log import Log
from flexmem.logs.messages import read_messages
from flexmem.logs.problems import LogError, a_list, an_object, expected, member

_ATTACHMENT = re.compile(r"attachment://([0-9a-f]{32})")
_NAMED_SAMPLES = 8  # of them an error lists so many


def load_inspect(file: LogFile, sample: str | None = None) -> Log:
    """One sample's messages: steps where its assistant calls tools, else a chat. ``sample`` is its id, or ``id/epoch``;
    None takes the only one.

    Raises:
        LogError: it is no such log, has no such sample or several, or the sample has no message.
    """
    wanted = "an Inspect log: an object with 'eval' and 'samples'"
    value = file.value
    if file.lines is not None or not isinstance(value, Mapping) or "eval" not in value:
        raise expected(file.source, wanted, value)
    number, found = _chosen(_samples(value, file.source, wanted), sample, file.source)
    place = f"{file.source}: samples[{number}]"
    listed = a_list(member(found, "messages", place, "a list of messages"), f"{place}.messages", "a list of messages")
    left_out: Counter[str] = Counter()
    messages = read_messages(_attached(listed, found, place), f"{place}.messages", left_out)
    if not messages:
        raise LogError(f"{place}: sample {_name(found)} has no message")
    if not has_calls(messages):
        return Log(file.source, "inspect", tuple(messages), sample=_name(found), left_out=dict(left_out))
    for message in before_first_step(messages):
        left_out[f"{message.role} message before the first step"] += 1
    return Log(
        file.source,
        "inspect",
        steps=tuple(as_steps(messages)),
        task=task_of(messages) or _input(found),
        sample=_name(found),
        left_out=dict(left_out),
    )


def _samples(value: Mapping[str, Any], source: str, wanted: str) -> list[Mapping[str, Any]]:
    samples = a_list(value.get("samples") or [], f"{source}: samples", "a list of samples")
    if not samples:
        raise LogError(f"{source}: the log has no sample (status {value.get('status')!r}); expected {wanted}")
    return [_sample(sample, f"{source}: samples[{number}]") for number, sample in enumerate(samples)]


def _sample(value: Any, place: str) -> Mapping[str, Any]:
    sample = an_object(value, place, "a sample: an object with 'id', 'epoch' and 'messages'")
    found = member(sample, "id", place, "a text or a number")
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise expected(f"{place}.id", "a text or a number", found)
    epoch = sample.get("epoch", 1)
    if isinstance(epoch, bool) or not isinstance(epoch, int):
        raise expected(f"{place}.epoch", "a whole number", epoch)
    return sample


def _chosen(samples: list[Mapping[str, Any]], wanted: str | None, source: str) -> tuple[int, Mapping[str, Any]]:
    """The sample that is asked for, and its position."""
    if wanted is None:
        found = list(enumerate(samples))
    else:
        found = [(n, s) for n, s in enumerate(samples) if wanted in (str(s["id"]), _name(s))]
    if len(found) == 1:
        return found[0]
    names = [_name(sample) for _, sample in found or enumerate(samples)]
    listed = ", ".join(names[:_NAMED_SAMPLES]) + (
        f" and {len(names) - _NAMED_SAMPLES} more" if len(names) > _NAMED_SAMPLES else ""
    )
    if not found:
        raise LogError(f"{source}: it has no sample {wanted!r}; there are {listed} (id/epoch)")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise LogError(f"{source}: sample {twice} is there {names.count(twice)} times; ids are unique within an epoch")
    asked = "several samples" if wanted is None else f"several epochs of sample {wanted!r}"
    raise LogError(f"{source}: it has {asked}; name one (id/epoch): {listed}")


def _name(sample: Mapping[str, Any]) -> str:
    return f"{sample['id']}/{sample.get('epoch', 1)}"


def _attached(value: Any, sample: Mapping[str, Any], place: str) -> Any:
    """Messages with their attachments in place: long texts that the log keeps once, apart from where they stand."""
    attachments = an_object(sample.get("attachments") or {}, f"{place}.attachments", "an object of texts")

    def text(found: re.Match[str]) -> str:
        if not isinstance(attachments.get(found[1]), str):
            raise LogError(f"{place}.attachments: {found[1]!r} is missing, which a message stands on")
        return str(attachments[found[1]])

    def resolved(value: Any) -> Any:
        if isinstance(value, str):
            return _ATTACHMENT.sub(text, value)
        if isinstance(value, list):
            return [resolved(item) for item in value]
        if isinstance(value, dict):
            return {key: resolved(item) for key, item in value.items()}
        return value

    return resolved(value)


def _input(sample: Mapping[str, Any]) -> str:
    found = sample.get("input")
    return found if isinstance(found, str) else ""
