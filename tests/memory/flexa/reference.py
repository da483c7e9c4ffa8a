"""FlexA-Mem's reading once more, written from docs/methods.md A.5 to A.7 for clarity alone: it lays out the text and
counts it wherever the real one adds up counts.

`Rules` changes one rule at a time: each is a mistake that is easily made. Shared with the real one, and tested on their
own: cutting, the index, rule records, the rule merge, links.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.links import Links
from flexmem.memory.flexa.merging import merge_by_rule
from flexmem.memory.flexa.records import Record, first_words
from flexmem.memory.flexa.rule_writer import RuleWriter
from flexmem.memory.protocol import Budget, Query
from flexmem.ports import Embedder, IndexConfig, VectorArray
from flexmem.retrieval.dense import inner_products
from flexmem.retrieval.index import LocalIndex


@dataclass(frozen=True)
class Rules:
    """The rules that the wrong variants break; the defaults are the right ones."""

    stop_words_dropped: bool = True
    cosine_breaks_ties: bool = True
    merge_group: int = 4
    protected: int = 2
    gap_marks_charged: bool = True
    headers_charged: bool = True
    decay_applied: bool = True
    neighbours_join: bool = True
    merges_to_reference: bool = True
    allowance_lent: bool = True
    raw_pays_for_its_line: bool = False
    excerpt_replaces_line: bool = False
    excerpts_capped: bool = True
    short_excerpts_refused: bool = True
    pieces_in_time_order: bool = True
    recovered_in_place: bool = True
    units_by_record: bool = True


@dataclass
class Line:
    """A timeline entry: the units it stands for, and its text without the label."""

    uids: list[int]
    text: str
    label: str

    @property
    def line(self) -> str:
        return f"[{self.label}] {self.text}\n"


@dataclass
class Reference:
    """A written memory; `render` reads it. One instance is one agent's episode, or one reader's build."""

    config: FlexaConfig
    embedder: Embedder
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        self.units: list[Unit] = []
        self.records: list[Record] = []
        self.vectors: list[VectorArray] = []
        self.unit_vectors: list[VectorArray] = []
        self.index = LocalIndex(IndexConfig(piece_tokens=self.config.piece_tokens), self.embedder)
        self.writer = RuleWriter(self.config.record_words, self.config.merge_words)
        self.links = Links(self.config)
        self.lines: list[Line] = []
        self.merged: dict[float, list[Line]] = {}

    def write(self, unit: Unit) -> None:
        async def run() -> None:
            await self.index.append(unit)
            record = await self.writer.write(unit, None)
            vector, of_unit = await self.embedder.embed([record.index_text, unit.text])
            earlier = np.stack(self.vectors) if self.vectors else np.zeros((0, len(vector)), dtype=np.float32)
            self.links.add(record, vector, earlier)
            self.units.append(unit)
            self.records.append(record)
            self.vectors.append(vector)
            self.unit_vectors.append(of_unit)
            place = f"session {unit.session}" if unit.kind == "reader" and unit.session else unit.place
            line = Line([unit.uid], record.text, f"{unit.label} | {place}")
            for timeline in (self.lines, *self.merged.values()):
                timeline.append(line)

        asyncio.run(run())

    # ------------------------------------------------------------ A.5

    def timeline(self, budget: Budget) -> tuple[list[Line], int]:
        """All entries, and how many of the oldest are hidden."""
        if not self.config.timeline:
            return [], 0
        agent = self.units and self.units[0].kind == "agent"
        rho = self.config.timeline_share
        current = rho * budget.room
        reference = rho * (0.75 * budget.total if agent else budget.total)
        limit = max(current, reference) if self.rules.merges_to_reference else current
        lines = self.merged.setdefault(0.0 if agent else limit, list(self.lines))
        while count(lines) > limit and len(lines) > 1:
            free = len(lines) - self.rules.protected
            group = lines[: min(self.rules.merge_group, free if free >= 2 else len(lines))]
            uids = [uid for line in group for uid in line.uids]
            text = first_words(merge_by_rule([line.text for line in group], self.config.merge_words), 150)
            lines[: len(group)] = [Line(uids, text, f"u{uids[0]:02d}-u{uids[-1]:02d} | merged")]
        hidden = 0
        while count(lines[hidden:]) > current:
            hidden += 1
        return lines, hidden

    # ------------------------------------------------------------ A.3

    def scores(self, text: str) -> Sequence[float]:
        if self.rules.stop_words_dropped:
            return [float(score) for score in self.index.bm25(text)]
        return okapi([piece.content.lower().split() for piece in self.index.pieces], text.lower().split())

    def order(self, text: str, vector: VectorArray) -> list[int]:
        scores, cosines = self.scores(text), self.index.cosine(vector)
        ties = self.rules.cosine_breaks_ties
        return sorted(range(len(scores)), key=lambda p: (-scores[p], -cosines[p] if ties else 0, p))

    # ------------------------------------------------------------ layouts

    def group(self, uid: int, chosen: Sequence[int]) -> str:
        text = self.units[uid].header
        for position, piece in enumerate(chosen):
            if position and piece != chosen[position - 1] + 1:
                text += "[...]\n"
            text += self.index.pieces[piece].text
        return text

    def details(self, chosen: Sequence[int]) -> str:
        uids = sorted({self.index.pieces[piece].uid for piece in chosen})
        if not self.rules.pieces_in_time_order:
            uids = list(dict.fromkeys(self.index.pieces[piece].uid for piece in chosen))
        return "".join(self.group(uid, [p for p in sorted(chosen) if self.index.pieces[p].uid == uid]) for uid in uids)

    def charged(self, text: str) -> int:
        """Tokens of a layout, less what a wrong variant does not charge."""
        if not self.rules.gap_marks_charged:
            text = text.replace("[...]\n", "")
        if not self.rules.headers_charged:
            text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("### "))
        return tokens.count(text)

    # ------------------------------------------------------------ A.7

    def render_pieces(self, query: Query, budget: Budget) -> str:
        lines, hidden = self.timeline(budget)
        head = "".join(line.line for line in lines[hidden:])
        frame = ""
        if self.config.timeline:
            head = "# Timeline\n" + head if head else ""
            frame = "# Details\n"
        taken = tokens.count(head) + tokens.count(frame)
        if not self.rules.allowance_lent:
            taken = max(taken, math.ceil(self.config.timeline_share * budget.room))
        room = budget.room - taken
        chosen: list[int] = []
        misses = 0
        for piece in self.order(query.text, query.vector):
            if room - self.charged(self.details(chosen)) < self.config.least_room or misses >= self.config.most_misses:
                break
            if self.charged(self.details([*chosen, piece])) <= room:
                chosen.append(piece)
                misses = 0
            else:
                misses += 1
        return head + frame + self.details(chosen) if chosen else head

    # ------------------------------------------------------------ A.6

    def candidates(self, query: Query, room: int) -> list[int]:
        vectors = self.vectors if self.rules.units_by_record else self.unit_vectors
        cosine = [float(value) for value in inner_products(np.stack(vectors), query.vector)]
        could_hold = room / median(unit.tokens for unit in self.units)
        number = max(self.config.least_anchors, math.ceil(self.config.anchor_room_factor * could_hold))
        anchors = sorted(range(len(self.units)), key=lambda uid: (-cosine[uid], uid))[:number]
        score = {uid: cosine[uid] for uid in anchors}
        decay = self.config.decay(self.units[0].kind) if self.rules.decay_applied else 1.0
        for anchor in anchors if self.rules.neighbours_join else []:
            near = {anchor - 1, anchor + 1} & set(range(len(self.units)))
            for uid in (self.links.of(anchor) | near) - set(anchors):
                score[uid] = max(score.get(uid, -1.0), cosine[uid], decay * cosine[anchor])
        return sorted(score, key=lambda uid: (-score[uid], uid))

    def excerpt(self, uid: int, order: Sequence[int], limit: int) -> str | None:
        chosen: list[int] = []
        for piece in order:
            if self.index.pieces[piece].uid == uid and self.charged(self.group(uid, sorted([*chosen, piece]))) <= limit:
                chosen.append(piece)
        if not chosen:
            return None
        text = self.group(uid, sorted(chosen))
        return None if self.rules.short_excerpts_refused and tokens.count(text) < self.config.excerpt_min else text

    def render_units(self, query: Query, budget: Budget) -> str:
        lines, hidden = self.timeline(budget)
        shown = lines[hidden:]
        left = budget.room - count(shown)
        if not self.rules.allowance_lent:
            left = budget.room - max(count(shown), math.ceil(self.config.timeline_share * budget.room))
        own = {line.uids[0]: tokens.count(line.line) for line in shown if len(line.uids) == 1}
        raw: set[int] = set()
        recovered: dict[int, str] = {}
        candidates = self.candidates(query, left) if self.units and self.config.recovery else []
        order = self.order(query.excerpt_text, query.excerpt_vector)
        replaces = self.config.raw_replaces_record and not self.rules.raw_pays_for_its_line
        for uid in candidates:
            cost = tokens.count(self.units[uid].text) - (own.get(uid, 0) if replaces else 0)
            if cost <= left:
                raw.add(uid)
                recovered[uid] = self.units[uid].text
                left -= cost
                continue
            cap = min(self.config.excerpt_cap, left) if self.rules.excerpts_capped else left
            text = self.excerpt(uid, order, cap) if self.config.excerpts else None
            if text is not None:
                recovered[uid] = text
                left -= self.charged(text) - (own.get(uid, 0) if self.rules.excerpt_replaces_line else 0)
                continue
            line = f"[{self.units[uid].label} | {self.place(uid)}] {self.records[uid].text}\n"
            if uid not in own and tokens.count(line) <= left:
                recovered[uid] = line
                left -= tokens.count(line)
        gone = raw | (set(recovered) if self.rules.excerpt_replaces_line else set())
        if not self.config.raw_replaces_record:
            gone = set()
        return self.woven(lines, hidden, recovered, gone)

    def woven(self, lines: Sequence[Line], hidden: int, recovered: dict[int, str], gone: set[int]) -> str:
        """Lines and recovered units in time order; a line whose unit is in ``gone`` is left out."""
        text = ""
        for position, line in enumerate(lines or [Line([unit.uid], "", "") for unit in self.units]):
            if lines and position >= hidden and not (len(line.uids) == 1 and line.uids[0] in gone):
                text += line.line
            if self.rules.recovered_in_place:
                text += "".join(recovered[uid] for uid in line.uids if uid in recovered)
        return text if self.rules.recovered_in_place else text + "".join(recovered[uid] for uid in sorted(recovered))

    def place(self, uid: int) -> str:
        unit = self.units[uid]
        return f"session {unit.session}" if unit.kind == "reader" and unit.session else unit.place

    def render(self, query: Query, budget: Budget) -> str:
        """The rendering's text."""
        if not self.config.recovery:
            lines, hidden = self.timeline(budget)
            return "".join(line.line for line in lines[hidden:])
        return (self.render_pieces if self.config.mode == "piece" else self.render_units)(query, budget)


def count(lines: Sequence[Line]) -> int:
    return sum(tokens.count(line.line) for line in lines)


def okapi(documents: Sequence[Sequence[str]], query: Sequence[str]) -> list[float]:
    """docs/methods.md A.3's score over word lists, straight from its formula."""
    number = len(documents)
    mean = sum(map(len, documents)) / number
    vocabulary = {word for document in documents for word in document}
    holding = {word: sum(word in document for document in documents) for word in vocabulary}
    idf = {word: math.log(number - n + 0.5) - math.log(n + 0.5) for word, n in holding.items()}
    floor = max(0.01, 0.25 * sum(idf.values()) / len(idf))
    scores = []
    for document in documents:
        score = 0.0
        for word in query:
            if word in vocabulary:
                f = document.count(word)
                weight = idf[word] if idf[word] >= 0 else floor
                score += weight * f * 2.5 / (f + 1.5 * (1 - 0.75 + 0.75 * len(document) / mean))
        scores.append(score)
    return scores
