"""Files as they come: damaged, huge, of another kind. Whatever is wrong is named by file and place."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmem.logs import FORMATS, LogError, LogFormat, load_log
from flexmem.logs.files import MOST_BYTES
from tests.logs.files import BLOCKS, CHAT, INSPECT, TOOL_CALLS, TRAJECTORY, content, load


def refusal(path: Path, raw: bytes) -> str:
    """What is said of a file's content, without the file's name."""
    path.write_bytes(raw)
    with pytest.raises(LogError) as caught:
        load_log(path)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "it is empty; expected JSON, or one JSON object a line"),
        (b" \n\n", "it is empty"),
        (b"[]", "it has no message; expected a list of messages"),
        (b'{"messages": []}', "it has no message"),
        (b"hello", "line 1, column 1: not valid JSON (Expecting value)"),
        (b'[{"role": "user",\n "content": "cut', "line 2, column 13: not valid JSON (Unterminated string"),
        (b'{"role": "user", "content": "a"}\n{"role": "user", "content"\n', "line 2, column 27: not valid JSON"),
        (
            b'{"role": "user", "content": "a"}\n\n[1]\n',
            "line 3: expected a message: an object with 'role' and 'content'",
        ),
        (b'[{"role": "user", "content": "a"}]\nmore', "line 2, column 1: not valid JSON (Extra data)"),
        (b'[{"role": "user", "content": "\xff"}]', "line 1: not text in UTF-8 (byte 0xff)"),
        (b'\n\n"\xc3"', "line 3: not text in UTF-8 (byte 0xc3)"),
        ('[{"role": "user"}]'.encode("utf-16"), "line 1: not text in UTF-8 (byte 0xff)"),
        (b"PK\x03\x04rest", "it is a zip archive, as Inspect's .eval logs are; convert it to JSON first: inspect log"),
        (b"3", "expected chat messages (a list, an object with 'messages', or one message a line), a SWE-agent"),
        (b"null", "expected chat messages"),
        (b'{"steps": [], "info": {}}', "expected chat messages"),
        (b"1" * 5_000, "JSON that can't be read: "),
        (b"[" * 100_000, "JSON that can't be read: "),
    ],
)
def test_what_is_no_log_is_named_with_its_place(raw: bytes, said: str, tmp_path: Path) -> None:
    assert refusal(tmp_path / "log", raw).startswith(said)


def test_what_was_found_instead_is_said(tmp_path: Path) -> None:
    assert refusal(tmp_path / "log", b'{"steps": [], "info": {}}').endswith("found an object with 'steps', 'info'")
    assert refusal(tmp_path / "log", b"3").endswith("found a number")


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.touch()
    os.truncate(path, MOST_BYTES + 1)  # a hole: it takes no disk
    with pytest.raises(LogError, match="it has 268,435,457 bytes, and logs of up to 268,435,456 are read"):
        load_log(path)


def test_a_byte_order_mark_and_blank_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'\xef\xbb\xbf\n{"role": "user", "content": "a"}\n\n{"role": "assistant", "content": "b"}\n\n')
    assert [message.text for message in load_log(path).messages] == ["a", "b"]


def test_line_separators_within_a_text_end_no_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    text = "one\u2028two\x85three"
    lines = [json.dumps({"role": "user", "content": text}, ensure_ascii=False)] * 2
    path.write_text("\n".join(lines), "utf-8")
    assert [message.text for message in load_log(path).messages] == [text, text]


def test_one_message_on_one_line_is_a_chat(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"role": "user", "content": "alone"}\n', "utf-8")
    assert [message.text for message in load_log(path).messages] == ["alone"]


def test_the_format_is_told_by_content() -> None:
    found = [load_log(path, sample=sample).format for path, sample in SAMPLES]
    assert found == ["swe-agent", "inspect", "inspect", "chat", "chat", "chat"]


@pytest.mark.parametrize(
    ("path", "log_format", "said"),
    [
        (TRAJECTORY, "chat", "expected a list of messages, an object with 'messages', or one message a line"),
        (TRAJECTORY, "inspect", "expected an Inspect log: an object with 'eval' and 'samples'"),
        (CHAT, "swe-agent", "expected a SWE-agent trajectory: an object with 'trajectory', a list of steps"),
        (CHAT, "inspect", "expected an Inspect log"),
        (INSPECT, "chat", "expected a list of messages"),
    ],
)
def test_a_format_that_is_asked_for_is_held_to(path: Path, log_format: Any, said: str) -> None:
    with pytest.raises(LogError) as caught:
        load_log(path, log_format)
    assert str(caught.value).startswith(f"{path}: {said}")


@pytest.mark.parametrize("path", [CHAT, TRAJECTORY], ids=lambda path: path.name)
def test_a_sample_of_what_has_none_is_refused(path: Path) -> None:
    with pytest.raises(LogError, match="only an Inspect log has samples"):
        load_log(path, sample="1")


# ---------------------------------------------------------------- anything in any place

SAMPLES = [
    (TRAJECTORY, None),
    (INSPECT, "vault/1"),
    (INSPECT, "7"),
    (CHAT, None),
    (TOOL_CALLS, None),
    (BLOCKS, None),
]
WRONG: tuple[Any, ...] = (None, True, 7, -1e300, "", "x", [], {}, ["x"], {"x": 1})


def problem(value: Any, log_format: LogFormat | None, sample: str | None) -> str | None:
    """What a loader says against a log; None where it reads it."""
    try:
        load(value, log_format, sample)
    except LogError as error:
        return str(error)
    return None


def places(value: Any) -> Iterator[tuple[str | int, ...]]:
    """Paths to everything within a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (key,)
        yield from ((key, *rest) for rest in places(inner))


def replaced(value: Any, place: tuple[str | int, ...], wrong: Any) -> Any:
    changed = copy.deepcopy(value)
    within = changed
    for key in place[:-1]:
        within = within[key]
    within[place[-1]] = wrong
    return changed


@pytest.mark.parametrize(("path", "sample"), SAMPLES[:3] + SAMPLES[4:], ids=lambda value: getattr(value, "name", value))
def test_a_wrong_value_in_any_place_is_read_or_named(path: Path, sample: str | None) -> None:
    whole = content(path)
    refused = 0
    for place in places(whole):
        for wrong in WRONG:
            said = problem(replaced(whole, place, wrong), None, sample)
            assert said is None or said.startswith("log: "), (place, wrong)
            refused += said is not None
    assert refused


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "text", "tool_calls", "messages", "trajectory", "eval", "samples", "id"]
            )
            | st.text(),
            inner,
        )
    ),
)


@given(JSON, st.sampled_from([None, *FORMATS]))
def test_no_json_breaks_a_loader(value: Any, log_format: Any) -> None:
    said = problem(value, log_format, None)
    assert said is None or said.startswith("log: ")
