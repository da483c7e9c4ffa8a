"""PersonaMem behind the benchmark protocol, on a small file of our own and on the real one."""

from __future__ import annotations

import hashlib
import lzma
import pickle
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flexmem.agents.choice_controls import reply_by_rule
from flexmem.benchmarks.personamem import files
from flexmem.benchmarks.personamem.benchmark import PersonaMemBenchmark
from flexmem.benchmarks.personamem.config import PersonaMemConfig
from flexmem.benchmarks.protocol import Benchmark, DataError, DataMissingError, Question
from flexmem.benchmarks.registry import BenchmarkOptionError, make_benchmark

SMALL = Path(__file__).parents[1] / "fixtures" / "personamem"
EVERY = ["q-rye", "q-boat", "q-idea", "q-oil", "q-same"]


def small(**options: Any) -> PersonaMemBenchmark:
    return PersonaMemBenchmark(PersonaMemConfig(**{"path": str(SMALL), **options}))


def questions(benchmark: Benchmark) -> dict[str, Question]:
    return {q.question_id: q for instance in benchmark.instances() for q in instance.questions}


# ---------------------------------------------------------------- data and selection


def test_it_is_a_benchmark_and_construction_reads_nothing() -> None:
    benchmark: Benchmark = small(path="/no/such/folder")
    assert (benchmark.name, tuple(benchmark.metrics)) == ("personamem", ("accuracy",))
    with pytest.raises(DataMissingError, match=r"/no/such/folder/questions_32k\.csv: no such file, nor .*\.xz"):
        benchmark.instances()


def test_a_folder_of_the_users_own_may_hold_packed_files(tmp_path: Path) -> None:
    for path in SMALL.iterdir():
        (tmp_path / f"{path.name}.xz").write_bytes(lzma.compress(path.read_bytes()))
    assert small(path=str(tmp_path)).instances() == small().instances()
    assert small(path=str(tmp_path)).data_digest() == small().data_digest()


def test_the_digest_speaks_of_both_files_and_of_options(tmp_path: Path) -> None:
    other = shutil.copytree(SMALL, tmp_path / "other")
    contexts = other / "shared_contexts_32k.jsonl"
    contexts.write_bytes(contexts.read_bytes().replace(b"Per Holm", b"Pia Holm"))
    changes: list[dict[str, Any]] = [
        {},
        {"path": str(other)},
        {"question_types": ["suggest_new_ideas"]},
        {"questions": 2},
        {"questions": 2, "sample_seed": 0},
        {"max_history_tokens": 100},
        {"unit_tokens": 100},
    ]
    digests = [small(**change).data_digest() for change in changes]
    assert len(set(digests)) == len(digests)


def test_the_digest_of_pinned_files_needs_no_file_and_that_of_others_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLEXMEM_DATA", str(tmp_path))
    monkeypatch.setenv("FLEXMEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("flexmem.benchmarks.data._sent", _unreachable)
    digests = {make_benchmark("personamem", {"size": size}).data_digest() for size in ("32k", "128k")}
    assert len(digests) == 2
    with pytest.raises(DataError, match=r"/questions_1M\.csv asked"):
        make_benchmark("personamem", {"size": "1M"}).data_digest()


def _unreachable(address: str, timeout_s: float) -> Any:
    raise DataError(f"{address} asked")
    yield b""


def test_what_nobody_has_pinned_is_recorded_and_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for size, file in (("32k", files.CONTEXTS["1M"]), ("32k", files.QUESTIONS["1M"])):
        path = tmp_path / file.name
        path.parent.mkdir(exist_ok=True)
        shutil.copy(SMALL / Path(file.name.replace("1M", size)).name, path)
    table = (tmp_path / files.QUESTIONS["1M"].name).read_bytes()
    pinned = files.DataFile("personamem/questions_1M.csv", (), hashlib.sha256(table).hexdigest(), None, "MIT")
    monkeypatch.setitem(files.QUESTIONS, "1M", pinned)
    monkeypatch.setenv("FLEXMEM_DATA", str(tmp_path))
    benchmark = make_benchmark("personamem", {"size": "1M"})
    digest = hashlib.sha256((tmp_path / files.CONTEXTS["1M"].name).read_bytes()).hexdigest()
    (told,) = [note for note in benchmark.notes() if "No digest" in note]
    assert told == f"No digest of personamem/shared_contexts_1M.jsonl is pinned; what was read has SHA-256 {digest}."


def test_it_can_be_sent_to_another_process() -> None:
    benchmark = small()
    assert pickle.loads(pickle.dumps(benchmark)).instances() == benchmark.instances()


def test_questions_are_selected_and_sampled() -> None:
    assert list(questions(small())) == EVERY
    assert list(questions(small(question_types=["suggest_new_ideas"]))) == ["q-idea"]
    assert list(questions(small(questions=2))) == EVERY[:2]
    sample = tuple(questions(small(questions=3, sample_seed=1)))
    assert len(sample) == 3
    assert sample == tuple(questions(small(questions=3, sample_seed=1)))
    # Three of five: 1.8, 0.6 and 0.6 of the types, whose remainders give one to each of the last two names.
    kinds = Counter(q.question_type for q in questions(small(questions=3, sample_seed=1)).values())
    assert kinds == {"recall_user_shared_facts": 2, "suggest_new_ideas": 1}
    with pytest.raises(DataError, match=r"no question type 'suggest'; there are recall_user_shared_facts, suggest_new"):
        small(question_types=["suggest"]).instances()
    with pytest.raises(BenchmarkOptionError, match="sample_seed draws a sample, so it needs `questions`"):
        make_benchmark("personamem", {"sample_seed": 1})


def test_notes_tell_populations_the_leak_and_the_files() -> None:
    notes = "\n".join(small(max_history_tokens=50, questions=5).notes())
    for part in (
        "PersonaMem 32k: 5 questions about 2 personas in 3 histories (recall_user_shared_facts 3, suggest_new_ideas 1, "
        "track_full_preference_evolution 1)",
        "intervals that take them for independent are too narrow",
        "neither the verbatim-evidence score nor answer recall",
        "always_longest and length_rule",
        "2 of the questions have two identical options; only the letter of the key counts",
        "The first 5 questions",
        "max_history_tokens is on: of 5 sessions the 1 oldest are left out",
        hashlib.sha256((SMALL / "questions_32k.csv").read_bytes()).hexdigest(),
        hashlib.sha256((SMALL / "shared_contexts_32k.jsonl").read_bytes()).hexdigest(),
    ):
        assert part in notes


# ---------------------------------------------------------------- prompts and scores


def test_a_prompt_shows_message_instruction_and_options() -> None:
    benchmark = small()
    instance = benchmark.instances()[0]
    prompt = benchmark.reader_prompt(instance, instance.questions[0], 0)
    assert prompt.question.splitlines() == [
        "What should I bake?",
        "",
        "Find the most appropriate model response and give your final answer (a), (b), (c), or (d) after the special "
        "token <final_answer>.",
        "",
        "(a) A sweet cake.",
        "(b) Rolls.",
        "(c) Rye bread, as you do every Sunday.",
        "(d) Nothing.",
    ]
    assert prompt == benchmark.reader_prompt(instance, instance.questions[0], 7)


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("<final_answer> (c)", True),
        ("(c)", True),
        ("C", True),
        ("<final_answer>c</final_answer>", True),
        ("Not (a) or (b): <final_answer>(c)", True),
        ("<final_answer>(b) <final_answer>(c)", True),
        ("The memory speaks of rye. <final_answer> (C) Rye bread, a habit", True),  # brackets go before the lone "a"
        ("(c) it is <final_answer>", True),  # nothing after the token, so the whole reply
        ("<final_answer>(b) and (c)", False),
        ("<final_answer>(b)", False),
        ("(c) <final_answer> (b)", False),
        ("Rye bread", False),
        ("", False),
        ("I take option c, a fine one", False),  # "a" counts as a letter where none has brackets
    ],
)
def test_a_reply_is_right_if_it_names_the_key_and_nothing_else(reply: str, right: bool) -> None:
    benchmark = small()
    assert benchmark.score(questions(benchmark)["q-rye"], reply) == {"accuracy": float(right)}


def test_of_identical_options_only_the_key_is_right() -> None:
    benchmark = small()
    asked = questions(benchmark)["q-same"]
    assert [benchmark.score(asked, f"({letter})")["accuracy"] for letter in "abcd"] == [0.0, 1.0, 0.0, 0.0]


# ---------------------------------------------------------------- the real files


@pytest.fixture(scope="module")
def real(flexmem_data: Path) -> PersonaMemBenchmark:
    return PersonaMemBenchmark()


def test_real_populations(real: PersonaMemBenchmark) -> None:
    asked = questions(real)
    assert (len(asked), len(real.instances())) == (589, 222)
    assert Counter(q.question_type for q in asked.values()) == {
        "track_full_preference_evolution": 139,
        "recall_user_shared_facts": 129,
        "recalling_the_reasons_behind_previous_updates": 99,
        "suggest_new_ideas": 93,
        "generalizing_to_new_scenarios": 57,
        "provide_preference_aligned_recommendations": 55,
        "recalling_facts_mentioned_by_the_user": 17,
    }
    assert len({q.details["persona"] for q in asked.values()}) == 20
    assert sum(bool(q.evidence_defects) for q in asked.values()) == 17
    assert len({instance.instance_id for instance in real.instances()}) == 222


def test_real_sessions_begin_with_the_persona(real: PersonaMemBenchmark) -> None:
    for instance in real.instances():
        for session in instance.sessions:
            assert [turn.role for turn in session.turns].count("system") == 1
            assert session.turns[0].role == "system"
            assert not any(turn.text.startswith(("User: ", "Assistant: ")) for turn in session.turns)


@pytest.mark.parametrize(("control", "right"), [("always_longest", 304), ("length_rule", 396)])
def test_real_length_tells_much(real: PersonaMemBenchmark, control: str, right: int) -> None:
    scored = 0.0
    for asked in questions(real).values():
        reply = reply_by_rule(control, asked.details["options"], asked.details["length_rule"])
        assert reply is not None
        scored += real.score(asked, reply)["accuracy"]
    assert scored == right
