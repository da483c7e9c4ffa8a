"""Saved builds: compressed lines of JSON, what a method adds first, then a unit each. Vectors are left out: embedding
the same text again gives the same vector.

Units are written and read one by one, so that neither takes more memory than the compressed bytes do.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from flexmem.history import Block, Unit
from flexmem.memory.protocol import MethodConfig, StateError

FORMAT = 2
_ONE_LINE = 1  # the format in which all units stand in the first line; it can still be read
_CHUNK = 1 << 16  # bytes
_UNIT = tuple(field.name for field in fields(Unit) if field.name != "blocks")
_BLOCK = tuple(field.name for field in fields(Block))


def pack_state(family: str, config: MethodConfig, units: Iterable[Unit], extra: Mapping[str, Any]) -> bytes:
    """A build's state. ``extra`` must be JSON-able."""
    head = {"format": FORMAT, "family": family, "config": config.model_dump(mode="json"), "extra": extra}
    compressor = zlib.compressobj(6)
    packed = [compressor.compress(_line(head))]
    packed += [compressor.compress(_line(_described(unit))) for unit in units]
    packed.append(compressor.flush())
    return b"".join(packed)


def unpack_state(state: bytes, family: str, config: MethodConfig) -> tuple[Iterator[Unit], dict[str, Any]]:
    """Units, read as they are asked for, and extra of a state.

    Raises:
        StateError: it is damaged, or of another format, method family or configuration; the message names what differs.
    """
    try:
        lines = _lines(state)
        content = json.loads(next(lines, ""))
        found = content["format"], content["family"]
        for _ in lines:  # to the end, where the checksum stands: no unit is given out before it is known to be sound
            pass
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise StateError(f"the saved memory is damaged: {error}") from error
    if found not in ((FORMAT, family), (_ONE_LINE, family)):
        raise StateError(f"the saved memory is of format {found[0]}, family {found[1]!r}; wanted {FORMAT}, {family!r}")
    needed = {"config", "extra"} if found[0] == FORMAT else {"config", "extra", "units"}
    if missing := needed - content.keys():
        raise StateError(f"the saved memory is damaged: it lacks {', '.join(sorted(missing))}")
    wanted = config.model_dump(mode="json")
    differing = [key for key in wanted if content["config"].get(key) != wanted[key]]
    if differing or content["config"].keys() != wanted.keys():
        raise StateError(
            f"the saved memory was made with another configuration: {', '.join(differing) or 'other fields'}"
        )
    units = content["units"] if found[0] == _ONE_LINE else _unit_fields(state)
    return map(_unit, units), content["extra"]


def _line(content: Mapping[str, Any]) -> bytes:
    # Not JSON's own escapes: two of them, each half of a surrogate pair, would come back as one character.
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _described(unit: Unit) -> dict[str, Any]:
    """As `dataclasses.asdict`, which would copy all that it holds."""
    blocks = [{name: getattr(block, name) for name in _BLOCK} for block in unit.blocks]
    return {name: getattr(unit, name) for name in _UNIT} | {"blocks": blocks}


def _lines(state: bytes) -> Iterator[str]:
    """The state's lines, as far as it is sound.

    Raises:
        zlib.error: it is damaged or ends too early.
    """
    decompressor = zlib.decompressobj()
    begun: list[bytes] = []  # of a line whose end has not come yet
    for start in range(0, len(state), _CHUNK):
        *ended, rest = decompressor.decompress(state[start : start + _CHUNK]).split(b"\n")
        for end in ended:
            yield b"".join([*begun, end]).decode("utf-8", "surrogatepass")
            begun = []
        begun.append(rest)
    if not decompressor.eof or decompressor.unused_data:
        raise zlib.error("it is cut short" if not decompressor.eof else "something follows its end")
    if any(begun):
        yield b"".join(begun).decode("utf-8", "surrogatepass")


def _unit_fields(state: bytes) -> Iterator[dict[str, Any]]:
    lines = _lines(state)
    next(lines)
    return map(json.loads, lines)


def _unit(fields: dict[str, Any]) -> Unit:
    blocks = tuple(Block(**block) for block in fields["blocks"])
    return Unit(**{**fields, "blocks": blocks, "span": tuple(fields["span"])})
