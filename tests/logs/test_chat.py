"""Chat messages as chat APIs log them."""

from __future__ import annotations

from typing import Any

import pytest

from flexmem.history import Turn
from flexmem.logs import LogError
from flexmem.logs.dates import read_day, sessions_by_day
from flexmem.memory.chat import message_text
from tests.logs.files import BLOCKS, CHAT, TOOL_CALLS, content, load, loaded


def test_a_message_a_line_keeps_names_days_and_words() -> None:
    log = loaded(CHAT)
    assert (log.format, log.kind, log.item, log.length, log.left_out) == ("chat", "reader", "message", 19, {})
    assert log.messages[0].name == "Mira"
    assert log.messages[0].text == "Morning! I moved the beehives behind the chapel, all seven of them."
    assert list(dict.fromkeys(message.day for message in log.messages)) == ["2026-03-02", "2026-04-11", "2026-07-01"]


def test_calls_and_results_are_kept_as_they_were_sent() -> None:
    log = loaded(TOOL_CALLS)
    sent = content(TOOL_CALLS)["messages"]
    messages = [message.as_sent() for message in log.messages]
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert messages[2]["tool_calls"] == sent[2]["tool_calls"]
    assert message_text(messages[2]) == message_text(sent[2])
    assert messages[3] == sent[3]
    assert messages[7]["content"] == "I can only look up the next trains."


def test_what_is_no_text_is_counted() -> None:
    assert loaded(TOOL_CALLS).left_out == {"image_url part": 1, "reasoning part": 1}
    assert loaded(BLOCKS).left_out == {"thinking part": 1}


def test_results_among_a_users_parts_are_messages_of_their_own() -> None:
    log = loaded(BLOCKS)
    assert [(message.role, message.text) for message in log.messages] == [
        ("system", "You keep a pantry list."),
        ("user", "How much flour is left?"),
        ("assistant", "Let me look."),
        ("tool", "flour: 2.5 kg, top shelf"),
        ("user", "And please say where it is."),
        ("assistant", "Two and a half kilograms, on the top shelf."),
        ("user", "Thanks."),
    ]
    (call,) = log.messages[2].calls
    assert (call.name, call.by_name(), call.call_id) == ("pantry", {"item": "flour"}, "toolu_1")
    assert log.messages[3].call_id == "toolu_1"


def test_an_older_function_call_is_a_call() -> None:
    call = {"name": "look", "arguments": "not JSON"}
    log = load([{"role": "assistant", "content": None, "function_call": call}])
    (message,) = log.messages
    assert message.as_sent()["tool_calls"][0]["function"] == call
    assert message.calls[0].by_name() == "not JSON"


def test_fields_that_are_not_read_are_counted_and_bookkeeping_is_passed_over() -> None:
    said = {"role": "user", "content": "a", "id": "x", "annotations": [1], "audio": None, "extra": {"cost": 1}}
    assert load([said, said]).left_out == {"field 'annotations'": 2, "field 'extra'": 2}


def test_a_closing_message_of_role_exit_is_counted() -> None:
    log = load([{"role": "user", "content": "a"}, {"role": "exit", "content": "Submitted"}])
    assert (log.length, log.left_out) == (1, {"message of role 'exit'": 1})


def test_a_server_side_call_is_text() -> None:
    part = {"type": "tool_use", "tool_type": "web_search", "id": "w", "name": "search", "arguments": '{"q": "bees"}'}
    log = load([{"role": "assistant", "content": [part | {"result": "42 hits"}]}])
    assert log.messages[0].text == 'search {"q": "bees"}\n42 hits'


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (
            [{"role": "ghost", "content": "a"}],
            "log: [0].role: expected one of user, assistant, system, developer, tool",
        ),
        ([{"content": "a"}], "log: [0]: 'role' is missing; expected one of user"),
        ([{"role": "user"}], "log: [0]: 'content' is missing; expected text, a list of parts, or tool calls"),
        ([{"role": "user", "content": 3}], "log: [0].content: expected text or a list of parts, found a number"),
        ([{"role": "user", "content": [3]}], "log: [0].content[0]: expected a part: text, or an object with 'type'"),
        ([{"role": "user", "content": [{"type": "text"}]}], "log: [0].content[0]: 'text' is missing"),
        ([{"role": "user", "content": "a", "name": 1}], "log: [0].name: expected text, found a number"),
        (
            [{"role": "assistant", "tool_calls": [{"function": {}}]}],
            "log: [0].tool_calls[0]: 'name' is missing; expected the name of the tool that was called",
        ),
        ([{"role": "user", "content": "a"}, "b"], "log: [1]: expected a message: an object with 'role' and 'content'"),
        ([{"role": "user", "content": "a", "date": True}], "log: [0].date: expected a time: Unix seconds or"),
        ([{"role": "user", "content": "a", "timestamp": 1e300}], "log: [0].timestamp: the number 1e+300 is no time"),
        ([{"messages": [], "id": 1}], "log: [0]: a conversation, not a message; expected a list of messages"),
    ],
)
def test_what_is_no_message_is_named_by_its_place(messages: list[Any], said: str) -> None:
    with pytest.raises(LogError) as caught:
        load(messages)
    assert str(caught.value).startswith(said)


def test_an_object_names_the_place_within_its_messages() -> None:
    with pytest.raises(LogError, match=r"^log: messages\[1\]\.role: expected one of .*, found the text 'ghost'$"):
        load({"messages": [{"role": "user", "content": "a"}, {"role": "ghost", "content": "b"}]})


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("2024-05-20T23:30:00+02:00", "2024-05-20"),
        ("2024-05-20T23:30:00Z", "2024-05-20"),
        (" 2024-05-20 ", "2024-05-20"),
        ("8 May, 2023", "8 May, 2023"),
        (1_716_163_200, "2024-05-20"),
        (1_716_163_200_000, "2024-05-20"),
        (1_716_163_200.5, "2024-05-20"),
        (0, "1970-01-01"),
    ],
)
def test_a_day_is_read_from_what_logs_write(written: Any, day: str) -> None:
    assert read_day(written, "log") == day


def test_a_session_begins_where_the_day_changes() -> None:
    days = [None, "1 May", None, "1 May", "2 May", "1 May"]
    turns = [Turn(str(number), "user", "said") for number in range(6)]
    sessions = sessions_by_day(days, turns)
    assert [(session.date, [turn.turn_id for turn in session.turns]) for session in sessions] == [
        (None, ["0"]),
        ("1 May", ["1", "2", "3"]),
        ("2 May", ["4"]),
        ("1 May", ["5"]),
    ]
