"""RAPTOR's build: pieces with their vectors, and the tree of summaries over them (docs/methods.md B.8)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.asking import MemoryModel, memory_model
from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.mixtures import require_packages
from flexmem.memory.baselines.raptor.clustering import cluster
from flexmem.memory.baselines.raptor.config import RaptorConfig
from flexmem.memory.baselines.raptor.view import RaptorView
from flexmem.memory.flexa.merging import merge_by_rule
from flexmem.memory.prompts import template
from flexmem.memory.vectors import GrowingVectors
from flexmem.ports import IndexConfig, Services, VectorArray

_REPLY_TOKENS = 600  # several times what 75 words take, for a model that reasons


@dataclass(frozen=True)
class Summary:
    """A node above the leaves. ``children`` are nodes: piece i is node i, summary j over n leaves is node n + j."""

    children: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class Summaries:
    """A tree over the first ``leaves`` pieces: its summaries, children before parents, and their vectors."""

    leaves: int
    nodes: tuple[Summary, ...]
    vectors: VectorArray


class RaptorBuild(IndexedBuild):
    """Pieces, and the tree, which is made when it is read first and kept until enough has been written since."""

    def __init__(self, config: RaptorConfig, services: Services) -> None:
        require_packages("raptor", "sklearn", "umap")
        super().__init__("raptor", config, services, IndexConfig(piece_tokens=config.piece_tokens, dense=False))
        self.config = config
        self.model: MemoryModel = memory_model(services, self.fallbacks)
        self.vectors = GrowingVectors(services.embedder.dimension)
        """Row i is e(piece i)."""
        self._tree = self._bare()
        self._texts: dict[str, str] = {}  # summaries by what they sum up: a cluster that stays as it was costs nothing
        self._growing = asyncio.Lock()

    def view(self) -> RaptorView:
        return RaptorView(self)

    async def written(self, unit: Unit) -> None:
        """Embed the unit's pieces."""
        pieces = [self.index.pieces[number] for number in self.index.unit_pieces(unit.uid)]
        for vector in await self.services.embedder.embed([piece.content for piece in pieces]):
            self.vectors.append(vector)

    async def tree(self) -> Summaries:
        """The tree over what is written, made anew where it is out of date."""
        async with self._growing:
            if self._outgrown():
                self._tree = await self._grow()
        return self._tree

    def units_below(self, tree: Summaries, number: int) -> tuple[int, ...]:
        """The units whose pieces are below summary ``number``, in order."""
        open_nodes = list(tree.nodes[number].children)
        uids = set()
        while open_nodes:
            node = open_nodes.pop()
            if node < tree.leaves:
                uids.add(self.table.uids[node])
            else:
                open_nodes += tree.nodes[node - tree.leaves].children
        return tuple(sorted(uids))

    def extra(self) -> dict[str, Any]:
        nodes = [[list(node.children), node.text] for node in self._tree.nodes]
        return {"leaves": self._tree.leaves, "nodes": nodes, "fallbacks": dict(self.fallbacks)}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        """Take back the tree; vectors are made from the texts again."""
        embed = self.services.embedder.embed
        for vector in await embed([piece.content for piece in self.pieces]):
            self.vectors.append(vector)
        nodes = tuple(Summary(tuple(children), text) for children, text in extra["nodes"])
        vectors = await embed([node.text for node in nodes]) if nodes else self._bare().vectors
        self._tree = Summaries(extra["leaves"], nodes, vectors)
        texts = [piece.text for piece in self.pieces[: extra["leaves"]]]
        for node in nodes:
            self._texts[_digest([texts[child] for child in node.children])] = node.text
            texts.append(node.text)
        self.fallbacks.update(extra["fallbacks"])

    def _bare(self) -> Summaries:
        return Summaries(0, (), np.zeros((0, self.services.embedder.dimension), dtype=np.float32))

    def _outgrown(self) -> bool:
        new = len(self.vectors) - self._tree.leaves
        agent = bool(self.units) and self.units[0].kind == "agent"
        return new > (self.config.regrow * self._tree.leaves if agent else 0)

    async def _grow(self) -> Summaries:
        """Layer upon layer, until few enough nodes are left (docs/methods.md B.8)."""
        leaves = len(self.vectors)
        texts = [self.table.text(number) for number in range(leaves)]
        sizes = [self.index.pieces[number].tokens for number in range(leaves)]
        vectors = [self.vectors.array]
        nodes: list[Summary] = []
        layer = list(range(leaves))
        for _ in range(self.config.layers):
            if len(layer) <= self.config.clusters.dimensions + 1:
                break
            first = layer[0]
            found = await asyncio.to_thread(cluster, vectors[-1], [sizes[node] for node in layer], self.config.clusters)
            groups = [tuple(first + member for member in group) for group in found]
            written = await self._summarise([[texts[node] for node in group] for group in groups])
            nodes += [Summary(group, text) for group, text in zip(groups, written, strict=True)]
            layer = list(range(len(texts), len(texts) + len(groups)))
            texts += written
            sizes += [tokens.count(text) for text in written]
            vectors.append(await self.services.embedder.embed(written))
        self._texts = {
            _digest([texts[child] for child in node.children]): node.text for node in nodes
        }  # what no cluster needs any more is forgotten
        return Summaries(leaves, tuple(nodes), np.concatenate([self._bare().vectors, *vectors[1:]]))

    async def _summarise(self, groups: Sequence[Sequence[str]]) -> list[str]:
        """The groups' summaries, asked for at once; those that came are kept where another fails.

        Raises:
            ModelError: the model could not be asked.
        """
        wanted = {_digest(group): group for group in groups}
        missing = [(key, group) for key, group in wanted.items() if key not in self._texts]
        replies = await asyncio.gather(*(self._ask(group) for _, group in missing), return_exceptions=True)
        failure: BaseException | None = None
        for (key, _), reply in zip(missing, replies, strict=True):
            if isinstance(reply, str):
                self._texts[key] = reply
            else:
                failure = failure or reply
        if failure is not None:
            raise failure
        return [self._texts[_digest(group)] for group in groups]

    async def _ask(self, group: Sequence[str]) -> str:
        words = self.config.summary_words
        passages = "\n".join(text if text.endswith("\n") else text + "\n" for text in group)
        prompt = template("raptor_summary").substitute(words=words, passages=passages)
        reply = await self.model.text(prompt, _REPLY_TOKENS, "summary by rule, not by the model")
        text = merge_by_rule(group, words) if reply is None else reply
        return _cut(" ".join(text.split()), self.config.summary_tokens)


def _cut(text: str, limit: int) -> str:
    """The text's first words that have at most ``limit`` tokens together with a line break."""
    if tokens.count(text + "\n") <= limit:
        return text
    head = text[: tokens.longest_prefix(text, limit - 1)]
    whole_words, blank, _ = head.rpartition(" ")
    return whole_words if blank and not text[len(head)].isspace() else head


def _digest(texts: Sequence[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
