"""Rows of ``renderings`` and ``pieces``: small enough to keep all, and complete enough to show each again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from flexmem import tokens
from flexmem.history import Piece, Unit
from flexmem.memory.protocol import VERBATIM, RenderedBlock, Rendering
from flexmem.sweep.sink import RowSink

_PIECES_AT_ONCE = 1 << 13  # rows that wait in the worker: a large history has hundreds of thousands


def text_digest(text: str) -> str:
    """BLAKE2b-128 of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class RenderingRows:
    """Makes rows and remembers which texts are kept already: each is kept once by a worker, under its digest."""

    def __init__(self) -> None:
        self._cuts: set[str] = set()
        self._kept: set[str] = set()

    async def add_pieces(self, sink: RowSink, cut: str, units: Sequence[Unit], pieces: Sequence[Piece]) -> None:
        """Keep the pieces and unit headers of a cut; those of a large one are handed on in parts of their own."""
        if cut in self._cuts:
            return
        self._cuts.add(cut)
        try:
            for piece in pieces:
                sink.add("pieces", _text_row(cut, "piece", piece.index, piece.tokens, piece.text))
                if (piece.index + 1) % _PIECES_AT_ONCE == 0:
                    await sink.deliver()
        except BaseException:
            self._cuts.discard(cut)  # whoever comes next keeps them all
            raise
        for unit in units:
            sink.add("pieces", _text_row(cut, "header", unit.uid, tokens.count(unit.header), unit.header))

    def add_rendering(
        self, sink: RowSink, episode: str, build: str, cut: str, rendering: Rendering, call: int = 0
    ) -> None:
        """Keep one rendering, the episode's ``call``-th; lines that are not made of pieces are kept as texts."""
        blocks = []
        for resolution, run in _runs(rendering.blocks):
            text = None
            if resolution not in VERBATIM:
                shown = rendering.text[run[0].start : run[-1].end]
                text = text_digest(shown)
                if text not in self._kept:
                    self._kept.add(text)
                    sink.add("pieces", _text_row(cut, "line", None, sum(block.tokens for block in run), shown, text))
            blocks.append(
                {
                    "resolution": resolution,
                    "uids": [uid for block in run for uid in block.uids],
                    "pieces": [piece for block in run for piece in block.pieces],
                    "tokens": sum(block.tokens for block in run),
                    "text": text,
                }
            )
        sink.add(
            "renderings",
            {
                "episode": episode,
                "call": call,
                "build": build,
                "cut": cut,
                "digest": text_digest(rendering.text),
                "tokens": rendering.tokens,
                "tokens_by_resolution": [
                    {"name": name, "tokens": count} for name, count in rendering.tokens_by_resolution().items()
                ],
                "blocks": blocks,
                "ranking": rendering.ranking,
                "hidden": rendering.hidden,
            },
        )


def _runs(blocks: Sequence[RenderedBlock]) -> Iterator[tuple[str, list[RenderedBlock]]]:
    """Blocks one by one, but neighbouring lines of one resolution together: a timeline is the same call after call."""
    run: list[RenderedBlock] = []
    for block in blocks:
        if run and (block.resolution != run[-1].resolution or block.resolution in VERBATIM):
            yield run[-1].resolution, run
            run = []
        run.append(block)
    if run:
        yield run[-1].resolution, run


def _text_row(
    cut: str, kind: str, number: int | None, count: int, text: str, digest: str | None = None
) -> dict[str, Any]:
    return {
        "digest": digest or text_digest(text),
        "cut": cut,
        "kind": kind,
        "number": number,
        "tokens": count,
        # Parquet holds UTF-8; what can't be encoded is escaped, and the digest is of the text itself.
        "text": text.encode("utf-8", "backslashreplace").decode(),
    }
