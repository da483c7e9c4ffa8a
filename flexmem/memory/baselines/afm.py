"""``afm``: adaptive focus memory, each unit full, compressed or a placeholder by one score (docs/methods.md B.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.asking import MemoryModel, ReplyForm, memory_model
from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.filling import cut_to_room
from flexmem.memory.prompts import template
from flexmem.memory.protocol import Budget, FidelityCard, MethodConfig, MethodInfo, Query, Rendering, Resolution
from flexmem.memory.registry import MethodSpec, variant
from flexmem.memory.selection import Fragment
from flexmem.memory.unit_forms import Excerpts, raw_fragment
from flexmem.memory.vectors import GrowingVectors
from flexmem.ports import IndexConfig, Services, VectorArray
from flexmem.retrieval.dense import inner_products

_IMPORTANCE_TOKENS = 200
_TOKENS_PER_WORD = 2  # what a model may need for a word of its reply, with room to think
_REPLY_LEAST = 400

Importance = Literal["critical", "relevant", "trivial"]


class AfmConfig(MethodConfig):
    """AFM's values. Those of the shipped demo are the default, since the code's own (0.55, 0.30, 12) were not what its
    authors ran.
    """

    high: float = 0.45
    """A unit with this score is full; the demo's and the paper's."""
    mid: float = 0.25
    """One with this score is compressed; the demo's and the paper's."""
    half_life: float = Field(10, gt=0)
    """Units after which recency has halved; the demo's, in items."""
    compress_ratio: float = Field(0.35, gt=0, le=1)
    """Tokens of the compressed form as a share of the unit's; the code's."""
    placeholder_tokens: int = Field(12, ge=1)
    """The longest placeholder; the code's."""
    compressor: Literal["extractive", "model"] = "extractive"
    """Who compresses: a choice of verbatim pieces by the query, or the memory model with the query as a hint."""
    keep_compressed: bool = False
    """True: a view keeps a unit's first compressed form, made for the query of that time, as the code does; it saves
    calls of the model. False: each call compresses for its own query, so that no call's result depends on another's.
    """
    importance: bool = False
    """True: the memory model gives each unit a class when it is written, which sets its score (the paper's first
    version)."""
    piece_tokens: int = Field(32, ge=8)
    """Ours: about a sentence, the item that the code's extractive compressor chooses."""


class ImportanceReply(ReplyForm):
    """A unit's class."""

    importance: Annotated[
        Importance, BeforeValidator(lambda said: said.strip().lower() if isinstance(said, str) else said)
    ]


class AfmBuild(IndexedBuild):
    """Units with e(unit), and their classes where the model gives them."""

    def __init__(self, config: AfmConfig, services: Services) -> None:
        super().__init__("afm", config, services, IndexConfig(piece_tokens=config.piece_tokens))
        self.config = config
        self.vectors = GrowingVectors(services.embedder.dimension)
        """Row u is e(unit u)."""
        self.classes: list[Importance] = []
        """By unit; empty where none are given."""
        asks = config.importance or config.compressor == "model"
        self.placeholders: list[Fragment] = []
        """By unit."""
        self.model: MemoryModel | None = memory_model(services, self.fallbacks) if asks else None

    def view(self) -> AfmView:
        return AfmView(self)

    async def written(self, unit: Unit) -> None:
        """Embed the unit, then have its class told: nothing is kept before both have come."""
        vector = (await self.services.embedder.embed([unit.text]))[0]
        if self.config.importance:
            self.classes.append(await self._classify(unit))
        self._add(unit, vector)

    def scores(self, query: Query) -> list[float]:
        """Every unit's score for a query (docs/methods.md B.5)."""
        cosines = inner_products(self.vectors.array, query.vector)
        newest = len(self.vectors) - 1
        return [
            score(
                float(cosine),
                0.5 ** ((newest - uid) / self.config.half_life),
                self.classes[uid] if self.config.importance else None,
            )
            for uid, cosine in enumerate(cosines)
        ]

    def extra(self) -> dict[str, Any]:
        return {"classes": self.classes, "fallbacks": dict(self.fallbacks)}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        """Take back the classes; vectors are made again."""
        vectors = await self.services.embedder.embed([unit.text for unit in self.units])
        for unit, vector in zip(self.units, vectors, strict=True):
            self._add(unit, vector)
        self.classes = list(extra["classes"])
        self.fallbacks.update(extra["fallbacks"])

    def _add(self, unit: Unit, vector: VectorArray) -> None:
        self.vectors.append(vector)
        self.placeholders.append(placeholder(unit, self.config.placeholder_tokens))

    async def _classify(self, unit: Unit) -> Importance:
        assert self.model is not None
        prompt = template("afm_importance").substitute(unit=unit.text)
        reply = await self.model.fill(ImportanceReply, prompt, _IMPORTANCE_TOKENS, "importance taken to be relevant")
        return reply.importance if reply else "relevant"


def score(cosine: float, recency: float, importance: Importance | None) -> float:
    """A unit's score. ``recency`` is 1 for the newest unit and halves with the half-life; ``importance`` None: the
    formula of the code, which knows no classes.
    """
    if importance == "critical":
        return 1.0
    likeness = max(0.0, cosine)
    if importance == "relevant":
        return likeness * (0.5 + 0.5 * recency)
    if importance == "trivial":
        return likeness * 0.25 * recency
    return likeness * (0.25 + 0.75 * recency)


class AfmView:
    """Reading changes nothing but the kept compressed forms, which are the view's own."""

    def __init__(self, build: AfmBuild) -> None:
        self._build = build
        self._config = build.config
        self._compressed: dict[int, Fragment | None] = {}

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """Units from the oldest to the newest, each in the form that its score gives it, or the next lower one that
        still fits, or not at all (`MemoryView.render`).
        """
        require_room(budget.room, 0, "nothing")
        scores = self._build.scores(query)
        excerpts = Excerpts(self._build, query, least=1)
        left = budget.room
        fragments = []
        for uid, own in enumerate(scores):
            for form in self._forms(own):
                fragment = await self._fragment(uid, form, query, excerpts)
                if fragment is not None and fragment.tokens <= left:
                    fragments.append(fragment)
                    left -= fragment.tokens
                    break
        ranking = sorted(range(len(scores)), key=lambda uid: (-scores[uid], uid))
        return assemble(fragments, ranking=ranking)

    def _forms(self, own: float) -> Sequence[Resolution]:
        forms = (Resolution.RAW, Resolution.EXCERPT, Resolution.PLACEHOLDER)
        return forms[0 if own >= self._config.high else 1 if own >= self._config.mid else 2 :]

    async def _fragment(self, uid: int, form: Resolution, query: Query, excerpts: Excerpts) -> Fragment | None:
        if form is Resolution.RAW:
            return raw_fragment(self._build, uid)
        if form is Resolution.PLACEHOLDER:
            return self._build.placeholders[uid]
        if uid in self._compressed:
            return self._compressed[uid]
        compressed = await self._compress(uid, query, excerpts)
        if self._config.keep_compressed:
            self._compressed[uid] = compressed
        return compressed

    async def _compress(self, uid: int, query: Query, excerpts: Excerpts) -> Fragment | None:
        unit = self._build.units[uid]
        limit = int(self._config.compress_ratio * unit.tokens)
        if self._config.compressor == "model":
            by_model = await self._ask(unit, limit, query)
            if by_model is not None:
                return by_model
        return excerpts(uid, limit)

    async def _ask(self, unit: Unit, limit: int, query: Query) -> Fragment | None:
        """The model's compressed form under the unit's header, cut to the limit; None where it gives none."""
        model = self._build.model
        assert model is not None
        words = max(1, limit * 3 // 4)  # three words take about four tokens
        prompt = template("afm_compress").substitute(hint=query.excerpt_text, words=words, unit=unit.text)
        most = max(_REPLY_LEAST, _TOKENS_PER_WORD * words)
        reply = await model.text(prompt, most, "unit compressed by extraction, not by the model")
        if reply is None:
            return None
        text = f"{unit.header}{' '.join(reply.split())}\n"
        return cut_to_room(Fragment(text, tokens.count(text), (unit.uid,), Resolution.SUMMARY), limit)


def placeholder(unit: Unit, limit: int) -> Fragment:
    """A line of at most ``limit`` tokens: the unit's label, then its first words; the label alone is never cut."""
    words = " ".join(unit.text[block.content_start : block.end] for block in unit.blocks).split()
    line = f"[ref {unit.label}]"
    size = tokens.count(line + "\n")
    for word in words[:limit]:  # a word has a token at least
        longer = tokens.count(f"{line} {word}\n")
        if longer > limit:
            break
        line, size = f"{line} {word}", longer
    return Fragment(line + "\n", size, (unit.uid,), Resolution.PLACEHOLDER)


def _declares(config: AfmConfig, info: MethodInfo) -> MethodInfo:
    by_model = config.compressor == "model"
    return replace(
        info,
        writes_with_model=config.importance,
        reads_with_model=by_model,
        asks_per_call=by_model,
        rewrites_text=by_model,
    )


def _card(**changes: str) -> FidelityCard:
    parts: Mapping[str, str] = {
        "source": "AFM, arXiv 2511.12712, and its code (cruz209/AFMforLLM), a baseline of FlexA-Mem §4.2 and App. E.3",
        "follows": "the score of cosine and recency, the two thresholds, three fidelities, the compressed form's share "
        "and the placeholder's 12 tokens, packing from the oldest to the newest with the fall to the next lower form, "
        "so that old units can leave no room for new ones",
        "ours": "an item is a unit; the extractive compressor takes pieces of about a sentence by BM25 with the "
        "query and shows them in original order, so that they stay verbatim",
        "differs": "the code's compressor weighs word overlap, length and position, and joins sentences in order of "
        "score; it keeps the first compressed form for good, here only the one by the model is kept and only in the "
        "view (keep_compressed); a unit of which no piece fits the share has no compressed form where the code cuts "
        "its first sentence; a placeholder does not tell a role, since a unit has several",
        "tuning": "thresholds and half-life are the demo's; piece size set once, not searched",
    }
    return FidelityCard(**{**parts, **changes})


AFM = MethodSpec(
    MethodInfo(
        name="afm",
        prompts=("afm_importance", "afm_compress"),
        family="FlexA-Mem's baselines",
        summary="each unit raw, as an excerpt or a placeholder by cosine and recency; packed from the oldest on",
        card=_card(),
    ),
    AfmConfig(),
    AfmBuild,
    _declares,
)

_CALIBRATED = variant(
    AFM,
    "calibrated",
    "as afm; thresholds chosen on LoCoMo's conversation conv-26, which must be left out of its results",
    high=0.25,
    mid=0.15,
)
_CALIBRATION = (
    "thresholds by a grid of 14 pairs (high 0.25, 0.35, 0.45, 0.55; mid 0.05, 0.15, 0.25, 0.30; mid < high) on the 150 "
    "questions with evidence of LoCoMo's conversation conv-26, which must be left out of results. 0.25/0.15 has 30.0 % "
    "verbatim evidence, the mean over 2k, 4k and 8k (15.3, 27.3, 47.3), and so has 0.25/0.05 (14.7, 23.3, 52.0); the "
    "share of evidence turns decides (33.5 to 32.5 %). The default, 0.45/0.25, has 12.2 %. "
    "ray_jobs/sweeps/afm-calibration.yaml repeats it. Agents have no such calibration yet"
)

METHODS = (
    AFM,
    replace(_CALIBRATED, info=replace(_CALIBRATED.info, card=_card(tuning=_CALIBRATION))),
    variant(
        AFM,
        "importance",
        "as afm; the memory model says of each unit whether it is critical, relevant or trivial",
        importance=True,
        compress_ratio=0.33,
    ),
    variant(
        AFM,
        "model_compressor",
        "as afm; the memory model compresses, with the query as a hint",
        compressor="model",
        keep_compressed=True,
    ),
)
