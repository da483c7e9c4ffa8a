"""``scm``: raw units and summaries of them, chosen between by a memory controller (docs/methods.md B.8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from flexmem.history import Unit
from flexmem.memory.asking import MemoryModel, ReplyForm, memory_model
from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.call_text import call_text
from flexmem.memory.baselines.kept import KeptReplies
from flexmem.memory.baselines.short_texts import labelled, shortened
from flexmem.memory.filling import cut_to_room
from flexmem.memory.prompts import template
from flexmem.memory.protocol import Budget, FidelityCard, MethodConfig, MethodInfo, Query, Rendering, Resolution
from flexmem.memory.registry import MethodSpec, variant
from flexmem.memory.selection import Fragment
from flexmem.memory.unit_forms import beginning, raw_fragment
from flexmem.memory.vectors import GrowingVectors
from flexmem.ports import IndexConfig, Services
from flexmem.retrieval.dense import inner_products
from flexmem.retrieval.ordering import order_by_cosine

OWN_WORDS = "summary of the unit's own first words, not written by the model"
UNJUDGED = "unit kept raw, not judged by the model"


class ScmConfig(MethodConfig):
    """SCM's values; those marked as ours are not in its code."""

    top_k: int = Field(3, ge=0)
    """Older units that are activated by cosine; reference code."""
    previous_tokens: int = Field(500, ge=0)
    """The previous unit is raw below this size and a summary from there on; reference code."""
    summary_words: int = Field(80, ge=1)
    """A summary's length, a cut (ours): a record's, so that what the methods write compares."""
    limit: int | None = Field(None, ge=0)
    """Tokens above which the controller steps in. None: the room. The reference code has 2,500 (``scm.paper_k``)."""
    fill: bool = True
    """Whether further units follow by cosine until the room ends, each raw if it fits, else as its summary (equal
    filling, ours)."""
    reply_tokens: int = Field(600, ge=1)
    """Limit of a judgement's reply: two words, and some reasoning (ours)."""


class JudgeReply(ReplyForm):
    """What the controller is asked for as."""

    raw_helps: bool
    summary_suffices: bool


class ScmBuild(IndexedBuild):
    """Units with e(unit), and the line of each one's summary."""

    def __init__(self, config: ScmConfig, services: Services) -> None:
        super().__init__("scm", config, services, IndexConfig(dense=False))
        self.config = config
        self.model: MemoryModel = memory_model(services, self.fallbacks)
        self.vectors = GrowingVectors(services.embedder.dimension)
        """Row u is e(unit u)."""
        self.summaries: list[str] = []
        self.lines: list[Fragment] = []
        self._kept = KeptReplies()

    def view(self) -> ScmView:
        return ScmView(self)

    async def written(self, unit: Unit) -> None:
        words = self.config.summary_words
        text = await self._kept.get(
            unit.uid, "summary", lambda: shortened(self.model, "scm_summary", unit, words, OWN_WORDS)
        )
        self.vectors.append((await self.services.embedder.embed([unit.text]))[0])
        self._add(unit, text)

    def extra(self) -> dict[str, Any]:
        return {"summaries": self.summaries, "fallbacks": dict(self.fallbacks)}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        for vector in await self.services.embedder.embed([unit.text for unit in self.units]):
            self.vectors.append(vector)
        for unit, text in zip(self.units, extra["summaries"], strict=True):
            self._add(unit, text)
        self.fallbacks.update(extra["fallbacks"])

    def _add(self, unit: Unit, text: str) -> None:
        self.summaries.append(text)
        self.lines.append(labelled(unit, text, Resolution.RECORD))


class ScmView:
    """Every rendering that passes the limit asks the model anew; nothing is kept."""

    def __init__(self, build: ScmBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """The previous unit and those activated, then further ones; shown in time order (`MemoryView.render`)."""
        require_room(budget.room, 0, "nothing")
        build, config = self._build, self._build.config
        if not build.units:
            return assemble([])
        limit = budget.room if config.limit is None else min(config.limit, budget.room)
        previous = len(build.units) - 1
        order = order_by_cosine(inner_products(build.vectors.array[:previous], query.vector)).tolist()
        active, others = order[: config.top_k], order[config.top_k :]
        short = build.table.unit_tokens[previous] < config.previous_tokens
        shown = {previous: raw_fragment(build, previous) if short else build.lines[previous]}
        shown |= {uid: raw_fragment(build, uid) for uid in active}
        if _total(shown) > limit:
            await self._control(shown, active, query)
            self._shrink(shown, [previous, *active], limit)
        if config.fill:
            self._fill(shown, others, budget.room)
        ranking = [previous, *(order if config.fill else active)]
        return assemble([shown[uid] for uid in sorted(shown)], ranking=ranking)

    async def _control(self, shown: dict[int, Fragment], active: Sequence[int], query: Query) -> None:
        """Have each activated unit judged: dropped where its raw text is no help, a summary where that suffices."""
        for uid in active:
            prompt = template("scm_judge").substitute(
                call=call_text(query), summary=self._build.summaries[uid], unit=self._build.units[uid].text
            )
            reply = await self._build.model.fill(JudgeReply, prompt, self._build.config.reply_tokens, UNJUDGED)
            if reply is None:
                continue
            if not reply.raw_helps:
                del shown[uid]
            elif reply.summary_suffices:
                shown[uid] = self._build.lines[uid]

    def _shrink(self, shown: dict[int, Fragment], ranked: Sequence[int], limit: int) -> None:
        """From the lowest rank on, raw units become their summaries, where those are shorter, until all fits. What then
        still does not is given up in the same order; of the best one the beginning stays.
        """
        for uid in reversed(ranked):
            if uid in shown and _total(shown) > limit and self._build.lines[uid].tokens < shown[uid].tokens:
                shown[uid] = self._build.lines[uid]
        for uid in reversed(ranked):
            if uid in shown and _total(shown) > limit:
                rest = shown.pop(uid)
                if shown:
                    continue
                whole = rest.resolution is Resolution.RAW
                kept = beginning(self._build, uid, limit) if whole else cut_to_room(rest, limit)
                if kept is not None:
                    shown[uid] = kept

    def _fill(self, shown: dict[int, Fragment], others: Sequence[int], room: int) -> None:
        """Further units in rank order, each in the first of its two forms that fits."""
        left = room - _total(shown)
        for uid in others:
            for tokens, form in (
                (self._build.table.unit_tokens[uid], lambda uid: raw_fragment(self._build, uid)),
                (self._build.lines[uid].tokens, self._build.lines.__getitem__),
            ):
                if tokens <= left:
                    shown[uid] = form(uid)
                    left -= tokens
                    break


def _total(shown: dict[int, Fragment]) -> int:
    return sum(fragment.tokens for fragment in shown.values())


SCM = MethodSpec(
    MethodInfo(
        name="scm",
        prompts=("scm_summary", "scm_judge"),
        family="SCM",
        summary="the previous unit, three activated by cosine, and a controller that has units judged where they don't "
        "fit; further units fill the room",
        card=FidelityCard(
            source="SCM (self-controlled memory) and its public code (wbbeyourself/SCM4LLMs), read for facts",
            follows="raw text, summary and vector of each item; 3 older ones by cosine, beside the previous one, which "
            "is raw below 500 tokens; above the limit the model says of each activated one whether its raw text helps "
            "and whether the summary suffices; then raw ones become summaries until all fits",
            ours="an item is a unit; summaries of at most 80 words; the limit is the room, 2,500 tokens in "
            "scm.paper_k; raw units become summaries from the lowest rank on, and what still does not fit is given up "
            "in that order; further units by cosine fill the room, raw if they fit, else as summaries, and no model is "
            "asked about them; a unit without a usable judgement stays raw, counted",
            differs="one call judges both questions of a unit; replies are JSON; temperature 0; vectors are the shared "
            "embedder's",
            tuning="nothing tuned: the reference code's values",
        ),
        writes_with_model=True,
        reads_with_model=True,
        asks_per_call=True,
    ),
    ScmConfig(),
    ScmBuild,
)

METHODS = (
    SCM,
    variant(
        SCM,
        "paper_k",
        "the previous unit and three activated ones in 2,500 tokens, no more",
        limit=2_500,
        fill=False,
    ),
)
