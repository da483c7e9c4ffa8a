"""From fragments to a `Rendering`: text, exact tokens and provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flexmem.memory.protocol import BudgetError, Degraded, RenderedBlock, Rendering
from flexmem.memory.selection import Fragment


def total_tokens(fragments: Sequence[Fragment]) -> int:
    """T of the fragments' concatenation."""
    return sum([fragment.tokens for fragment in fragments])


def assemble(
    fragments: Sequence[Fragment],
    *,
    ranking: Sequence[int] = (),
    degraded: Mapping[int, Degraded] | None = None,
    hidden: int = 0,
) -> Rendering:
    """Join fragments in their order; the blocks cover the text without gap or overlap."""
    blocks = []
    texts = []
    position = total = 0
    for text, tokens, uids, resolution, pieces in fragments:
        end = position + len(text)
        blocks.append(RenderedBlock(uids, resolution, pieces, position, end, tokens))
        texts.append(text)
        total += tokens
        position = end
    return Rendering(
        text="".join(texts),
        tokens=total,
        blocks=tuple(blocks),
        ranking=tuple(ranking),
        degraded=degraded or {},
        hidden=hidden,
    )


def require_room(room: int, least: int, what: str) -> None:
    """Refuse a room that can't hold what the method always shows.

    Raises:
        BudgetError: ``room`` is negative or smaller than ``least`` tokens.
    """
    if room < max(least, 0):
        raise BudgetError(
            f"a room of {room} tokens can't hold {what} ({least} tokens); "
            "give a larger budget or a smaller recent window"
        )
