"""``memtree``: units filed in a tree whose inner nodes the model rewrites as something is filed below them
(docs/methods.md B.8).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from pydantic import Field

from flexmem import tokens
from flexmem.history import Unit
from flexmem.memory.asking import MemoryModel, memory_model
from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.baselines.kept import KeptReplies
from flexmem.memory.baselines.short_texts import own_text
from flexmem.memory.filling import fill_by_rank
from flexmem.memory.flexa.merging import merge_by_rule
from flexmem.memory.flexa.records import first_words
from flexmem.memory.prompts import template
from flexmem.memory.protocol import Budget, FidelityCard, MethodConfig, MethodInfo, Query, Rendering, Resolution
from flexmem.memory.registry import MethodSpec
from flexmem.memory.selection import Fragment
from flexmem.memory.unit_forms import raw_fragment
from flexmem.memory.vectors import GrowingVectors
from flexmem.ports import IndexConfig, Services, VectorArray
from flexmem.retrieval.dense import inner_products
from flexmem.retrieval.ordering import order_by_cosine

ROOT = 0
_REPLY_TOKENS = 800  # several times what 100 words take, for a model that reasons


class MemtreeConfig(MethodConfig):
    """When something is filed below a node, and how long a node's text is."""

    base_threshold: float = 0.4
    """The least cosine with a child of the root; MemEngine's."""
    rate: float = 0.5
    """How fast the least cosine grows with depth; MemEngine's."""
    node_words: int = Field(100, ge=1)
    """Ours: an inner node's cut. The paper states no length; RAPTOR's summaries have about as much."""


@dataclass
class Node:
    """A node: a unit's leaf (``uid``), or an inner node with a text of its own (``uid`` None). The root has neither."""

    parent: int
    depth: int
    uid: int | None = None
    text: str = ""
    children: list[int] = field(default_factory=list)


class Tree:
    """Nodes by id, the root first; an id never changes. Row i of ``vectors`` is node i's; the root's is zero."""

    def __init__(self, dimension: int) -> None:
        self.nodes = [Node(ROOT, 0)]
        self.deepest = 0
        self.vectors = GrowingVectors(dimension)
        self.vectors.append(np.zeros(dimension, dtype=np.float32))

    def add(self, parent: int, vector: VectorArray, uid: int | None = None, text: str = "") -> int:
        """Add a node below ``parent``; its id."""
        self.nodes.append(Node(parent, 0, uid, text))
        self.vectors.append(vector)
        number = len(self.nodes) - 1
        self._hang(number, parent)
        return number

    def rewrite(self, number: int, vector: VectorArray, text: str) -> None:
        """Give an inner node another text."""
        self.nodes[number].text = text
        self.vectors.replace(number, vector)

    def split(self, leaf: int, vector: VectorArray, text: str) -> int:
        """Put an inner node in a leaf's place and the leaf below it; its id."""
        parent = self.nodes[leaf].parent
        self.nodes[parent].children.remove(leaf)
        inner = self.add(parent, vector, text=text)
        self._hang(leaf, inner)
        return inner

    def units(self, number: int) -> tuple[int, ...]:
        """The units below a node, or a leaf's own, in order."""
        return tuple(sorted(self._below(number)))

    def path(self, vector: VectorArray, base: float, rate: float) -> list[int]:
        """The nodes below which a unit of this vector is filed, from the root's child on: the nearest child each time
        while it is near enough, down to a leaf at most. Of equally near children the one that was made first.
        """
        path: list[int] = []
        at = ROOT
        while children := sorted(self.nodes[at].children):
            cosines = inner_products(self.vectors.array[children], vector)
            nearest = int(np.argmax(cosines))
            if cosines[nearest] < threshold(len(path), self.deepest, base, rate):
                break
            at = children[nearest]
            path.append(at)
        return path

    def fill(self, nodes: Sequence[tuple[int, int | None, str]], vectors: VectorArray) -> None:
        """Become the tree of these (parent, uid, text), from node 1 on, as `described` gave them."""
        for (parent, uid, text), vector in zip(nodes, vectors, strict=True):
            self.nodes.append(Node(parent, 0, uid, text))
            self.vectors.append(vector)
        below: dict[int, list[int]] = {}
        for number, node in enumerate(self.nodes[1:], 1):
            below.setdefault(node.parent, []).append(number)
        open_nodes = [ROOT]
        while open_nodes:
            parent = open_nodes.pop()
            for number in below.get(parent, ()):
                self._hang(number, parent)
                open_nodes.append(number)

    def described(self) -> list[tuple[int, int | None, str]]:
        """What `fill` takes."""
        return [(node.parent, node.uid, node.text) for node in self.nodes[1:]]

    def _hang(self, number: int, parent: int) -> None:
        node = self.nodes[number]
        node.parent = parent
        node.depth = self.nodes[parent].depth + 1
        self.deepest = max(self.deepest, node.depth)
        self.nodes[parent].children.append(number)

    def _below(self, number: int) -> Iterator[int]:
        open_nodes = [number]
        while open_nodes:
            node = self.nodes[open_nodes.pop()]
            if node.uid is not None:
                yield node.uid
            open_nodes += node.children


def threshold(depth: int, deepest: int, base: float, rate: float) -> float:
    """The least cosine at which one goes on from a node at ``depth`` (the root's is 0) to a child of its."""
    return base * math.exp(rate * depth / max(1, deepest))


class MemtreeBuild(IndexedBuild):
    """Units and the tree."""

    def __init__(self, config: MemtreeConfig, services: Services) -> None:
        super().__init__("memtree", config, services, IndexConfig(dense=False))
        self.config = config
        self.model: MemoryModel = memory_model(services, self.fallbacks)
        self.tree = Tree(services.embedder.dimension)
        self._kept = KeptReplies()
        self._lines: dict[int, Fragment] = {}

    def view(self) -> MemtreeView:
        return MemtreeView(self)

    async def written(self, unit: Unit) -> None:
        """File the unit (docs/methods.md B.8): all texts and vectors first, then the tree, so that a failure on the way
        leaves the tree as it was.
        """
        embed = self.services.embedder.embed
        vector = (await embed([unit.text]))[0]
        path = self.tree.path(vector, self.config.base_threshold, self.config.rate)
        texts = [await self._kept.get(unit.uid, f"node {node}", partial(self._ask, node, unit)) for node in path]
        vectors = await embed(texts) if texts else ()
        parent = path[-1] if path else ROOT
        for node, text, own in zip(path, texts, vectors, strict=True):
            if self.tree.nodes[node].uid is None:
                self.tree.rewrite(node, own, text)
            else:
                parent = self.tree.split(node, own, text)
        self.tree.add(parent, vector, uid=unit.uid)
        for node in path:  # their units and texts are others now
            self._lines.pop(node, None)

    def fragment(self, number: int) -> Fragment:
        """A node as it is shown: a unit whole, an inner node's text on a line."""
        uid = self.tree.nodes[number].uid
        if uid is not None:
            return raw_fragment(self, uid)
        if number not in self._lines:
            uids = self.tree.units(number)
            text = self.tree.nodes[number].text
            line = f"[u{uids[0]:02d}-u{uids[-1]:02d} | summary of {len(uids)} units] {text}".rstrip() + "\n"
            self._lines[number] = Fragment(line, tokens.count(line), uids, Resolution.SUMMARY)
        return self._lines[number]

    def size(self, number: int) -> int:
        """Tokens of `fragment`."""
        uid = self.tree.nodes[number].uid
        return self.fragment(number).tokens if uid is None else self.table.unit_tokens[uid]

    def extra(self) -> dict[str, Any]:
        return {"nodes": self.tree.described(), "fallbacks": dict(self.fallbacks)}

    async def restore_extra(self, extra: dict[str, Any]) -> None:
        """Take back the tree; vectors are made from the texts again."""
        texts = [text if uid is None else self.units[uid].text for _, uid, text in extra["nodes"]]
        self.tree.fill(extra["nodes"], await self.services.embedder.embed(texts))
        self.fallbacks.update(extra["fallbacks"])

    async def _ask(self, number: int, unit: Unit) -> str:
        """The text of a node below which the unit comes; a leaf has its unit's text so far."""
        node = self.tree.nodes[number]
        covered = len(self.tree.units(number))
        old = node.text if node.uid is None else own_text(self.units[node.uid])
        words = self.config.node_words
        prompt = template("memtree_aggregate").substitute(
            entries=f"{covered} {'entry' if covered == 1 else 'entries'}",
            words=words,
            text=old.strip(),
            unit=unit.text,
        )
        reply = await self.model.text(prompt, _REPLY_TOKENS, "node's text merged by rule, not by the model")
        return merge_by_rule([old, own_text(unit)], words) if reply is None else first_words(reply, words)


class MemtreeView:
    """Reading changes nothing."""

    def __init__(self, build: MemtreeBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """Nodes of all depths in order of their cosine while they fit, shown in time order, a node's text ahead of its
        first unit (`MemoryView.render`).
        """
        require_room(budget.room, 0, "nothing")
        build = self._build
        order = (order_by_cosine(inner_products(build.tree.vectors.array[1:], query.vector)) + 1).tolist()
        fragments = [(number, build.fragment(number)) for number in fill_by_rank(order, build.size, budget.room)]
        fragments.sort(key=lambda shown: (shown[1].uids[0], -len(shown[1].uids), shown[0]))
        return assemble([fragment for _, fragment in fragments], ranking=order)


METHODS = (
    MethodSpec(
        MethodInfo(
            name="memtree",
            prompts=("memtree_aggregate",),
            family="related work",
            summary="units filed in a tree by cosine, inner nodes summed up by the memory model; all nodes by cosine",
            card=FidelityCard(
                source="MemTree, arXiv 2410.14052; the threshold's values from nuster1128/MemEngine",
                follows="filing from the root to the nearest child while its cosine reaches a threshold that grows "
                "with depth, a leaf on the way becoming an inner node with the old and the new leaf, every passed "
                "node's text made anew by the model from its old text and what is new, retrieval over all nodes by "
                "cosine",
                ours="an item is a unit; a text of 100 words; depth_max of the threshold is the tree's own depth; "
                "units are shown raw and texts on a line; filling by rank in place of a fixed number; evidence "
                "visibility does not apply, since in a room that holds few units mostly texts are shown",
                differs="no code of the authors' was read; the prompt is ours",
                tuning="nothing tuned; the length of a node's text set once",
            ),
            writes_with_model=True,
            rewrites_text=True,
        ),
        MemtreeConfig(),
        MemtreeBuild,
    ),
)
