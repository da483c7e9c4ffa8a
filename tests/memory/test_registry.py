"""Finding and configuring methods; plug-ins that break or clash stop nothing."""

from __future__ import annotations

import importlib.metadata
import warnings
from types import SimpleNamespace

import pytest

from flexmem.memory import registry
from flexmem.memory.baselines.truncation import METHODS as TRUNCATION
from flexmem.memory.prompts import all_prompts
from flexmem.memory.protocol import describe_method
from flexmem.memory.registry import UnknownMethodError, find_method, methods, variant

EXPECTED = {
    "flexa_unit",
    "flexa_piece",
    "truncation",
    "observation_masking",
    "observation_masking.no_thoughts",
    "piece_retrieval",
    "dense_units",
    "dense_pieces",
    "hybrid_pieces",
    "hybrid_pieces_stem",
    "fused_pieces",
    "fused_pieces.no_cues",
    "amem",
    "amem.no_evolution",
    "memory_evolution",
    "fit_or_degrade.amem",
    "fit_or_degrade.memory_evolution",
    "summary",
    "summary_amem",
    "readagent",
    "readagent.sequential",
    "afm",
    "afm.calibrated",
    "afm.importance",
    "llm_granularity",
    "tool_memory",
    "scm",
    "raptor",
    "memtree",
    "memgas",
}


def test_the_built_in_methods_are_there_under_their_own_names() -> None:
    assert set(methods()) >= EXPECTED
    for name, spec in methods().items():
        assert spec.info.name == name
        card = spec.info.card
        assert all((card.source, card.follows, card.ours, card.differs, card.tuning, spec.info.summary))
        assert spec.info.tasks


def test_masking_is_for_agents_alone() -> None:
    assert {name for name, spec in methods().items() if spec.info.tasks == ("agent",)} == {
        "observation_masking",
        "observation_masking.no_thoughts",
    }


@pytest.mark.parametrize(
    ("name", "said"), [("flexa_unt", "did you mean 'flexa_unit'"), ("qqq", "see `flexmem methods`")]
)
def test_an_unknown_name_gets_the_nearest_one(name: str, said: str) -> None:
    with pytest.raises(UnknownMethodError) as raised:
        find_method(name)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"excerpt_cp": 3}, "no option 'excerpt_cp'; did you mean 'excerpt_cap'?"),
        ({"zzz": 3}, "it has mode"),
        ({"excerpt_cap": "many"}, "option excerpt_cap: "),
        ({"timeline_share": 1.0}, "option timeline_share: "),
    ],
)
def test_an_option_that_the_method_does_not_take_is_refused_by_name(overrides: dict[str, object], said: str) -> None:
    with pytest.raises(UnknownMethodError) as raised:
        find_method("flexa_unit").configured(overrides)
    assert "flexa_unit" in str(raised.value)
    assert said in str(raised.value)


def test_a_description_has_the_name_and_the_whole_configuration() -> None:
    method = find_method("flexa_unit").configured({"excerpt_cap": 99})
    described = describe_method(method)
    assert described["name"] == "flexa_unit"
    assert described["config"]["excerpt_cap"] == 99
    assert described["config"]["record_words"] == 80
    assert find_method("flexa_unit").config.model_dump()["excerpt_cap"] == 512


def test_a_variant_has_a_name_and_a_summary_of_its_own() -> None:
    made = variant(find_method("flexa_unit"), "mine", "my own", excerpt_cap=7)
    assert (made.info.name, made.info.summary) == ("flexa_unit.mine", "my own")
    assert made.configured().config.model_dump()["excerpt_cap"] == 7


def test_broken_and_clashing_plug_ins_warn_and_the_others_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = variant(TRUNCATION[0], "mine", "another name")

    def broken() -> object:
        raise ImportError("no module named gone")

    entries = [
        SimpleNamespace(value="gone", load=broken),
        SimpleNamespace(value="clash", load=lambda: SimpleNamespace(METHODS=TRUNCATION)),
        SimpleNamespace(value="mine", load=lambda: (mine,)),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries if group == "flexmem.methods" else [])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = registry.methods.__wrapped__()
    said = [str(warning.message) for warning in caught]
    assert any("'gone' are left out" in message and "no module named gone" in message for message in said)
    assert any("'truncation' of clash is left out: the name is taken" in message for message in said)
    assert set(found) == set(methods()) | {"truncation.mine"}
    assert found["truncation"] is methods()["truncation"]


def test_every_prompt_is_declared_by_a_method_and_every_declared_one_is_there() -> None:
    declared = {name for spec in methods().values() for name in spec.info.prompts}
    assert declared == set(all_prompts())
    for spec in methods().values():
        assert bool(spec.info.prompts) or not (spec.info.writes_with_model or spec.info.reads_with_model)
