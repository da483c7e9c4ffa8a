"""Tokens of ``o200k_base``: T(x) of the specification (docs/methods.md 0.2).

Counting is the hot path of a rendering, so it is *additive* where that is exact. Where ``a`` ends with a newline and
``b`` starts neither with ``/`` nor with blank
space that runs into a line break, ``count(a + b) == count(a) + count(b)``: no pre-token of o200k reaches over such a
boundary. `joins_exactly` tells whether a
boundary is of that kind; `count_parts` adds counts over those and encodes the rest as one text.

tiktoken downloads its table on first use. `encoding` first writes the byte-identical table where tiktoken looks for it,
out of the ``quicktok-v1`` package, so that
no network is needed.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import tiktoken

from flexmem.errors import FlexmemError

_TABLE_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"  # SHA-1 of the table's address: tiktoken's name for it
_TABLE_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_TABLE_SIZE = 199_998

# tiktoken's regex engine overflows its stack on a run of some hundred thousand blanks, so longer runs are cut.
_BLANK_RUN = 4096
_LONG_BLANK = re.compile(rf"\s{{{_BLANK_RUN},}}")
_BLANK_INTO_BREAK = re.compile(r"\s*[\r\n]")


class TokenTableError(FlexmemError, RuntimeError):
    """The o200k_base table could not be built or is not the expected one."""


def table_folder() -> Path | None:
    """The folder in which tiktoken looks for its tables, or None where the user switched that off."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable]) if os.environ[variable] else None
    return Path(tempfile.gettempdir()) / "data-gym-cache"


def provide_table(folder: Path) -> Path:
    """Write the o200k_base table into ``folder`` unless a sound one is there; atomic, so that processes may race.

    Raises:
        TokenTableError: the rebuilt table's SHA-256 is not the published one (another version of quicktok-v1).
    """
    path = folder / _TABLE_FILE
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == _TABLE_SHA256:
        return path
    import quicktok

    source = quicktok.get_encoding("o200k_base")
    table = b"".join(
        base64.b64encode(source.decode_single_token_bytes(rank)) + b" %d\n" % rank for rank in range(_TABLE_SIZE)
    )
    digest = hashlib.sha256(table).hexdigest()
    if digest != _TABLE_SHA256:
        raise TokenTableError(
            f"the o200k_base table rebuilt from quicktok-v1 has SHA-256 {digest}, not {_TABLE_SHA256}; "
            "install quicktok-v1==0.4.0"
        )
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=_TABLE_FILE)
    with os.fdopen(handle, "wb") as file:
        file.write(table)
    os.replace(temporary, path)
    return path


@cache
def encoding() -> tiktoken.Encoding:
    """The o200k_base encoding, loaded once a process, without the network unless the user switched tiktoken's cache
    off.
    """
    folder = table_folder()
    if folder is not None:
        provide_table(folder)
    return tiktoken.get_encoding("o200k_base")


def count(text: str) -> int:
    """T(text). Special tokens count as the plain text they are; lone surrogates as U+FFFD; any length is allowed."""
    if len(text) > _BLANK_RUN and _LONG_BLANK.search(text):
        return sum(len(encoding().encode_ordinary(part)) for part in _without_long_blanks(text))
    return len(encoding().encode_ordinary(text))


def _without_long_blanks(text: str) -> Iterable[str]:
    """``text`` in parts without a long run of blank space. A run is cut after its last line break, and what is before
    and after each from its own start: so the cuts of a text are those of its halves wherever `joins_exactly` holds.
    """
    start = 0
    for run in _LONG_BLANK.finditer(text):
        first, past = run.span()
        middle = max(first, *(text.rfind(end, first, past) + 1 for end in "\r\n"))
        for stretch in (range(first + _BLANK_RUN, middle, _BLANK_RUN), range(middle, past + 1, _BLANK_RUN)):
            for cut in stretch:
                yield text[start:cut]
                start = cut
    yield text[start:]


def starts_plainly(text: str) -> bool:
    """Whether ``text`` may follow a newline without changing either side's tokens."""
    return not text.startswith("/") and _BLANK_INTO_BREAK.match(text) is None


def joins_exactly(before: str, after: str) -> bool:
    """Whether T(before + after) == T(before) + T(after) is known without encoding."""
    return not before or not after or (before.endswith("\n") and starts_plainly(after))


def count_parts(parts: Iterable[tuple[str, int]]) -> int:
    """T of the parts' concatenation, given each part's count; only runs with an inexact boundary are encoded again."""
    total = 0
    run = ""
    run_count = 0
    joined = False
    for text, tokens in parts:
        if not text:
            continue
        if joins_exactly(run, text):
            total += count(run) if joined else run_count
            run, run_count, joined = text, tokens, False
        else:
            run += text
            joined = True
    return total + (count(run) if joined else run_count)


def longest_prefix(text: str, limit: int) -> int:
    """The largest number of leading characters found whose tokens are at most ``limit`` (0 where not even one fits).

    Counts are not monotonic to the token in a prefix's length, so this searches by halving: the result fits for sure
    and is the largest to within a
    few characters.
    """
    if limit <= 0:
        return 0
    low, high = 0, min(len(text), 4 * limit)
    while high < len(text) and count(text[:high]) <= limit:
        low, high = high, min(len(text), 2 * high)
    if high == len(text) and count(text) <= limit:
        return len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if count(text[:middle]) <= limit:
            low = middle
        else:
            high = middle
    return low


def longest_suffix(text: str, limit: int) -> int:
    """As `longest_prefix`, for trailing characters."""
    if limit <= 0:
        return 0
    low, high = 0, min(len(text), 4 * limit)
    while high < len(text) and count(text[-high:]) <= limit:
        low, high = high, min(len(text), 2 * high)
    if high == len(text) and count(text) <= limit:
        return len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if count(text[-middle:]) <= limit:
            low = middle
        else:
            high = middle
    return low


def head_and_tail(text: str, limit: int, marker: str = "\n[... {omitted} characters omitted ...]\n") -> str:
    """``text`` whole if it has at most ``limit`` tokens, else its head and tail of equal shares around ``marker``.

    Raises:
        ValueError: ``limit`` is too small for the marker itself.
    """
    if count(text) <= limit:
        return text
    room = limit - count(marker.format(omitted=len(text)))
    if room < 2:
        raise ValueError(f"{limit} tokens can't hold a head, a tail and the marker between them")
    while room >= 2:
        head = longest_prefix(text, room - room // 2)
        tail = longest_suffix(text, room // 2)
        cut = text[:head] + marker.format(omitted=len(text) - head - tail) + text[len(text) - tail :]
        if count(cut) <= limit:
            return cut
        room -= 1  # the joins cost a token that the parts' own counts don't show
    raise ValueError(f"{limit} tokens can't hold a head, a tail and the marker between them")
