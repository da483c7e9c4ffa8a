"""Evidence visibility and the verbatim-evidence score (FlexA-Mem E.10, §6.4; docs/methods.md E.6, E.6b).

The verbatim-evidence score is no accuracy and no bound of one: a memory that rewrites text can carry an answer without
the turn that gave it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from flexmem.history import Piece, Unit
from flexmem.memory.protocol import VERBATIM, Rendering


@dataclass(frozen=True, slots=True)
class Visibility:
    """How much of a question's evidence a rendering shows: turns in all, verbatim, and at least partly (verbatim ones
    included).
    """

    turns: int
    visible: int
    partly: int

    @property
    def share(self) -> float:
        """Share of evidence turns that are verbatim visible."""
        return self.visible / self.turns

    @property
    def all(self) -> bool:
        return self.visible == self.turns

    @property
    def any(self) -> bool:
        return self.visible > 0


class EvidenceMap:
    """Where turns of a history stand among its pieces.

    Args:
        units: the history.
        pieces: the same, cut.
        turns: ids of the turns that will be asked for; None: all. A large history has far more than its questions name.
    """

    def __init__(self, units: Iterable[Unit], pieces: Iterable[Piece], turns: Collection[str] | None = None) -> None:
        self._texts: dict[str, str] = {}
        by_block: dict[tuple[int, int], list[int]] = {}
        found: dict[str, list[int]] = {}
        for unit in units:
            for number, block in enumerate(unit.blocks):
                if block.kind == "turn" and (turns is None or block.source in turns):
                    found[block.source] = by_block[unit.uid, number] = []
                    self._texts[block.source] = squeeze(unit.text[block.content_start : block.end])
        for piece in pieces:
            if (piece.uid, piece.block) in by_block:
                by_block[piece.uid, piece.block].append(piece.index)
        self._pieces = {turn_id: tuple(indices) for turn_id, indices in found.items()}

    def pieces_of(self, turn_id: str) -> tuple[int, ...]:
        """The pieces that make up a turn.

        Raises:
            KeyError: the history has no such turn, or it is not one of those that would be asked for.
        """
        return self._pieces[turn_id]

    def by_provenance(self, evidence: Iterable[str], shown: Collection[int]) -> Visibility:
        """Visibility by the pieces that a rendering shows verbatim. A turn with blank text only is visible where its
        pieces are.
        """
        turns = visible = partly = 0
        for turn_id in evidence:
            pieces = self._pieces[turn_id]
            hits = sum(piece in shown for piece in pieces)
            turns += 1
            visible += hits == len(pieces)
            partly += hits > 0
        return Visibility(turns, visible, partly)

    def by_text(self, evidence: Iterable[str], rendering: Rendering) -> Visibility:
        """Visibility by searching each turn's text, white space normalised, in the verbatim blocks.

        It also finds a turn whose very text another shown turn repeats; otherwise it agrees with `by_provenance` on
        what is visible. Nothing is said of parts: ``partly``
        equals ``visible``.
        """
        verbatim = [
            squeeze(rendering.text[block.start : block.end])
            for block in rendering.blocks
            if block.resolution in VERBATIM
        ]
        texts = [self._texts[turn_id] for turn_id in evidence]
        visible = sum(any(text in block for block in verbatim) for text in texts)
        return Visibility(len(texts), visible, visible)

    def rank(self, evidence: Iterable[str], order: Sequence[int]) -> int | None:
        """Rank, from 1, of the first piece of an evidence turn in ``order`` (all pieces, best first); None without
        evidence.
        """
        wanted = {piece for turn_id in evidence for piece in self._pieces[turn_id]}
        return next((rank for rank, piece in enumerate(order, 1) if piece in wanted), None)


def squeeze(text: str) -> str:
    """Runs of white space become one blank."""
    return " ".join(text.split())
