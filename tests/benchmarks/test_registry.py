"""Benchmarks by name, and what a misspelling says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flexmem.benchmarks import registry
from flexmem.benchmarks.data import states
from flexmem.benchmarks.locomo.benchmark import LocomoBenchmark
from flexmem.benchmarks.locomo.config import LocomoConfig
from flexmem.benchmarks.registry import BenchmarkOptionError, known_files, make_benchmark


def test_options_become_the_benchmarks_config() -> None:
    benchmark = make_benchmark("locomo", {"categories": [4, 1], "questions_per_conversation": 3})
    assert isinstance(benchmark, LocomoBenchmark)
    assert benchmark.config == LocomoConfig(categories=(1, 4), questions_per_conversation=3)
    assert make_benchmark("locomo").config == LocomoConfig()


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(BenchmarkOptionError, match=r"no benchmark 'lokomo', did you mean 'locomo'\?; there are app"):
        make_benchmark("lokomo")


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(BenchmarkOptionError, match=r"'locomo': no option 'catgories', did you mean 'categories'\?"):
        make_benchmark("locomo", {"catgories": [1]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"categories": [6]}, r"option 'categories\.0': .*less than or equal to 5 \(got 6\)"),
        ({"categories": []}, r"option 'categories': .*at least 1"),
        ({"conversations": []}, r"option 'conversations'"),
        ({"questions_per_conversation": 0}, r"option 'questions_per_conversation': .*greater than 0"),
        ({"unit_tokens": 0}, r"option 'unit_tokens': .*greater than 0"),
        ({"category_names": {1: "temporal"}}, r"two categories have the same name"),
    ],
)
def test_an_invalid_value_names_its_key(options: dict[str, object], message: str) -> None:
    with pytest.raises(BenchmarkOptionError, match=message):
        make_benchmark("locomo", options)


def test_the_registry_imports_no_benchmark_by_itself() -> None:
    code = "import flexmem.benchmarks.registry, sys; print([m for m in sys.modules if 'locomo' in m or m == 'nltk'])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("name", registry.BENCHMARKS)
def test_every_entry_can_be_made(name: str) -> None:
    assert make_benchmark(name).name == name


def test_known_files_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "BENCHMARKS", dict.fromkeys(("locomo", "again"), registry.BENCHMARKS["locomo"]))
    monkeypatch.setattr(registry, "CORPORA", {})
    assert [file.name for file in known_files()] == ["locomo/locomo10.json", "locomo/locomo_audit_errors.json"]


def test_every_known_file_is_pinned_by_itself_or_by_its_archive_but_one() -> None:
    files = known_files()
    assert all(file.licence for file in files)
    assert all(len(file.sha256) == 64 for file in files if file.sha256 is not None)
    assert [file.name for file in files if file.sha256 is None and file.archive is None] == [
        "personamem/shared_contexts_1M.jsonl"
    ]
    assert [file.name for file in files if not file.sources] == [
        "longmemeval/longmemeval_s_cleaned_54.json",
        "longmemeval/derived_evidence_only_8.json",
    ]


def test_files_at_hand_are_the_pinned_ones(flexmem_data: Path) -> None:
    found = {state.file.name: state for state in states(known_files()) if state.found is not None}
    assert {"longmemeval", "locomo", "msc", "personamem"} <= {name.partition("/")[0] for name in found}
    assert [state.problem for state in found.values() if state.state == "bad"] == []
