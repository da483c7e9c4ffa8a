"""``memgas``: links, weights, the walk, and what of a session is shown (docs/methods.md B.8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem.contract.cases import Case, cases
from flexmem.history import Unit
from flexmem.llm.errors import Refused
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.baselines import mixtures
from flexmem.memory.baselines.memgas.build import MemgasBuild
from flexmem.memory.baselines.memgas.config import MemgasConfig
from flexmem.memory.baselines.memgas.graph import Graph, link, seeds, weights
from flexmem.memory.baselines.mixtures import repeatable
from flexmem.memory.protocol import MethodError, Resolution, TaskKind
from flexmem.ports import ChatRequest, FloatArray
from flexmem.retrieval.dense import inner_products
from tests.memory.examples import CompassEmbedder, chat, compass_query, shown, words, written

from .obliging import Obliging, as_json, keeps_the_contract, prompt_of

RAW, SUMMARY = Resolution.RAW, Resolution.SUMMARY

# ---------------------------------------------------------------- the walk, worked by hand

# Three sessions, each in one direction at all four granularities; the query points north. The first two have no links
# of their own here. The third has 0 with the first and 0.707 with the second, so the second's four nodes are the higher
# component.
#
#   s0  up           0
#   s1  east         0
#   s2  north east   0.707   linked to s1: each of its nodes with each of s1's
#
# All granularities are alike, so each weighs 1/4. The walk starts in s2 alone. With x in s2 and y in s1, every step
# crosses with chance 0.1: x = 0.9 + 0.1 y, y = 0.1 x, so x = 0.9/0.99 = 0.909 and y = 0.091. s0 has nothing.
DIRECTIONS = ("up", "east", "north east")
SCORES = [0.0, 0.1 * 0.9 / 0.99, 0.9 / 0.99]


def notes(*said: str) -> ScriptedModel:
    return ScriptedModel([as_json(summary=text, keywords=[text]) for text in said])


def built(units: Sequence[Unit], model: ScriptedModel, **options: object) -> MemgasBuild:
    build = written("memgas", units, model=model, **options)
    assert isinstance(build, MemgasBuild)
    return build


def example(**options: object) -> MemgasBuild:
    return built(chat(*[[said] for said in DIRECTIONS]), notes(*DIRECTIONS), **{"unlinked_sessions": 2, **options})


def test_the_walk_worked_by_hand() -> None:
    graph = example().graph
    assert graph.links == [(8 + new, 4 + old) for new in range(4) for old in range(4)]
    query = CompassEmbedder.vector("north")
    assert graph.scores(query) == pytest.approx(SCORES, abs=1e-9)
    assert graph.rank(query) == [2, 1, 0]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"damping": 0.9}, id="damping taken for the chance to start again"),
        pytest.param({"damping": 0.0}, id="no walk: similarity alone"),
        pytest.param({"unlinked_sessions": 5}, id="no links so early"),
    ],
)
def test_the_walks_example_tells_wrong_variants(wrong: dict[str, object]) -> None:
    scores = example(**wrong).graph.scores(CompassEmbedder.vector("north"))
    assert scores != pytest.approx(SCORES, abs=1e-3)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 9))
def test_the_walk_solves_its_equations(seed: int, sessions: int) -> None:
    """p = 0.9 s + 0.1 (W p + s · what stands on nodes without links), by linear algebra."""
    drawn = np.random.default_rng(seed)
    graph = Graph(MemgasConfig(unlinked_sessions=1, candidates=5))
    for session in range(sessions):
        graph.put(session, drawn.normal(size=(4, 6)).astype(np.float32))
    query = drawn.normal(size=6).astype(np.float32)
    likeness = np.stack([inner_products(vectors, query) for vectors in graph._vectors]).astype(np.float64)
    start = seeds((likeness * weights(likeness, 0.1)).ravel(), 15)
    if not start.any():
        return
    start /= start.sum()
    matrix = np.zeros((4 * sessions, 4 * sessions))
    for one, other in graph.links:
        matrix[one, other] = matrix[other, one] = 1
    for column in range(4 * sessions):
        total = matrix[:, column].sum()
        matrix[:, column] = matrix[:, column] / total if total else start
    solved = np.linalg.solve(np.eye(4 * sessions) - 0.1 * matrix, 0.9 * start)
    assert graph.scores(query) == pytest.approx(solved.reshape(-1, 4).sum(axis=1), abs=1e-9)


def test_nothing_like_the_query_leaves_time_order() -> None:
    graph = Graph(MemgasConfig())
    for session in range(3):
        graph.put(session, np.ones((4, 2), dtype=np.float32))
    assert graph.rank(np.array([-1, 0], dtype=np.float32)) == [0, 1, 2]
    assert Graph(MemgasConfig()).rank(np.array([1, 0], dtype=np.float32)) == []


# ---------------------------------------------------------------- weights, worked by hand

# Two sessions, temperature 1. Odds over the two sessions and their entropies in parts of ln 2:
#
#   3:1     H = (ln 4 - 3/4 ln 3) / ln 2 = 0.811       1 - H = 0.189
#   1:1     H = 1                                              0
#   7:1     H = (ln 8 - 7/8 ln 7) / ln 2 = 0.544               0.456
#   1:1                                                        0        sum 0.645
LIKENESS = np.log([[3.0, 1.0, 7.0, 2.0], [1.0, 1.0, 1.0, 2.0]])
WEIGHTS = [0.189 / 0.645, 0, 0.456 / 0.645, 0]


def test_weights_worked_by_hand() -> None:
    assert weights(LIKENESS, 1.0) == pytest.approx(WEIGHTS, abs=1e-3)


def entropy_in_nats(likeness: FloatArray) -> FloatArray:
    """WRONG, the code's: (1 - H) / sum(1 - H) with H in nats."""
    odds = np.exp(likeness) / np.exp(likeness).sum(axis=0)
    told: FloatArray = 1 + (odds * np.log(odds)).sum(axis=0)
    return told / told.sum()


def equal_weights(likeness: FloatArray) -> FloatArray:
    """WRONG: all granularities alike."""
    return np.full(4, 0.25)


def by_entropy(likeness: FloatArray) -> FloatArray:
    """WRONG: the least telling one weighs most."""
    odds = np.exp(likeness) / np.exp(likeness).sum(axis=0)
    entropy: FloatArray = -(odds * np.log(odds)).sum(axis=0)
    return entropy / entropy.sum()


@pytest.mark.parametrize("wrong", [entropy_in_nats, equal_weights, by_entropy])
def test_the_weights_example_tells_wrong_variants(wrong: Callable[[FloatArray], FloatArray]) -> None:
    assert wrong(LIKENESS) != pytest.approx(WEIGHTS, abs=1e-2)


def test_over_many_sessions_the_most_telling_granularity_still_weighs_most() -> None:
    """Where entropies are above 1 nat the code's formula turns round."""
    likeness = np.tile(np.linspace(0, 0.1, 30)[:, None], (1, 4))
    likeness[3, 2] = 0.5
    assert weights(likeness, 0.1).argmax() == 2
    assert entropy_in_nats(likeness / 0.1).argmax() != 2


@pytest.mark.parametrize("likeness", [np.ones((1, 4)), np.ones((5, 4))])
def test_without_a_difference_all_weigh_the_same(likeness: FloatArray) -> None:
    assert weights(likeness, 0.1) == pytest.approx([0.25] * 4)


# ---------------------------------------------------------------- links and seeds


def linked(similarities: Sequence[float], **options: object) -> list[int]:
    with repeatable():
        return link(np.array(similarities, dtype=np.float32), MemgasConfig.model_validate(options)).tolist()


def test_links_go_to_the_higher_component() -> None:
    """Two heaps: 0.86 to 0.90 and 0.10 to 0.14. The best five would take two of the lower one."""
    assert linked([0.10, 0.90, 0.12, 0.88, 0.11, 0.86, 0.14]) == [1, 3, 5]


def test_only_candidates_can_be_linked() -> None:
    """Of the best four, two heaps: 0.90 alone and three around 0.5."""
    assert linked([0.50, 0.90, 0.51, 0.49, 0.0, 0.0, 0.0], candidates=4) == [1]


@pytest.mark.parametrize("similarities", [[], [0.7], [0.5] * 8])
def test_where_there_are_no_two_heaps_nothing_fails(similarities: list[float]) -> None:
    assert set(linked(similarities)) <= set(range(len(similarities)))


def test_seeds_keep_the_best_scores_and_no_negative_one() -> None:
    scores = np.array([0.2, -0.1, 0.5, 0.2, 0.0])
    assert seeds(scores, 2).tolist() == [0.2, 0, 0.5, 0, 0]
    assert seeds(scores, 9).tolist() == [0.2, 0, 0.5, 0.2, 0]


# ---------------------------------------------------------------- sessions and their nodes


def test_a_session_of_several_units_is_one() -> None:
    """Two turns of one session, as one unit and as two: session text, mean of turns, summary and keywords are the same,
    and so is what came before and after.
    """
    whole = built(chat(["up"], ["north", "east"], ["east"]), notes("a", "b c", "d"))
    cut = built(
        chat(["up"], ["north", "east"], ["east"], limit=1),
        ScriptedModel([as_json(summary=text, keywords=[text]) for text in ("a", "b", "c", "d")]),
    )
    assert [len(session) for session in cut.sessions] == [1, 2, 1]
    assert len(whole.units) == 3
    assert len(cut.graph) == len(whole.graph) == 3
    for one, other in zip(cut.graph._vectors, whole.graph._vectors, strict=True):
        assert one == pytest.approx(other, abs=1e-6)


def test_nodes_are_text_mean_of_turns_summary_and_keywords() -> None:
    build = built(chat(["north", "east"]), ScriptedModel([as_json(summary="north", keywords=["east", "up"])]))
    half = math.sqrt(0.5)
    assert build.graph._vectors[0] == pytest.approx(np.array([[half, half, 0], [0.5, 0.5, 0], [1, 0, 0], [0, 1, 0]]))


def test_one_reply_a_unit_gives_summary_and_keywords() -> None:
    model = ScriptedModel([as_json(summary=words(81), keywords=[f"k{n}" for n in range(9)])])
    build = built(chat(["north"]), model)
    assert build.notes[0].summary == words(80)
    assert len(build.notes[0].keywords) == 8
    (request,) = model.requests
    said = prompt_of(request)
    assert "a conversation" in said
    assert "at most 80 words" in said
    assert "Ann: north" in said
    assert "$" not in said


@pytest.mark.parametrize("replies", ["garbage", [Refused("no"), as_json(summary=" ", keywords=[])]])
def test_without_usable_notes_a_rule_writes_them_and_it_is_counted(replies: str | Sequence[object]) -> None:
    build = built(chat(["north red"]), ScriptedModel(replies))  # type: ignore[arg-type]
    assert build.notes[0].summary == "Ann: north red"
    assert build.notes[0].keywords
    assert dict(build.fallbacks) == {"notes written by rule, not by the model": 1}


def test_it_needs_a_model_and_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MethodError, match="memory model"):
        written("memgas", [])
    monkeypatch.setattr(mixtures.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MethodError, match=r"memgas needs sklearn, networkx: pip install 'flexmem\[clustering\]'"):
        written("memgas", [], model=notes())


# ---------------------------------------------------------------- reading, worked by hand

# s2 is ranked first, s1 second, s0 last. "Ann: north east" and the line break have 5 tokens, headers 8: s2 has 13, the
# others 12. Their summaries' lines, "[u01 | session 2] east" and a line break, have less than 12 and more than 5.
SIZES = {0: 12, 1: 12, 2: 13}


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (37, [(0, RAW), (1, RAW), (2, RAW)]),
        (36, [(0, SUMMARY), (1, RAW), (2, RAW)]),
        (24, [(1, SUMMARY), (2, RAW)]),
        (13, [(2, RAW)]),
        (12, [(2, SUMMARY)]),
    ],
)
def test_units_are_raw_while_they_fit_else_their_summary(room: int, expected: list[tuple[int, Resolution]]) -> None:
    build = example()
    assert {unit.uid: unit.tokens for unit in build.units} == SIZES
    rendering = shown(build, compass_query("?", "north"), room)
    assert [(block.uids[0], block.resolution) for block in rendering.blocks] == expected
    assert rendering.ranking == (2, 1, 0)


# ---------------------------------------------------------------- contract, with a model that follows its prompt


def sensible(request: ChatRequest) -> str:
    """The stretch's opening words, and its longest ones."""
    said = prompt_of(request).partition("\nStretch:\n")[2].split()
    return as_json(summary=" ".join(said[:30]), keywords=sorted(set(said), key=lambda word: (-len(word), word))[:5])


@pytest.mark.parametrize("kind", ["reader", "agent"])
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_contract_holds_behind_a_model_that_follows_its_prompt(kind: TaskKind, data: st.DataObject) -> None:
    case: Case = data.draw(cases(kind))
    keeps_the_contract(Obliging("memgas", sensible, unlinked_sessions=1), case)
