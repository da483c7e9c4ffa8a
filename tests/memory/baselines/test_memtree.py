"""``memtree``: where a unit is filed, and what is rewritten on the way (docs/methods.md B.8)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem.contract.cases import Case, cases
from flexmem.history import Unit
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.baselines.memtree import ROOT, MemtreeBuild, threshold
from flexmem.memory.protocol import MethodError, Resolution, TaskKind
from flexmem.ports import ChatRequest
from tests.memory.examples import CompassEmbedder, chat, compass_query, shown, wait, words, written

from .obliging import Obliging, keeps_the_contract, prompt_of

# ---------------------------------------------------------------- worked by hand

# Directions as (north, east). The least cosine is 0.4 below the root; in a tree of depth 2, 0.4 * e^(0.5 * 1/2) = 0.514
# below a node at depth 1. Texts are the model's replies; a tree stands in nested brackets, text first.
#
#   u0 (1, 0)   the root has no child                                                      [u0]
#   u1 (1, 0)   u0 has 1: a leaf, so a node takes its place; the reply is "east"           [east [u0, u1]]
#   u2 (1, 2)   the node's text has 2/sqrt 5 = 0.894: on. u0 and u1 have 1/sqrt 5 = 0.447,
#               less than 0.514: filed here; the node's text is now "north east"           [north east [u0, u1, u2]]
#   u3 (0, 1)   the node has 0.707: on. u2 has 0.894: on, a leaf. The node's text is now
#               "north", the new one's "east one"                             [north [u0, u1, east one [u2, u3]]]
#   u4 (0, 1)   the node has 0, less than 0.4: below the root                              [north [...], u4]
UNITS = chat(["north one"], ["north two"], ["north east east"], ["east three"], ["east four"])
REPLIES = ["east", "north east", "north", "east one"]
TREE = [("north", [0, 1, ("east one", [2, 3])]), 4]


def nested(build: MemtreeBuild, number: int = ROOT) -> list[object]:
    """The nodes below one: a unit's id, or a text and what is below it."""
    made: list[object] = []
    for child in sorted(build.tree.nodes[number].children, key=build.tree.units):
        node = build.tree.nodes[child]
        made.append((node.text, nested(build, child)) if node.uid is None else node.uid)
    return made


def filed(units: Sequence[Unit], model: ScriptedModel, **options: float) -> MemtreeBuild:
    build = written("memtree", units, model=model, **options)
    assert isinstance(build, MemtreeBuild)
    return build


def test_filing_worked_by_hand() -> None:
    build = filed(UNITS, ScriptedModel(REPLIES))
    assert nested(build) == TREE
    assert build.tree.deepest == 3


def simulated(
    growing: bool = True, rewritten: bool = True, leaf_first: bool = False, shallow: bool = False
) -> list[object]:
    """The example with plain lists, with one rule changed: a node is [text or None, vector, children or uid]."""
    vectors = [(1, 0), (1, 0), (1, 2), (0, 1), (0, 1)]
    replies = iter(REPLIES)
    root: list[object] = []
    deepest = 0

    def cosine(one: tuple[int, int], other: tuple[int, int]) -> float:
        return (one[0] * other[0] + one[1] * other[1]) / math.hypot(*one) / math.hypot(*other)

    def heading(text: str) -> tuple[int, int]:
        return text.count("north"), text.count("east")

    for uid, vector in enumerate(vectors):
        below, depth = root, 0
        while below:
            near = max(below, key=lambda node: cosine(node[1], vector))  # type: ignore[index]
            least = 0.4 * math.exp(0.5 * depth / max(1, deepest)) if growing else 0.4
            if cosine(near[1], vector) < least:  # type: ignore[index]
                break
            depth += 1
            if near[0] is None:  # type: ignore[index]
                text = next(replies, "")
                if leaf_first:
                    below.append([None, vector, uid])
                    break
                below.remove(near)
                inner: list[object] = [text, heading(text), [near]]
                below.append(inner)
                below = inner[2]  # type: ignore[assignment]
                break
            text = next(replies, "") if rewritten else near[0]  # type: ignore[index]
            near[0], near[1] = text, heading(text)  # type: ignore[index]
            below = near[2]  # type: ignore[index]
            if shallow:
                break
        if [None, vector, uid] not in below:
            below.append([None, vector, uid])
        deepest = max(deepest, _depth(root))
    return _nested(root)


def _depth(below: list[object]) -> int:
    return max((1 + (_depth(node[2]) if node[0] is not None else 0) for node in below), default=0)  # type: ignore[index]


def _nested(below: list[object]) -> list[object]:
    made = [node[2] if node[0] is None else (node[0], _nested(node[2])) for node in below]  # type: ignore[index]
    return sorted(made, key=lambda node: _least(node))


def _least(node: object) -> int:
    return node if isinstance(node, int) else min(map(_least, node[1]))  # type: ignore[index]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"growing": False}, id="one threshold for all depths"),
        pytest.param({"rewritten": False}, id="passed nodes keep their text"),
        pytest.param({"leaf_first": True}, id="a leaf stays a leaf, the new one beside it"),
        pytest.param({"shallow": True}, id="never deeper than the first node"),
    ],
)
def test_the_filing_example_tells_wrong_variants(wrong: dict[str, bool]) -> None:
    assert simulated() == TREE
    assert simulated(**wrong) != TREE


@pytest.mark.parametrize(
    ("depth", "deepest", "expected"), [(0, 0, 0.4), (0, 9, 0.4), (1, 2, 0.5136), (3, 3, 0.6595), (1, 4, 0.4533)]
)
def test_thresholds(depth: int, deepest: int, expected: float) -> None:
    assert threshold(depth, deepest, 0.4, 0.5) == pytest.approx(expected, abs=1e-4)


def test_of_equally_near_children_the_first_made_is_taken() -> None:
    """u2 points between u0 and u1 and has 0.707 with both."""
    build = filed(chat(["north"], ["east"], ["north east"]), ScriptedModel(["x"]))
    assert nested(build) == [("x", [0, 2]), 1]


# ---------------------------------------------------------------- the model


def test_a_prompt_has_the_text_so_far_and_what_is_new() -> None:
    model = ScriptedModel(REPLIES)
    filed(UNITS, model)
    first, second, third, fourth = map(prompt_of, model.requests)
    assert "it covers 1 entry so far" in first
    assert "Text so far:\nAnn: north one\n\nWhat is new:\n### u01" in first
    assert "it covers 2 entries so far" in second
    assert "Text so far:\neast\n\nWhat is new:\n### u02" in second
    assert "it covers 3 entries so far" in third
    assert "Text so far:\nAnn: north east east\n\nWhat is new:\n### u03" in fourth
    assert all("at most 100 words" in said and "$" not in said for said in (first, second, third, fourth))


def test_a_text_is_cut() -> None:
    build = filed(UNITS[:2], ScriptedModel([words(101)]))
    assert nested(build) == [(words(100), [0, 1])]


@pytest.mark.parametrize("replies", ["refuse", [" ", ""]])
def test_without_a_usable_text_a_rule_merges_and_it_is_counted(replies: str | Sequence[str]) -> None:
    build = filed(UNITS[:2], ScriptedModel(replies))
    assert nested(build) == [("Ann: north one Ann: north two", [0, 1])]
    assert dict(build.fallbacks) == {"node's text merged by rule, not by the model": 1}


def test_it_needs_a_model() -> None:
    with pytest.raises(MethodError, match="memory model"):
        written("memtree", [])


# ---------------------------------------------------------------- reading

# The query points east: u3, u4 and "east one" have 1, u2 0.894, "north" and the others 0. Ids: u0 1, u1 2, the node of
# u0 and u1 3 ... so equal cosines go by who was filed first. Units have 8 + 5 tokens, u2 14; the lines are counted.


def test_all_nodes_are_ranked_and_shown_in_time_order_with_texts_ahead_of_their_first_unit() -> None:
    build = filed(UNITS, ScriptedModel(REPLIES))
    whole = shown(build, compass_query("?", "east"), 1_000)
    assert [(block.uids, block.resolution is Resolution.SUMMARY) for block in whole.blocks] == [
        ((0, 1, 2, 3), True),
        ((0,), False),
        ((1,), False),
        ((2, 3), True),
        ((2,), False),
        ((3,), False),
        ((4,), False),
    ]
    assert "[u00-u03 | summary of 4 units] north\n" in whole.text
    assert "[u02-u03 | summary of 2 units] east one\n### u02" in whole.text
    best = [build.fragment(number).uids for number in whole.ranking[:4]]
    assert set(best[:3]) == {(3,), (4,), (2, 3)}
    assert best[3] == (2,)


def test_what_does_not_fit_is_passed_over() -> None:
    build = filed(UNITS, ScriptedModel(REPLIES))
    order = shown(build, compass_query("?", "east"), 1_000).ranking
    sizes = [build.fragment(number).tokens for number in order]
    room = sizes[0] + sizes[1] + sizes[2] + min(sizes[4:])
    left, expected = room, set()
    for number, size in zip(order, sizes, strict=True):
        if size <= left:
            expected.add(build.fragment(number).uids)
            left -= size
    rendering = shown(build, compass_query("?", "east"), room)
    assert {block.uids for block in rendering.blocks} == expected


# ---------------------------------------------------------------- properties and contract


class Turning(CompassEmbedder):
    """Vectors in the plane by a hash of the text, so that trees are of many shapes."""

    async def embed(self, texts: Sequence[str]) -> np.ndarray:  # type: ignore[type-arg]
        angles = [sum(text.encode()) % 97 / 97 * 2 * math.pi for text in texts]
        return np.array([(math.cos(a), math.sin(a), 0) for a in angles], dtype=np.float32).reshape(len(texts), 3)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text("abcdefgh", min_size=1, max_size=5), max_size=14))
def test_every_unit_has_one_leaf_and_every_inner_node_two_children(said: list[str]) -> None:
    units = chat(*[[text] for text in said])
    build = written("memtree", units, model=ScriptedModel("first_sentence"), embedder=Turning())
    assert isinstance(build, MemtreeBuild)
    nodes = build.tree.nodes
    assert sorted(node.uid for node in nodes if node.uid is not None) == list(range(len(units)))
    for number, node in enumerate(nodes[1:], 1):
        assert number in nodes[node.parent].children
        assert node.depth == nodes[node.parent].depth + 1
        assert not node.children if node.uid is not None else len(node.children) >= 2
    assert build.tree.deepest == max(node.depth for node in nodes)
    kept = [node.text for node in nodes[1:] if node.uid is None]
    again = [vector for node, vector in zip(nodes[1:], build.tree.vectors.array[1:], strict=True) if node.uid is None]
    assert not kept or np.array_equal(np.array(again), wait(Turning().embed(kept)))


def sensible(request: ChatRequest) -> str:
    """Some words of the text so far and some of what is new."""
    old, _, new = prompt_of(request).rpartition("\nText so far:\n")[2].partition("\n\nWhat is new:\n")
    return " ".join([*old.split()[:12], *new.split()[4:16]])


@pytest.mark.parametrize("kind", ["reader", "agent"])
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_contract_holds_behind_a_model_that_follows_its_prompt(kind: TaskKind, data: st.DataObject) -> None:
    case: Case = data.draw(cases(kind))
    keeps_the_contract(Obliging("memtree", sensible), case)
