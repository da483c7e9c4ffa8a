"""``readagent``: a gist for each unit, and pages that the model looks up at every call (docs/methods.md B.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from flexmem.history import Unit
from flexmem.memory.asking import MemoryModel, ReplyForm, memory_model
from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.call_text import call_text
from flexmem.memory.baselines.pages import Gist, Pages
from flexmem.memory.baselines.short_texts import labelled, shortened
from flexmem.memory.prompts import template
from flexmem.memory.protocol import Budget, FidelityCard, MethodConfig, MethodInfo, Query, Rendering, Resolution
from flexmem.memory.registry import MethodSpec, variant
from flexmem.ports import IndexConfig, Services

OWN_WORDS = "gist of the unit's own first words, not written by the model"
NO_LOOK_UP = "look-up left out, gists alone"
STOPPED = "look-up stopped at an unusable reply"


class ReadAgentConfig(MethodConfig):
    """ReadAgent's values; those marked as ours are not in its paper or code."""

    gist_words: int = Field(80, ge=1)
    """A gist's length, a cut (ours): a record's, so that what the methods write compares. The paper asks for no
    length."""
    look_up: Literal["parallel", "sequential"] = "parallel"
    """All pages named at once, or one at a time, each seen before the next is named; both are the paper's."""
    most_pages: int = Field(5, ge=0)
    """Pages that a call may look up: the paper's most."""
    make_room: bool = False
    """Whether a looked-up page pushes out the oldest gists where it doesn't fit beside them (ours). False: it stays
    shortened, and gists that fill the room leave none for pages."""
    look_up_tokens: int = Field(32_000, ge=1)
    """Gists that a look-up is shown, the newest (ours): the paper's documents have few enough for one prompt, a history
    may not."""
    reply_tokens: int = Field(600, ge=1)
    """Limit of a look-up's reply: a list of numbers, and some reasoning (ours)."""


class LookUpReply(ReplyForm):
    """What a look-up is asked for as: numbers of pages, that is of units."""

    pages: list[int]


class ReadAgentBuild(IndexedBuild):
    """Units as pages, and their gists."""

    def __init__(self, config: ReadAgentConfig, services: Services) -> None:
        super().__init__("readagent", config, services, IndexConfig(dense=False))
        self.config = config
        self.gists: list[Gist] = []
        self.model: MemoryModel = memory_model(services, self.fallbacks)

    def view(self) -> ReadAgentView:
        return ReadAgentView(self)

    async def written(self, unit: Unit) -> None:
        self._add(unit, await shortened(self.model, "readagent_gist", unit, self.config.gist_words, OWN_WORDS))

    def extra(self) -> dict[str, Any]:
        return {"gists": [gist.text for gist in self.gists], "fallbacks": dict(self.fallbacks)}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        for unit, text in zip(self.units, extra["gists"], strict=True):
            self._add(unit, text)
        self.fallbacks.update(extra["fallbacks"])

    def _add(self, unit: Unit, text: str) -> None:
        self.gists.append(Gist(text, labelled(unit, text, Resolution.RECORD)))


class ReadAgentView:
    """Every rendering asks the model anew; nothing is kept."""

    def __init__(self, build: ReadAgentBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """Gists in time order, those of looked-up pages replaced by the pages (`MemoryView.render`). Where the gists
        alone exceed the room the oldest are left out.
        """
        require_room(budget.room, 0, "nothing")
        build = self._build
        pages = Pages(build, build.gists, budget.room, make_room=build.config.make_room)
        named: list[int] = []
        if len(pages) and build.config.most_pages:
            if build.config.look_up == "parallel":
                named = await self._at_once(query, pages)
            else:
                named = await self._one_by_one(query, pages)
        return assemble(pages.fragments(), ranking=named)

    async def _at_once(self, query: Query, pages: Pages) -> list[int]:
        """Open the named pages in their order; returns them. An unusable reply opens none, counted."""
        most = self._build.config.most_pages
        prompt = template("readagent_lookup").substitute(
            most=most, pages=pages.described(self._build.config.look_up_tokens), call=call_text(query)
        )
        named = (self._known(await self._ask(prompt, NO_LOOK_UP), pages))[:most]
        for uid in named:
            pages.open(uid)
        return named

    async def _one_by_one(self, query: Query, pages: Pages) -> list[int]:
        """Open one page at a time until the model names none that is new, or there were enough; returns them."""
        config = self._build.config
        named: list[int] = []
        while len(named) < config.most_pages:
            prompt = template("readagent_next").substitute(
                left=config.most_pages - len(named),
                named=", ".join(map(str, named)) or "none",
                pages=pages.described(config.look_up_tokens),
                call=call_text(query),
            )
            fresh = [uid for uid in self._known(await self._ask(prompt, STOPPED), pages) if uid not in named]
            if not fresh:
                break
            named.append(fresh[0])
            pages.open(fresh[0])
        return named

    async def _ask(self, prompt: str, fallback: str) -> Sequence[int]:
        reply = await self._build.model.fill(LookUpReply, prompt, self._build.config.reply_tokens, fallback)
        return reply.pages if reply is not None else ()

    @staticmethod
    def _known(numbers: Sequence[int], pages: Pages) -> list[int]:
        """Numbers that are pages', each once."""
        return list(dict.fromkeys(number for number in numbers if 0 <= number < len(pages)))


READAGENT = MethodSpec(
    MethodInfo(
        name="readagent",
        prompts=("readagent_gist", "readagent_lookup", "readagent_next"),
        family="ReadAgent",
        summary="a gist for each unit; at every call the model names up to five pages, whose text replaces their gists",
        card=FidelityCard(
            source="ReadAgent, arXiv 2402.09727, and its public notebook (read-agent/read-agent.github.io), read for "
            "facts",
            follows="pages are shortened once; a look-up call is shown the numbered gists and the question and names "
            "pages, at most 5; named pages stand in their gists' places",
            ours="a page is a unit; gists of at most 80 words; the budget: the oldest gists are left out where all "
            "don't fit, and pages are opened in the order named where the whole then fits; a look-up is shown the "
            "newest 32,000 tokens of gists; unusable replies leave the unit's first words as its gist, or gists alone, "
            "counted",
            differs="pages are not cut by the model at pause points of up to 600 words, since all methods share units; "
            "replies are JSON; temperature 0",
            tuning="nothing tuned",
        ),
        writes_with_model=True,
        reads_with_model=True,
        asks_per_call=True,
        rewrites_text=True,
    ),
    ReadAgentConfig(),
    ReadAgentBuild,
)

METHODS = (
    READAGENT,
    variant(READAGENT, "sequential", "pages are looked up one at a time, until the model stops", look_up="sequential"),
    variant(READAGENT, "pages_first", "a looked-up page pushes out the oldest gists", make_room=True),
)
