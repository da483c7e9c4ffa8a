"""Every ablation and variant does what it says, and nothing else (docs/methods.md A.9)."""

from __future__ import annotations

from typing import Any

import pytest

from flexmem.contract.cases import WordEmbedder
from flexmem.history import Unit
from flexmem.memory.protocol import Query, Rendering, Resolution
from flexmem.memory.registry import methods
from flexmem.ports import IndexConfig, Services
from flexmem.retrieval.index import LocalIndex
from tests.memory.examples import history, shown, wait, written

RAW, EXCERPT, RECORD, MERGED = Resolution.RAW, Resolution.EXCERPT, Resolution.RECORD, Resolution.MERGED
PIECE, FRAME = Resolution.PIECE, Resolution.FRAME
ROOMS = (300, 700, 1_500)
WORDS = WordEmbedder()

# What each registered form changes in its base's configuration, by docs/methods.md A.9.
CHANGES: dict[str, dict[str, object]] = {
    "flexa_unit": {},
    "flexa_piece": {},
    "flexa_unit.timeline_only": {"recovery": False},
    "flexa_unit.recovery_only": {"timeline": False},
    "flexa_unit.no_excerpt": {"excerpts": False},
    "flexa_unit.random_candidates": {"candidates": "random"},
    "flexa_unit.short_excerpt": {"excerpt_cap": 256},
    "flexa_unit.raw_first": {"raw_first": True},
    "flexa_unit.keep_record": {"raw_replaces_record": False},
    "flexa_unit.merge_level": {"merge_policy": "level"},
    "flexa_piece.random_candidates": {"candidates": "random"},
    "flexa_piece.merge_level": {"merge_policy": "level"},
}


@pytest.fixture(scope="module")
def units() -> list[Unit]:
    return history(7, "reader", 80)


def query(text: str = "What did Ann say of the violin and the kettle?") -> Query:
    return Query.question(text, wait(WORDS.embed([text]))[0])


def renderings(name: str, units: list[Unit], **options: Any) -> list[Rendering]:
    build = written(name, units, embedder=WORDS, record_words=20, **options)
    return [shown(build, query(), room) for room in ROOMS]


def resolutions(rendering: Rendering) -> set[Resolution]:
    return {block.resolution for block in rendering.blocks}


def test_every_registered_form_changes_what_it_is_named_for_and_nothing_else() -> None:
    flexa = {name: spec for name, spec in methods().items() if name.startswith("flexa")}
    assert set(flexa) == set(CHANGES)
    for name, spec in flexa.items():
        base = flexa[name.partition(".")[0]]
        assert spec.config == base.config.model_copy(update=CHANGES[name])
        assert spec.info.name == name
        assert spec.make is base.make
        assert not spec.configured().info.writes_with_model
        assert spec.configured({"writer": "model"}).info.writes_with_model
    assert flexa["flexa_unit"].config.model_copy(update={"mode": "piece"}) == flexa["flexa_piece"].config


def test_timeline_only_shows_the_timeline_and_leaves_the_rest_unused(units: list[Unit]) -> None:
    for only, whole, room in zip(
        renderings("flexa_unit.timeline_only", units), renderings("flexa_unit", units), ROOMS, strict=True
    ):
        assert resolutions(only) <= {RECORD, MERGED}
        assert only.tokens <= 0.25 * room
        assert not only.shown_pieces()
        assert only.hidden == whole.hidden
    assert renderings("flexa_unit.timeline_only", units)[-1].tokens > 0


def test_timeline_only_is_the_same_in_both_modes(units: list[Unit]) -> None:
    assert renderings("flexa_unit.timeline_only", units) == renderings("flexa_piece", units, recovery=False)


def test_recovery_only_shows_no_timeline_and_has_all_of_the_room(units: list[Unit]) -> None:
    for only, room in zip(renderings("flexa_unit.recovery_only", units), ROOMS, strict=True):
        assert MERGED not in resolutions(only)
        assert FRAME not in resolutions(only)
        assert only.hidden == 0
        assert only.tokens > 0.75 * room
        assert {block.uids[0] for block in only.blocks} <= set(only.ranking)
        assert [block.uids for block in only.blocks] == sorted(block.uids for block in only.blocks)


def test_recovery_only_by_pieces_is_piece_retrieval(units: list[Unit]) -> None:
    pieces = renderings("flexa_piece", units, timeline=False)
    build = written("piece_retrieval", units, embedder=WORDS)
    assert pieces == [shown(build, query(), room) for room in ROOMS]


def test_no_excerpt_shows_none_where_the_default_does(units: list[Unit]) -> None:
    assert any(EXCERPT in resolutions(rendering) for rendering in renderings("flexa_unit", units))
    assert not any(EXCERPT in resolutions(rendering) for rendering in renderings("flexa_unit.no_excerpt", units))


def test_short_excerpts_have_at_most_256_tokens_and_default_ones_512() -> None:
    large_units = history(9, "agent", 150, limit=2_000)
    sizes: dict[str, list[int]] = {}
    for name in ("flexa_unit", "flexa_unit.short_excerpt"):
        build = written(name, large_units, embedder=WORDS)
        blocks = shown(build, query(), 1_400).blocks
        sizes[name] = [block.tokens for block in blocks if block.resolution is EXCERPT]
    assert 256 < max(sizes["flexa_unit"]) <= 512
    assert 200 < max(sizes["flexa_unit.short_excerpt"]) <= 256


def test_raw_first_tries_raw_before_any_excerpt(units: list[Unit]) -> None:
    changed = False
    for first, ranked in zip(renderings("flexa_unit.raw_first", units), renderings("flexa_unit", units), strict=True):
        assert first.ranking == ranked.ranking
        changed = changed or first.text != ranked.text
        assert sum(block.resolution is RAW for block in first.blocks) >= sum(
            block.resolution is RAW for block in ranked.blocks
        )
    assert changed


def test_keep_record_shows_the_record_beside_the_raw_unit(units: list[Unit]) -> None:
    kept = replaced = 0
    for keep, default in zip(renderings("flexa_unit.keep_record", units), renderings("flexa_unit", units), strict=True):
        for rendering in (keep, default):
            raw = {block.uids for block in rendering.blocks if block.resolution is RAW}
            both = raw & {block.uids for block in rendering.blocks if block.resolution is RECORD}
            if rendering is keep:
                kept += len(both)
            else:
                replaced += len(both)
    assert kept > 0
    assert replaced == 0


@pytest.mark.parametrize("name", ["flexa_unit.merge_level", "flexa_piece.merge_level"])
def test_merge_level_merges_other_records(name: str, units: list[Unit]) -> None:
    base = name.partition(".")[0]
    assert renderings(name, units) != renderings(base, units)


@pytest.mark.parametrize("mode", ["flexa_unit", "flexa_piece"])
def test_random_candidates_depend_on_the_seed_the_history_and_the_question_alone(mode: str, units: list[Unit]) -> None:
    def ranking(seed: int, text: str) -> tuple[int, ...]:
        def open_index(config: IndexConfig) -> LocalIndex:
            return LocalIndex(config, WORDS if config.dense else None)

        build = methods()[f"{mode}.random_candidates"].configured().build(Services(WORDS, open_index, seed=seed))

        async def write() -> None:
            for unit in units:
                await build.write(unit)

        wait(write())
        return shown(build, query(text), 1_500).ranking

    first = ranking(0, "violin")
    assert first == ranking(0, "violin")
    assert first != ranking(1, "violin")
    assert first != ranking(0, "kettle")
    assert len(set(first)) == len(first)
    if mode == "flexa_unit":
        assert sorted(first) == list(range(len(units)))


def test_random_candidates_take_a_question_with_half_a_character(units: list[Unit]) -> None:
    build = written("flexa_piece.random_candidates", units, embedder=WORDS)
    assert shown(build, query("what is \ud83d?"), 700).ranking


def test_both_modes_serve_both_kinds_of_task() -> None:
    for name in ("flexa_unit", "flexa_piece"):
        assert methods()[name].info.tasks == ("agent", "reader")
