"""Counting: additive where it says so, exact against tiktoken, bounded cuts, and a table that needs no network."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tiktoken
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from flexmem import tokens

# The published digest of o200k_base.tiktoken, as tiktoken itself pins it.
PUBLISHED_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

# Whatever has a rule of its own in o200k's pattern or in Python's notion of blank space, and what is easily mishandled.
NASTY = [
    *("\n", "\r\n", "\r", "\n\n", " ", "  ", "\t", " \n", "\n ", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u3000"),
    *("/", "//", "/x", "!", "!\n", "--", "};", "[...]", "### u07", "'s", "'LL", "'", "_", ".", "...", "#", "$"),
    *(
        "a",
        "Ab",
        "ABC",
        "hello",
        " world",
        "1",
        "12",
        "1234",
        "é",
        "e\u0301",
        "\u0301",
        "日本",
        "。",
        "🙂",
        "👩‍👩‍👧",
        "𓀀",
    ),
    *("\ud83d", "\ude00", "\udfff", "\0", "\ufeff", "\ufffd", "<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>"),
]
nasty_text = st.lists(st.sampled_from(NASTY) | st.text(max_size=3), max_size=12).map("".join)


def reference(text: str) -> int:
    """tiktoken's own count."""
    return len(tiktoken.get_encoding("o200k_base").encode_ordinary(text))


@pytest.fixture(autouse=True, scope="module")
def table() -> None:
    """tiktoken's table is in place before `reference` asks for it."""
    tokens.encoding()


# ---------------------------------------------------------------- counting


@settings(deadline=None)
@given(nasty_text)
def test_counts_are_tiktokens(text: str) -> None:
    assert tokens.count(text) == reference(text)


@pytest.mark.parametrize("special", ["<|endoftext|>", "<|endofprompt|>"])
def test_special_tokens_count_as_the_text_they_are(special: str) -> None:
    assert tokens.count(special) > 1
    assert tokens.count(f"a {special} b\n") == reference(f"a {special} b\n")


def test_a_lone_surrogate_counts_as_the_replacement_character() -> None:
    assert tokens.count("a \ud800 b") == tokens.count("a \ufffd b")


def test_counts_of_plain_words_are_what_a_reader_of_these_tests_counts() -> None:
    """The worked examples elsewhere rely on it: a common word with its blank is one token, a line break is one."""
    assert tokens.count("red blue green\n") == 4
    assert tokens.count("red blue green\nred\n") == 6


# ---------------------------------------------------------------- additivity


@settings(max_examples=400, deadline=None)
@given(nasty_text, nasty_text)
@example("x!", "a/x")
@example("", "   y")
@example("a  ", " \tb")
@example("a\r", "'s")
@example("a\n\n  ", "\u0301b")
@example("1", "23")
def test_counts_add_up_over_boundaries_that_join_exactly(head: str, tail: str) -> None:
    before = head + "\n"
    assume(tokens.joins_exactly(before, tail))
    assert reference(before + tail) == reference(before) + reference(tail)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x!\n", "/x"),  # "!\n/" is one pre-token
        ("};\n", "//x"),
        ("a\n", "\nb"),  # two line breaks are one token
        ("a\n", "   \nb"),
        ("a\n", "\r\nb"),
        ("hel", "lo"),
        ("a ", "b"),
    ],
)
def test_boundaries_over_which_counts_do_not_add_up_are_not_called_exact(before: str, after: str) -> None:
    assert not tokens.joins_exactly(before, after)
    assert reference(before + after) != reference(before) + reference(after)


@settings(max_examples=100, deadline=None)
@given(
    st.text("\n \t", max_size=6),
    st.integers(0, 9000),
    st.sampled_from(["\n", " \n", " ", "\t\n"]),
    st.integers(0, 9000),
    st.sampled_from([" ", "\t"]),
)
@example("", 3000, "\n", 2000, " ")
@example("", 0, " ", 5000, " ")
def test_counts_add_up_around_blank_runs_too_long_for_tiktoken(
    lead: str, before_length: int, before_unit: str, after_length: int, after_unit: str
) -> None:
    before = "x" + lead + before_unit * before_length + "\n"
    after = after_unit * after_length + "y"
    assert tokens.joins_exactly(before, after)
    assert tokens.count(before + after) == tokens.count(before) + tokens.count(after)


@settings(max_examples=300, deadline=None)
@given(st.lists(nasty_text, max_size=6), st.booleans())
def test_counting_parts_equals_encoding_their_concatenation(texts: list[str], as_lines: bool) -> None:
    parts = [text + "\n" if as_lines else text for text in texts]
    assert tokens.count_parts([(part, tokens.count(part)) for part in parts]) == reference("".join(parts))


def test_counting_parts_encodes_nothing_where_all_boundaries_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [("red\n", 2), ("blue\n", 2), ("  green\n", 3)]

    def refuse(text: str) -> int:
        raise AssertionError(f"encoded again: {text!r}")

    monkeypatch.setattr(tokens, "count", refuse)
    assert tokens.count_parts(parts) == 7


# ---------------------------------------------------------------- large and blank texts


@pytest.mark.parametrize("blank", [" ", "\n", "\t", " \n", "\r\n", "\u3000"])
def test_a_million_blanks_can_be_counted(blank: str) -> None:
    text = "a" + blank * (1_000_000 // len(blank)) + "b\n"
    counted = tokens.count(text)
    assert 0 < counted <= len(text)
    # Adding a line to it still adds up.
    assert tokens.count(text + "red\n") == counted + 2


def test_a_line_of_ten_megabytes_can_be_counted() -> None:
    words = 10 * 2**20 // len(" green")
    assert tokens.count(" green" * words + "\n") == words + 1


# ---------------------------------------------------------------- cutting to a limit

wide_text = nasty_text | st.text(st.sampled_from("𓀀🙂é日a \n"), max_size=80)


@settings(max_examples=200, deadline=None)
@given(wide_text, st.integers(-1, 60))
def test_the_longest_prefix_fits_and_one_character_more_does_not(text: str, limit: int) -> None:
    length = tokens.longest_prefix(text, limit)
    assert tokens.count(text[:length]) <= max(limit, 0)
    assert length == len(text) or limit <= 0 or tokens.count(text[: length + 1]) > limit


@settings(max_examples=200, deadline=None)
@given(wide_text, st.integers(-1, 60))
def test_the_longest_suffix_fits_and_one_character_more_does_not(text: str, limit: int) -> None:
    length = tokens.longest_suffix(text, limit)
    assert tokens.count(text[len(text) - length :]) <= max(limit, 0)
    assert length == len(text) or limit <= 0 or tokens.count(text[-(length + 1) :]) > limit


@settings(max_examples=200, deadline=None)
@given(wide_text | st.tuples(nasty_text, st.integers(1, 60)).map(lambda drawn: drawn[0] * drawn[1]), st.integers(1, 80))
@example("𓀀" * 10, 20)  # ten characters, forty tokens
@example("/x" * 22, 20)  # the marker's end and the tail's "/" join to one token more
def test_head_and_tail_are_never_over_the_limit(text: str, limit: int) -> None:
    try:
        cut = tokens.head_and_tail(text, limit)
    except ValueError:
        assert tokens.count(text) > limit
        assert limit <= 24  # the marker takes about eleven tokens, and the joins a few
        return
    assert tokens.count(cut) <= limit
    if tokens.count(text) <= limit:
        assert cut == text


@settings(deadline=None)
@given(st.lists(st.sampled_from(["red", "blue", "green"]), min_size=60, max_size=200), st.integers(20, 50))
def test_head_and_tail_are_the_texts_own_around_a_marker_that_counts_the_rest(words: list[str], limit: int) -> None:
    text = " ".join(words)
    cut = tokens.head_and_tail(text, limit, marker="|{omitted}|")
    head, omitted, tail = cut.split("|")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + int(omitted) + len(tail) == len(text)
    assert abs(tokens.count(head) - tokens.count(tail)) <= 2


def test_a_limit_below_the_marker_is_refused() -> None:
    with pytest.raises(ValueError, match="can't hold a head, a tail and the marker"):
        tokens.head_and_tail("red " * 100, 5)


# ---------------------------------------------------------------- the table


def test_the_table_is_rebuilt_to_the_byte_and_a_damaged_one_repaired(tmp_path: Path) -> None:
    path = tokens.provide_table(tmp_path)
    whole = path.read_bytes()
    assert hashlib.sha256(whole).hexdigest() == PUBLISHED_SHA256
    sound = path.stat()
    assert tokens.provide_table(tmp_path) == path
    assert path.stat().st_mtime_ns == sound.st_mtime_ns  # a sound table is left alone
    path.write_bytes(whole[: len(whole) // 2])
    tokens.provide_table(tmp_path)
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]  # no temporary file stays


def test_a_table_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_TABLE_SIZE", 10)
    with pytest.raises(tokens.TokenTableError, match=r"install quicktok-v1==0\.4\.0"):
        tokens.provide_table(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"TIKTOKEN_CACHE_DIR": "/one", "DATA_GYM_CACHE_DIR": "/two"}, Path("/one")),
        ({"DATA_GYM_CACHE_DIR": "/two"}, Path("/two")),
        ({"TIKTOKEN_CACHE_DIR": ""}, None),
    ],
)
def test_the_table_is_looked_for_where_tiktoken_looks(
    environment: dict[str, str], folder: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert tokens.table_folder() == folder


WITHOUT_NETWORK = """
    import socket

    def refuse(*args, **kwargs):
        raise OSError("the test forbids the network")

    socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
    import flexmem.memory.registry
    from flexmem import tokens

    flexmem.memory.registry.methods()
    assert tokens.encoding.cache_info().currsize == 0, "importing the methods loaded the token table"
    print(tokens.count("red blue green"))
"""


def test_a_fresh_machine_counts_without_the_network_and_only_when_asked(tmp_path: Path) -> None:
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path / "new")}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT_NETWORK)], env=environment, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout.strip()) == (0, "3"), run.stderr
