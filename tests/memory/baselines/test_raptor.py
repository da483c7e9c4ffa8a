"""``raptor``: clusters, the tree over them, and what is read of it (docs/methods.md B.8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem.contract.cases import Case, cases
from flexmem.history import Unit
from flexmem.llm.errors import Transient
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.baselines import mixtures
from flexmem.memory.baselines.raptor import build as raptor_build
from flexmem.memory.baselines.raptor import clustering
from flexmem.memory.baselines.raptor.build import RaptorBuild
from flexmem.memory.baselines.raptor.clustering import cluster
from flexmem.memory.baselines.raptor.config import ClusterRules
from flexmem.memory.protocol import MethodError, Rendering, Resolution, TaskKind
from flexmem.ports import ChatRequest, FloatArray, VectorArray
from tests.memory.examples import chat, compass_query, history, shown, wait, words, written

from .obliging import Obliging, keeps_the_contract, prompt_of

PIECE, SUMMARY = Resolution.PIECE, Resolution.SUMMARY

# ---------------------------------------------------------------- a tree, worked by hand

# Five leaves, one a turn; clusters are given. With 2 dimensions, layers end at three nodes or fewer.
#
#   leaves      0 u0 north, 1 u0 east, 2 u1 north, 3 u1 red, 4 u2 east        5 > 3: clustered
#   clusters    {0, 2}, {1, 4}, {2, 3}, {3, 4}      so summaries 5, 6, 7, 8   4 > 3: clustered; leaf 2 is in two
#   clusters    {5, 7}, {6, 8} of the first layer   so summaries 9, 10        2: the end
UNITS = chat(["north one", "east two"], ["north three", "red four"], ["east five"])
CLUSTERS = {5: [(0, 2), (1, 4), (2, 3), (3, 4)], 4: [(0, 2), (1, 3)]}
REPLIES = ["north a", "east b", "red c", "blue d", "north e", "east f"]
TREE = [
    ((0, 2), "north a"),
    ((1, 4), "east b"),
    ((2, 3), "red c"),
    ((3, 4), "blue d"),
    ((5, 7), "north e"),
    ((6, 8), "east f"),
]
OPTIONS: dict[str, Any] = {"clusters": {"dimensions": 2}}


@pytest.fixture
def given_clusters(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """`CLUSTERS` by the number of nodes; how many nodes were clustered each time."""
    asked = []

    def clusters(vectors: VectorArray, sizes: Sequence[int], rules: ClusterRules) -> list[tuple[int, ...]]:
        assert len(sizes) == len(vectors)
        asked.append(len(vectors))
        return CLUSTERS[len(vectors)]

    monkeypatch.setattr(raptor_build, "cluster", clusters)
    return asked


def built(units: Sequence[Unit], model: ScriptedModel, name: str = "raptor", **options: object) -> RaptorBuild:
    build = written(name, units, model=model, **{**OPTIONS, **options})
    assert isinstance(build, RaptorBuild)
    return build


def tree_of(build: RaptorBuild) -> list[tuple[tuple[int, ...], str]]:
    return [(node.children, node.text) for node in wait(build.tree()).nodes]


def test_the_tree_worked_by_hand(given_clusters: list[int]) -> None:
    model = ScriptedModel(REPLIES)
    build = built(UNITS, model)
    assert model.calls["memory"] == 0
    assert tree_of(build) == TREE
    assert given_clusters == [5, 4]
    prompts = [prompt_of(request) for request in model.requests]
    assert prompts[0].endswith("Passages:\nAnn: north one\n\nAnn: north three\n\n")
    assert prompts[4].endswith("Passages:\nnorth a\n\nred c\n\n")
    assert all("at most 75 words" in said and "$" not in said for said in prompts)


@pytest.mark.parametrize(("layers", "expected"), [(0, []), (1, TREE[:4]), (2, TREE)])
def test_there_are_so_many_layers_at_most(
    given_clusters: list[int], layers: int, expected: list[tuple[tuple[int, ...], str]]
) -> None:
    assert tree_of(built(UNITS, ScriptedModel(REPLIES), layers=layers)) == expected


@pytest.mark.parametrize(("dimensions", "expected"), [(4, []), (3, TREE[:4]), (2, TREE)])
def test_so_few_nodes_are_not_clustered(
    given_clusters: list[int], dimensions: int, expected: list[tuple[tuple[int, ...], str]]
) -> None:
    """Five leaves and 4 dimensions, or four summaries and 3: no more than dimensions + 1."""
    build = built(UNITS, ScriptedModel(REPLIES), clusters={"dimensions": dimensions})
    assert tree_of(build) == expected


# ---------------------------------------------------------------- reading it, worked by hand

# The query points north. Cosines 1: leaves 0 and 2, summaries 5 ("north a") and 9 ("north e"); all others 0. Equal ones
# by number, so the ranking begins 0, 2, 5, 9, 1, 3, 4, 6.
#
#   0   "Ann: north one" 5, header 8            13   of 44: 31 left
#   2   "Ann: north three" 5, header 8          13   18 left
#   5   "[u00-u01 | summary] north a"           10    8 left
#   9   as long                                 10   does not fit
#   1   "Ann: east two" 5, its header is there,
#       its neighbour 0 is chosen: no gap        5    3 left; nothing else fits
QUERY = compass_query("Which way?", "north")
TEXT = (
    "[u00-u01 | summary] north a\n"
    "### u00 — session 1\nAnn: north one\nAnn: east two\n"
    "### u01 — session 2\nAnn: north three\n"
)
ROOM = 44


def read(room: int, name: str = "raptor", **options: object) -> Rendering:
    return shown(built(UNITS, ScriptedModel(REPLIES), name, **options), QUERY, room)


def test_reading_worked_by_hand(given_clusters: list[int]) -> None:
    rendering = read(ROOM)
    assert rendering.text == TEXT
    assert rendering.ranking[:8] == (0, 2, 5, 9, 1, 3, 4, 6)
    assert [(block.uids, block.resolution, block.pieces, block.tokens) for block in rendering.blocks] == [
        ((0, 1), SUMMARY, (), 10),
        ((0,), PIECE, (0, 1), 18),
        ((1,), PIECE, (2,), 13),
    ]


def leaves_alone(numbers: list[int]) -> list[int]:
    """WRONG: summaries are not looked at."""
    return [number for number in numbers if number < 5]


def summaries_first(numbers: list[int]) -> list[int]:
    """WRONG: from the top of the tree down."""
    return sorted(numbers, key=lambda number: number < 5)


def first_layer_only(numbers: list[int]) -> list[int]:
    """WRONG: leaves and the layer over them, in order of number."""
    return sorted(number for number in numbers if number < 9)


def best_that_fit(numbers: list[int]) -> list[int]:
    """WRONG: ends at the first that does not fit."""
    return numbers[:3]


@pytest.mark.parametrize("wrong", [leaves_alone, summaries_first, first_layer_only, best_that_fit])
def test_the_reading_example_tells_wrong_variants(wrong: Callable[[list[int]], list[int]]) -> None:
    """In plain numbers: what a node costs depends on whether its unit is begun."""
    ranking = [0, 2, 5, 9, 1, 3, 4, 6, 7, 8, 10]
    units = (0, 0, 1, 1, 2)

    def taken(numbers: list[int]) -> set[int]:
        left, chosen, begun = ROOM, set(), set()
        for number in numbers:
            size = 10 if number >= 5 else 5 + (0 if units[number] in begun else 8)
            if size <= left:
                left -= size
                chosen.add(number)
                begun.update(units[number : number + 1] if number < 5 else ())
        return chosen

    assert taken(ranking) == {0, 1, 2, 5}
    assert taken(wrong(ranking)) != {0, 1, 2, 5}


def test_paper_k_reads_the_best_ten_up_to_its_limit_and_ends_at_the_first_that_does_not_fit(
    given_clusters: list[int],
) -> None:
    """Node 9 does not fit, so leaf 1 is not tried. With a limit of 26 the two leaves alone; the best one: u0's."""
    assert read(ROOM, "raptor.paper_k").text == TEXT.replace("Ann: east two\n", "")
    assert [block.uids for block in read(1_000, most_tokens=26).blocks] == [(0,), (1,)]
    assert [block.uids for block in read(1_000, top_k=1).blocks] == [(0,)]
    config = written("raptor.paper_k", [], model=ScriptedModel(REPLIES)).config  # type: ignore[attr-defined]
    assert (config.top_k, config.most_tokens) == (10, 3_500)


# ---------------------------------------------------------------- when the tree is made


def test_reading_pays_for_the_tree_once(given_clusters: list[int]) -> None:
    model = ScriptedModel(REPLIES)
    build = built(UNITS, model)
    for room in (100, 200):
        shown(build, QUERY, room)
    assert model.calls["memory"] == 6


def test_a_reader_has_a_new_tree_after_a_write_and_keeps_summaries_of_unchanged_clusters(
    given_clusters: list[int],
) -> None:
    """With four leaves clusters are {0, 2} and {1, 3}: two summaries. With the fifth leaf {0, 2} stays, three are new,
    and so are the two over them.
    """
    model = ScriptedModel(["north a", "x", *REPLIES[1:]])
    build = built(UNITS[:2], model)
    assert tree_of(build) == [((0, 2), "north a"), ((1, 3), "x")]
    wait(build.write(UNITS[2]))
    assert tree_of(build) == TREE


def test_an_agents_tree_is_made_anew_once_it_has_outgrown_its_share() -> None:
    """At a reading the leaves are those of the tree, or at most a quarter more."""
    units = history(3, "agent", 30, limit=20)
    build = built([], ScriptedModel("first_sentence"), clusters={"dimensions": 1_000})
    made = []
    for unit in units[:20]:
        wait(build.write(unit))
        tree = wait(build.tree())
        leaves = len(build.vectors)
        if not made or made[-1] != tree.leaves:
            assert tree.leaves == leaves
            assert not made or leaves > 1.25 * made[-1]
            made.append(leaves)
        else:
            assert leaves <= 1.25 * made[-1]
    assert len(made) < 20


def test_summaries_that_came_are_kept_where_another_failed(given_clusters: list[int]) -> None:
    model = ScriptedModel([*REPLIES[:2], Transient("down"), REPLIES[3], REPLIES[2], *REPLIES[4:]])
    build = built(UNITS, model)
    with pytest.raises(Transient):
        shown(build, QUERY, 100)
    assert tree_of(build) == TREE
    assert model.calls["memory"] == 7


def test_a_restored_tree_is_not_paid_again(given_clusters: list[int]) -> None:
    build = built(UNITS, ScriptedModel(REPLIES))
    expected = shown(build, QUERY, 60)
    model = ScriptedModel([])
    other = built([], model)
    wait(other.restore(build.state()))
    assert shown(other, QUERY, 60) == expected
    assert model.calls["memory"] == 0


# ---------------------------------------------------------------- the model


def test_a_summary_is_cut_at_its_tokens(given_clusters: list[int]) -> None:
    build = built(UNITS, ScriptedModel([words(120)] * 6), layers=1)
    assert {text for _, text in tree_of(build)} == {words(99)}  # and the line break


@pytest.mark.parametrize("replies", ["refuse", [""] * 12])
def test_without_a_usable_summary_a_rule_writes_it_and_it_is_counted(
    given_clusters: list[int], replies: str | list[str]
) -> None:
    build = built(UNITS, ScriptedModel(replies))
    assert tree_of(build)[0] == ((0, 2), "Ann: north one Ann: north three")
    assert dict(build.fallbacks) == {"summary by rule, not by the model": 6}


def test_it_needs_a_model_and_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MethodError, match="memory model"):
        written("raptor", [])
    monkeypatch.setattr(mixtures.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MethodError, match=r"raptor needs sklearn, umap: pip install 'flexmem\[clustering\]'"):
        written("raptor", [], model=ScriptedModel("echo"))


# ---------------------------------------------------------------- clusters


def heaps(sizes: Sequence[int], seed: int = 0) -> VectorArray:
    """Unit vectors in heaps, each around an axis of its own."""
    drawn = np.random.default_rng(seed)
    rows = np.concatenate(
        [np.eye(16)[number] + 0.02 * drawn.normal(size=(size, 16)) for number, size in enumerate(sizes)]
    )
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.timeout(900)  # UMAP is compiled anew in every process
def test_heaps_are_not_mixed_and_nothing_is_lost() -> None:
    vectors = heaps([20, 20, 20])
    found = cluster(vectors, [10] * 60, ClusterRules())
    assert set().union(*found) == set(range(60))
    assert all(len({node // 20 for node in group}) == 1 for group in found)
    clustering._kept.clear()
    assert cluster(vectors, [10] * 60, ClusterRules()) == found


def test_large_clusters_are_clustered_again_or_cut() -> None:
    """20 nodes of 10 tokens a heap: no cluster may have more than 45, so four nodes at most."""
    found = cluster(heaps([20, 20, 20]), [10] * 60, ClusterRules(cluster_tokens=45))
    assert set().union(*found) == set(range(60))
    assert max(map(len, found)) <= 4


def test_few_nodes_are_one_cluster_and_cut_in_order_where_that_is_too_large() -> None:
    vectors = heaps([8])
    assert cluster(vectors, [10] * 8, ClusterRules()) == [tuple(range(8))]
    assert cluster(vectors, [10] * 8, ClusterRules(cluster_tokens=30)) == [(0, 1, 2), (3, 4, 5), (6, 7)]
    assert cluster(vectors, [10] * 3 + [99] + [10] * 4, ClusterRules(cluster_tokens=50)) == [
        (0, 1, 2),
        (3,),
        (4, 5, 6, 7),
    ]


@pytest.mark.parametrize("nodes", [12, 30])
def test_equal_texts_can_be_clustered(nodes: int) -> None:
    vectors = np.tile(heaps([1]), (nodes, 1))
    assert set().union(*cluster(vectors, [10] * nodes, ClusterRules())) == set(range(nodes))


@pytest.mark.parametrize(("fitted", "heaps_found"), [(2, 2), (1, 1), (0, 1)])
def test_mixtures_that_cannot_be_fitted_are_out_of_the_running(
    monkeypatch: pytest.MonkeyPatch, fitted: int, heaps_found: int
) -> None:
    """Two heaps on a line. Mixtures of more than ``fitted`` components fail."""
    real = clustering.fit_mixture

    def fit(points: FloatArray, components: int, seed: int) -> object:
        if components > fitted:
            raise ValueError("ill-defined empirical covariance")
        return real(points, components, seed)

    monkeypatch.setattr(clustering, "fit_mixture", fit)
    points = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    assert len(clustering._soft(points, ClusterRules())) == heaps_found


# ---------------------------------------------------------------- contract, with a model that follows its prompt


def sensible(request: ChatRequest) -> str:
    """The passages' opening words."""
    said = prompt_of(request).partition("\nPassages:\n")[2]
    return " ".join(" ".join(line.split()[:6]) for line in said.split("\n"))


@pytest.mark.parametrize("kind", ["reader", "agent"])
@pytest.mark.timeout(900)  # UMAP is compiled anew in every process
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_contract_holds_behind_a_model_that_follows_its_prompt(kind: TaskKind, data: st.DataObject) -> None:
    case: Case = data.draw(cases(kind))
    keeps_the_contract(Obliging("raptor", sensible, piece_tokens=24, clusters={"dimensions": 3}), case)
