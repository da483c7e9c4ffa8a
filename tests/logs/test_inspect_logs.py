"""Inspect's logs as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from flexmem.logs import LogError
from tests.logs.files import INSPECT, content, load, loaded

NOTE = "The vault door has three dials. " + "Turn each of them gently. " * 8


def test_messages_of_an_assistant_that_calls_tools_are_steps() -> None:
    log = loaded(INSPECT, "vault/1")
    assert (log.format, log.kind, log.length, log.sample) == ("inspect", "agent", 5, "vault/1")
    assert log.task == "Open the vault described in /notes and report its number."
    assert [(step.thought, step.action, step.output) for step in log.steps] == [
        ("I read the notes first.", "bash\ncmd: cat /notes/*.txt", NOTE),
        (
            "Two things at once.",
            "python\ncode:\ndials = [4, 8, 15]\nprint(sum(dials))\ntimeout: 30\n\nbash\ncmd: cat /vault/number",
            "python:\n27\n\nbash:\nerror (permission): cat: /vault/number: Permission denied",
        ),
        ("The number cannot be read yet; I think aloud.", "", "Please go on, and use your tools."),
        ("", "bash\ncmd: open-vault --sum 27 && cat /vault/number", "vault 61-B"),
        ("", "submit\nanswer: 61-B", "61-B"),
    ]


def test_what_no_step_shows_is_counted() -> None:
    assert loaded(INSPECT, "vault/1").left_out == {
        "image part": 1,
        "reasoning part": 1,
        "system message before the first step": 1,
    }


def test_without_calls_a_sample_is_a_chat() -> None:
    log = loaded(INSPECT, "7")
    assert (log.kind, log.sample) == ("reader", "7/1")
    assert [message.text for message in log.messages] == [
        "Answer with one word.",
        "Which metal is liquid at room temperature?",
        "Mercury",
    ]


def test_an_epoch_is_chosen_by_number() -> None:
    assert loaded(INSPECT, "vault/1").steps[-1].output == "61-B"
    assert loaded(INSPECT, "vault/2").steps[-1].output == "none"


def test_the_only_sample_needs_no_name() -> None:
    value = content(INSPECT)
    del value["samples"][:2]
    assert load(value).sample == "7/1"


def test_an_error_that_the_result_quotes_is_not_said_twice() -> None:
    value = content(INSPECT)
    value["samples"][0]["messages"][6] |= {"content": "cat: /vault/number: Permission denied, sorry"}
    assert load(value, sample="vault/1").steps[1].output.endswith("bash:\ncat: /vault/number: Permission denied, sorry")


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (None, "log: it has several samples; name one (id/epoch): vault/1, vault/2, 7/1"),
        ("vault", "log: it has several epochs of sample 'vault'; name one (id/epoch): vault/1, vault/2"),
        ("8", "log: it has no sample '8'; there are vault/1, vault/2, 7/1 (id/epoch)"),
        ("vault/3", "log: it has no sample 'vault/3'; there are"),
    ],
)
def test_a_sample_that_is_not_named_or_not_there_is_asked_for(sample: str | None, said: str) -> None:
    with pytest.raises(LogError) as caught:
        load(content(INSPECT), sample=sample)
    assert str(caught.value).startswith(said)


def test_many_samples_are_listed_in_part() -> None:
    value = content(INSPECT)
    value["samples"] = [value["samples"][2] | {"id": number} for number in range(20)]
    with pytest.raises(LogError, match=r"0/1, 1/1, 2/1, 3/1, 4/1, 5/1, 6/1, 7/1 and 12 more$"):
        load(value)


def test_a_sample_that_is_there_twice_is_refused() -> None:
    value = content(INSPECT)
    value["samples"][1]["epoch"] = 1
    for sample in ("vault", "vault/1"):
        with pytest.raises(LogError, match="sample vault/1 is there 2 times; ids are unique within an epoch"):
            load(value, sample=sample)


def without(sample: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in sample.items() if key not in keys}


VAULT = content(INSPECT)["samples"][0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"samples": None, "status": "error"}, "log: the log has no sample (status 'error')"),
        ({"samples": 3}, "log: samples: expected a list of samples, found a number"),
        ({"samples": [3]}, "log: samples[0]: expected a sample: an object with 'id', 'epoch' and 'messages'"),
        ({"samples": [without(VAULT, "id")]}, "log: samples[0]: 'id' is missing; expected a text or a number"),
        ({"samples": [VAULT | {"id": 1.5}]}, "log: samples[0].id: expected a text or a number"),
        ({"samples": [VAULT | {"epoch": "1"}]}, "log: samples[0].epoch: expected a whole number"),
        ({"samples": [without(VAULT, "messages")]}, "log: samples[0]: 'messages' is missing"),
        ({"samples": [VAULT | {"messages": []}]}, "log: samples[0]: sample vault/1 has no message"),
        (
            {"samples": [without(VAULT, "attachments")]},
            "log: samples[0].attachments: '0123456789abcdef0123456789abcdef' is missing, which a message stands on",
        ),
        (
            {"samples": [VAULT | {"messages": [{"role": "ghost", "content": ""}]}]},
            "log: samples[0].messages[0].role: expected one of user, assistant",
        ),
    ],
)
def test_what_is_no_sample_is_named_by_its_place(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(LogError) as caught:
        load(content(INSPECT) | changes)
    assert str(caught.value).startswith(said)
