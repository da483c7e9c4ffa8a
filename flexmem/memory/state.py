"""Saved builds: compressed JSON that holds the units and whatever a method adds. Vectors are left out: embedding the
same text again gives the same vector.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from flexmem.history import Block, Unit
from flexmem.memory.protocol import MethodConfig, StateError

FORMAT = 1


def pack_state(family: str, config: MethodConfig, units: Sequence[Unit], extra: Mapping[str, Any]) -> bytes:
    """A build's state. ``extra`` must be JSON-able."""
    content = {
        "format": FORMAT,
        "family": family,
        "config": config.model_dump(mode="json"),
        "units": [asdict(unit) for unit in units],
        "extra": extra,
    }
    # Not JSON's own escapes: two of them, each half of a surrogate pair, would come back as one character.
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)


def unpack_state(state: bytes, family: str, config: MethodConfig) -> tuple[list[Unit], dict[str, Any]]:
    """Units and extra of a state.

    Raises:
        StateError: it is damaged, or of another format, method family or configuration; the message names what differs.
    """
    try:
        content = json.loads(zlib.decompress(state).decode("utf-8", "surrogatepass"))
        found = content["format"], content["family"]
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise StateError(f"the saved memory is damaged: {error}") from error
    if found != (FORMAT, family):
        raise StateError(f"the saved memory is of format {found[0]}, family {found[1]!r}; wanted {FORMAT}, {family!r}")
    if missing := {"config", "units", "extra"} - content.keys():
        raise StateError(f"the saved memory is damaged: it lacks {', '.join(sorted(missing))}")
    wanted = config.model_dump(mode="json")
    differing = [key for key in wanted if content["config"].get(key) != wanted[key]]
    if differing or content["config"].keys() != wanted.keys():
        raise StateError(
            f"the saved memory was made with another configuration: {', '.join(differing) or 'other fields'}"
        )
    return [_unit(fields) for fields in content["units"]], content["extra"]


def _unit(fields: dict[str, Any]) -> Unit:
    blocks = tuple(Block(**block) for block in fields["blocks"])
    return Unit(**{**fields, "blocks": blocks, "span": tuple(fields["span"])})
