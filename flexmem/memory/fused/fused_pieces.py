"""``fused_pieces``: one read-time rule without mode, timeline or model call (ours: docs/methods.md A.12)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import numpy as np
from pydantic import Field

from flexmem.history import Unit
from flexmem.memory.baselines.ranked_pieces import RankedPiecesBuild, RankedPiecesConfig
from flexmem.memory.flexa.records import Record
from flexmem.memory.flexa.rule_writer import RuleWriter
from flexmem.memory.fused.dates import Slack, day_of, named_windows
from flexmem.memory.fused.subjects import block_speakers, subjects
from flexmem.memory.protocol import FidelityCard, MethodInfo, Query
from flexmem.memory.ranking import each
from flexmem.memory.registry import MethodSpec, variant
from flexmem.memory.vectors import GrowingVectors
from flexmem.ports import FloatArray, HistoryIndex, IntArray, Services
from flexmem.retrieval.dense import inner_products
from flexmem.retrieval.fusion import RRF_K, ranks, reciprocal_rank_fusion
from flexmem.retrieval.ordering import order_by_cosine, order_pieces, score_chunks

_UNKNOWN_DAY = -1


class FusedPiecesConfig(RankedPiecesConfig):
    """Pieces as in piece retrieval; three rankings, two cues. Set before any result on test data was seen."""

    fusion_k: int = Field(RRF_K, ge=1)
    """The usual constant of reciprocal rank fusion."""
    record_words: int = Field(80, ge=1)
    """A unit's record by rule, whose vector ranks the unit: FlexA-Mem's."""
    speaker_cue: bool = True
    """Pieces that somebody else says are worth less to a question about a speaker."""
    date_cue: bool = True
    """Units of other days are worth less to a question that names a time."""
    cue_factor: float = Field(0.7, gt=0, le=1)
    """What a piece against a cue keeps of its score: it falls behind its equals, but is not ruled out."""
    slack_before: int = Field(1, ge=0)
    """Days before a named day, month or year: plans, and time zones."""
    slack_day: int = Field(7, ge=0)
    """Days after a named day: what happened is told within the week."""
    slack_month: int = Field(14, ge=0)
    """Days after a named month."""
    slack_year: int = Field(31, ge=0)
    """Days after a named year."""


class FusedPiecesBuild(RankedPiecesBuild):
    """Pieces in an index, a record's vector for each unit, and who says what when."""

    def __init__(self, config: FusedPiecesConfig, services: Services) -> None:
        super().__init__("fused_pieces", config, services, self._ranked)
        self._fused = config
        self._writer = RuleWriter(config.record_words, config.record_words)
        self._record: Record | None = None  # the newest: it outlives a failure to embed it
        self._vectors = GrowingVectors(services.embedder.dimension)
        self._days: list[int] = []
        self._speakers: dict[str, int] = {}
        self._piece_speakers: list[int] = []
        self._arrays: tuple[IntArray, IntArray, IntArray] | None = None

    async def written(self, unit: Unit) -> None:
        """Write the unit's record by rule and embed it."""
        record = self._record
        if record is None or record.uid != unit.uid:
            record = self._record = self._writer.record(unit)
        self._add(unit, (await self.services.embedder.embed([record.index_text]))[0])

    async def restore_extra(self, extra: dict[str, object]) -> None:
        """Everything is made from the units again."""
        records = [self._writer.record(unit) for unit in self.units]
        vectors = await self.services.embedder.embed([record.index_text for record in records])
        for unit, vector in zip(self.units, vectors, strict=True):
            self._add(unit, vector)

    def _add(self, unit: Unit, vector: np.typing.NDArray[np.float32]) -> None:
        self._vectors.append(vector)
        day = day_of(unit.time)
        self._days.append(_UNKNOWN_DAY if day is None else day)
        codes = [self._speakers.setdefault(name, len(self._speakers)) for name in block_speakers(unit)]
        pieces = self.index.unit_pieces(unit.uid)
        self._piece_speakers += [codes[piece.block] for piece in self.index.pieces[pieces.start : pieces.stop]]
        self._arrays = None

    def _ranked(self, index: HistoryIndex, query: Query) -> Iterable[int]:
        """Pieces by fused rank, those against a cue pushed back."""
        units, speakers, days = self._as_arrays()
        if not len(units):
            return []
        cosine = index.cosine(query.vector)[: len(units)]
        by_cosine = order_by_cosine(cosine)
        lexical = order_pieces(index.bm25(query.text, stemmed=True)[: len(units)], cosine, by_cosine)
        by_record = ranks(order_by_cosine(inner_products(self._vectors.array, query.vector)))
        scores = reciprocal_rank_fusion([ranks(lexical), ranks(by_cosine), by_record[units]], k=self._fused.fusion_k)
        return each(score_chunks(scores * self._cues(query, units, speakers, days)))

    def _cues(self, query: Query, units: IntArray, speakers: IntArray, days: IntArray) -> FloatArray:
        config = self._fused
        factors: FloatArray = np.ones(len(units))
        if config.speaker_cue:
            about = subjects(query.text, self._speakers)
            if about:
                factors[~np.isin(speakers, [self._speakers[name] for name in about])] *= config.cue_factor
        if config.date_cue:
            windows = self._windows(query, days)
            if windows:
                inside = np.zeros(len(days), dtype=np.bool_)
                for first, last in windows:
                    inside |= (days >= first) & (days <= last)
                inside |= days == _UNKNOWN_DAY
                factors[~inside[units]] *= config.cue_factor
        return factors

    def _windows(self, query: Query, days: IntArray) -> list[tuple[int, int]]:
        known = days[days != _UNKNOWN_DAY]
        if not known.size:
            return []
        years = range(date.fromordinal(int(known.min())).year, date.fromordinal(int(known.max())).year + 1)
        config = self._fused
        slack = Slack(config.slack_before, config.slack_day, config.slack_month, config.slack_year)
        return named_windows(query.text, day_of(query.asked_at), years, slack)

    def _as_arrays(self) -> tuple[IntArray, IntArray, IntArray]:
        """Unit and speaker of every piece, and the day of every unit."""
        written = len(self._piece_speakers)  # the index may hold pieces of a write that failed
        if self._arrays is None:
            self._arrays = (
                np.asarray(self.table.uids[:written], dtype=np.int64),
                np.asarray(self._piece_speakers, dtype=np.int64),
                np.asarray(self._days, dtype=np.int64),
            )
        return self._arrays


_SPEC = MethodSpec(
    MethodInfo(
        name="fused_pieces",
        family="flexmem's own",
        summary="pieces by fused rank of words, meaning and their unit's record, with cues of speaker and date",
        card=FidelityCard(
            source="ours; beyond the papers",
            follows="pieces, filling and rule records of FlexA-Mem; reciprocal rank fusion with k = 60",
            ours="three fused rankings, a speaker cue and a date cue; no timeline, no mode, no model call",
            differs="nothing to differ from",
            tuning="rule and factor were chosen on 48 LongMemEval questions; the days of slack were set by reason, "
            "without a search; LoCoMo was looked at once, after that. On LongMemEval the speaker cue mostly follows "
            "the labels (nearly all evidence is the user's): look at both with and without cues",
        ),
    ),
    FusedPiecesConfig(),
    FusedPiecesBuild,
)

METHODS = (
    _SPEC,
    variant(_SPEC, "no_cues", "three fused rankings alone", speaker_cue=False, date_cue=False),
    variant(_SPEC, "no_speaker_cue", "without the speaker cue", speaker_cue=False),
    variant(_SPEC, "no_date_cue", "without the date cue", date_cue=False),
)
