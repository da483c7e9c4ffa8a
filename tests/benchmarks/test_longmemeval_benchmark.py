"""LongMemEval behind the benchmark protocol, on a small file of our own and on the real one."""

from __future__ import annotations

import hashlib
import json
import lzma
import pickle
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flexmem.agents.judge import RUBRICS
from flexmem.benchmarks.longmemeval import files, split
from flexmem.benchmarks.longmemeval.benchmark import LongMemEvalBenchmark
from flexmem.benchmarks.longmemeval.config import LongMemEvalConfig
from flexmem.benchmarks.longmemeval.disputed import DISPUTED
from flexmem.benchmarks.protocol import Benchmark, DataError, Question
from flexmem.benchmarks.registry import BenchmarkOptionError, make_benchmark

SMALL = Path(__file__).parents[1] / "fixtures" / "longmemeval" / "small.json"
EVERY = ["bike_01", "lamp_02", "lamp_02_abs", "gpt4_mass", "hike_04"]


def small(**options: Any) -> LongMemEvalBenchmark:
    return LongMemEvalBenchmark(LongMemEvalConfig(**{"path": str(SMALL), **options}))


def questions(benchmark: Benchmark) -> dict[str, Question]:
    return {q.question_id: q for instance in benchmark.instances() for q in instance.questions}


# ---------------------------------------------------------------- data and selection


def test_it_is_a_benchmark_and_construction_reads_nothing() -> None:
    benchmark: Benchmark = small(path="/no/such/file.json")
    assert (benchmark.name, tuple(benchmark.metrics)) == ("longmemeval", ("f1", "contains"))
    with pytest.raises(DataError, match=r"/no/such/file\.json: can't be read"):
        benchmark.instances()


def test_a_file_of_the_users_own_may_be_packed(tmp_path: Path) -> None:
    packed = tmp_path / "small.json.xz"
    packed.write_bytes(lzma.compress(SMALL.read_bytes()))
    assert small(path=str(packed)).instances() == small().instances()
    assert small(path=str(packed)).data_digest() == small().data_digest()


def test_the_digest_speaks_of_content_and_options_but_not_of_paths(tmp_path: Path) -> None:
    same = shutil.copy(SMALL, tmp_path / "renamed.json")
    other = tmp_path / "other.json"
    other.write_bytes(SMALL.read_bytes().replace(b"folding", b"holding"))
    changes: list[dict[str, Any]] = [
        {},
        {"path": str(other)},
        {"question_types": ["multi-session"]},
        {"questions": 2},
        {"questions": 2, "sample_seed": 1},
        {"disputed": "mask"},
        {"max_history_tokens": 100},
        {"unit_tokens": 500},
    ]
    digests = [small(**change).data_digest() for change in changes]
    assert len(set(digests)) == len(digests)
    assert small(path=str(same)).data_digest() == digests[0]


def test_the_digest_of_a_pinned_file_needs_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLEXMEM_DATA", str(tmp_path))
    monkeypatch.setenv("FLEXMEM_CACHE", str(tmp_path))
    digests = {name: make_benchmark("longmemeval", {"variant": name}).data_digest() for name in files.BY_VARIANT}
    assert digests["oracle"] == digests["oracle_cleaned"]  # the same bytes
    assert len(set(digests.values())) == len(digests) - 1
    with pytest.raises(
        DataError, match=r"longmemeval_s_cleaned_54\.json: not on this machine .* no public address\. Put"
    ):
        make_benchmark("longmemeval", {"variant": "s_cleaned_54"}).instances()


def test_it_can_be_sent_to_another_process() -> None:
    benchmark = small()
    assert pickle.loads(pickle.dumps(benchmark)).instances() == benchmark.instances()


def test_questions_are_selected_by_type_and_id() -> None:
    assert list(questions(small())) == EVERY
    assert list(questions(small(question_types=["temporal-reasoning", "knowledge-update"]))) == EVERY[1:4]
    assert list(questions(small(question_ids=["hike_04", "bike_01"]))) == ["bike_01", "hike_04"]
    assert list(questions(small(questions=2))) == EVERY[:2]
    with pytest.raises(DataError, match=r"has no question bike_1; see `question_ids`"):
        small(question_ids=["hike_04", "bike_1"]).instances()
    with pytest.raises(DataError, match="these options select no question"):
        small(question_ids=["hike_04"], question_types=["multi-session"]).instances()


def test_a_sample_is_seeded_and_keeps_types_and_abstentions_apart() -> None:
    samples = {seed: tuple(questions(small(questions=3, sample_seed=seed))) for seed in range(8)}
    assert all(len(sample) == 3 for sample in samples.values())
    assert samples[0] == tuple(questions(small(questions=3, sample_seed=0)))
    assert list(questions(small(questions=9, sample_seed=0))) == EVERY
    drawn = split.draw([("a", "t"), ("b", "t"), ("a_abs", "t"), ("b_abs", "t")], 2)
    assert sorted("_abs" in name for name in drawn) == [False, True]
    with pytest.raises(BenchmarkOptionError, match="sample_seed draws a sample, so it needs `questions`"):
        make_benchmark("longmemeval", {"sample_seed": 1})


def test_parts_of_the_split_are_of_official_questions_only(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"record 0 \(bike_01\): is none of the 500 official questions.*split: all"):
        small(split="development").instances()
    official = tmp_path / "official.json"
    held = min(split.part("held_out"))
    official.write_bytes(
        SMALL.read_bytes().replace(b'"bike_01"', b'"71017277"').replace(b'"lamp_02"', f'"{held}"'.encode())
    )
    first = ["question_id", json.loads(official.read_text())[:2]]
    own = tmp_path / "two.json"
    own.write_text(json.dumps(first[1]))
    assert list(questions(small(path=str(own), split="development"))) == ["71017277"]
    assert list(questions(small(path=str(own), split="held_out"))) == [held]


def test_disputed_keys_are_kept_listed_or_left_out(tmp_path: Path) -> None:
    own = tmp_path / "disputed.json"
    own.write_bytes(SMALL.read_bytes().replace(b'"bike_01"', b'"d851d5ba"').replace(b'"hike_04"', b'"9aaed6a3"'))

    def told(benchmark: Benchmark) -> str:
        return "\n".join(benchmark.notes())

    kept, listed, masked = (small(path=str(own), disputed=value) for value in ("keep", "list", "mask"))
    assert len(questions(kept)) == len(questions(listed)) == 5
    assert "Others doubt the key of 2 of the questions;" in told(kept)
    assert "of 2 of the questions (d851d5ba: ReMe, 9aaed6a3: issue 50);" in told(listed)
    assert list(questions(masked)) == EVERY[1:4]
    assert "disputed: mask is on: 2 questions whose key others doubt are left out (d851d5ba: ReMe, 9aaed6a3" in told(
        masked
    )
    assert "doubt" not in told(small())


def test_notes_tell_populations_rules_defects_and_the_file() -> None:
    notes = "\n".join(small(max_history_tokens=1, questions=5, sample_seed=3).notes())
    for part in (
        "5 questions, each with its own history (knowledge-update 2, multi-session 1, single-session-preference 1, "
        "temporal-reasoning 1; 1 abstain)",
        "covers 3 of them; left out are 1 abstentions and 1 without a marked turn",
        "in the order of their dates, those of one minute in the file's order",
        "Histories that were in another order: 2.",
        "1 histories hold sessions dated after their question",
        "begin with the assistant 1, turns without text 1, histories that use a session id twice 1",
        "defects: absent 1, repeated 2, stray 1, unmarked 4",
        "A sample of 5 questions, stratified by type, seed 3",
        "max_history_tokens is on: 3 of 13 sessions are left out",
        f"a file of your own, {SMALL}, SHA-256 {hashlib.sha256(SMALL.read_bytes()).hexdigest()}",
        "official score is an LLM judge's",
    ):
        assert part in notes


# ---------------------------------------------------------------- prompts, scores, rubrics


def test_a_prompt_has_the_question_its_date_and_a_way_out_and_no_gold() -> None:
    benchmark = small()
    prompts = []
    for instance in benchmark.instances():
        (asked,) = instance.questions
        prompt = benchmark.reader_prompt(instance, asked, 0)
        assert prompt.question.startswith(f"Today is {asked.asked_at}.\nQuestion: {asked.text}\n")
        assert str(asked.answer) not in prompt.question.replace(str(asked.asked_at), "")
        assert "can't be answered" in prompt.question
        prompts.append((prompt.system, prompt.question.partition(asked.text)[2]))
    assert len(set(prompts)) == 1  # nothing tells types and abstentions apart


def test_scores_are_of_the_keys_words_and_of_refusing() -> None:
    benchmark = small()
    asked = questions(benchmark)
    # "in attic" against "it is in attic now", articles apart: 2 common words of 2 and 5.
    assert benchmark.score(asked["lamp_02"], "It is in the attic now.") == {"f1": pytest.approx(4 / 7), "contains": 1.0}
    assert benchmark.score(asked["bike_01"], "three")["contains"] == 1.0
    assert benchmark.score(asked["bike_01"], "Two")["contains"] == 0.0
    refusal = "This question can't be answered from the memory."
    assert benchmark.score(asked["lamp_02_abs"], refusal) == {"f1": 1.0, "contains": 1.0}
    assert benchmark.score(asked["lamp_02_abs"], "In the attic") == {"f1": 0.0, "contains": 0.0}
    assert benchmark.score(asked["lamp_02"], refusal)["contains"] == 0.0


def test_each_question_names_a_rubric_that_judges_know() -> None:
    benchmark = small()
    asked = questions(benchmark)
    named = {name: benchmark.rubric(q) for name, q in asked.items()}
    assert named == {
        "bike_01": "default",
        "lamp_02": "knowledge_update",
        "lamp_02_abs": "abstention",
        "gpt4_mass": "temporal",
        "hike_04": "preference",
    }
    for kind in ("single-session-user", "single-session-assistant"):
        assert benchmark.rubric(replace(asked["bike_01"], question_type=kind)) == "default"
    assert set(named.values()) <= set(RUBRICS)


# ---------------------------------------------------------------- the frozen split


def test_the_frozen_split_is_whole() -> None:
    development, held_out = split.part("development"), split.part("held_out")
    assert (len(development), len(held_out), len(development & held_out)) == (60, 440, 0)


def test_the_frozen_split_is_what_the_draw_gives(flexmem_data: Path) -> None:
    with lzma.open(flexmem_data / "longmemeval" / "longmemeval_500_questions.jsonl.xz") as lines:
        official = [json.loads(line) for line in lines]
    pairs = [(record["question_id"], record["question_type"]) for record in official]
    assert split.draw(pairs) == split.draw(pairs[::-1]) == split.part("development")
    assert split.part("held_out") == {name for name, _ in pairs} - split.part("development")
    # 12 % of each stratum, give or take what makes whole numbers of it.
    sizes = Counter(split.stratum(*pair) for pair in pairs)
    drawn = Counter(split.stratum(*pair) for pair in pairs if pair[0] in split.part("development"))
    assert all(abs(drawn[name] - 0.12 * sizes[name]) < 1 for name in sizes)
    assert set(DISPUTED) <= {name for name, _ in pairs}


# ---------------------------------------------------------------- the real files


@pytest.fixture(scope="module")
def real(flexmem_data: Path) -> LongMemEvalBenchmark:
    return LongMemEvalBenchmark(LongMemEvalConfig(variant="s_cleaned_54"))


def test_real_populations(real: LongMemEvalBenchmark) -> None:
    asked = questions(real)
    assert len(asked) == len({instance.instance_id for instance in real.instances()}) == 54
    assert sum(len(instance.sessions) for instance in real.instances()) == 2_569
    assert sum(q.scored_by_evidence for q in asked.values()) == sum(q.scored_by_recall for q in asked.values()) == 48
    assert sum(len(q.evidence) for q in asked.values()) == 119
    assert all(isinstance(q.answer, str) for q in asked.values())
    assert Counter(q.question_type for q in asked.values()) == {
        "multi-session": 21,
        "temporal-reasoning": 13,
        "single-session-preference": 11,
        "knowledge-update": 7,
        "single-session-user": 2,
    }


def test_real_notes(real: LongMemEvalBenchmark) -> None:
    notes = "\n".join(real.notes())
    for part in (
        "covers 48 of them; left out are 6 abstentions and 0 without a marked turn",
        "Histories that were in another order: 20.",
        "7 histories hold sessions dated after their question",
        "2,569 sessions are taken as they are: sessions that begin with the assistant 222, turns without text 1, "
        "histories that use a session id twice 1",
        "defects: unmarked 18.",
        "Others doubt the key of 16 of the questions",
    ):
        assert part in notes


def test_real_histories_tell_nothing_of_where_the_evidence_is(real: LongMemEvalBenchmark) -> None:
    for instance in real.instances():
        ids = [turn.turn_id for session in instance.sessions for turn in session.turns]
        assert len(set(ids)) == len(ids)
        assert set(instance.questions[0].evidence) <= set(ids)
        assert not any("answer_" in turn_id for turn_id in ids)
        assert [session.session_id for session in instance.sessions] == [
            str(number) for number in range(1, len(instance.sessions) + 1)
        ]


def test_real_disputed_keys_are_those_that_reme_changed(flexmem_data: Path, real: LongMemEvalBenchmark) -> None:
    changed = json.loads((flexmem_data / "longmemeval" / "reme_v2_disputed_16.json").read_text("utf-8"))
    assert {record["question_id"] for record in changed} == {name for name, who in DISPUTED.items() if who == "ReMe"}
    masked = LongMemEvalBenchmark(LongMemEvalConfig(variant="s_cleaned_54", disputed="mask"))
    assert len(masked.instances()) == 54 - 16


def test_real_evidence_sessions_alone(flexmem_data: Path) -> None:
    derived = LongMemEvalBenchmark(LongMemEvalConfig(variant="evidence_only_8"))
    asked = questions(derived)
    assert len(asked) == 8
    assert not any(q.scored_by_evidence for q in asked.values())
    assert Counter(q.question_type for q in asked.values())["single-session-assistant"] == 2
    assert any("evidence_only_8 is derived" in note for note in derived.notes())
