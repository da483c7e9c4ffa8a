"""What a report must say about LongMemEval's data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from flexmem.benchmarks.longmemeval.config import EVIDENCE_ONLY, LongMemEvalConfig
from flexmem.benchmarks.longmemeval.disputed import DISPUTED
from flexmem.benchmarks.longmemeval.loader import Census
from flexmem.benchmarks.protocol import Instance, Question


def describe(
    instances: Sequence[Instance], config: LongMemEvalConfig, census: Census, *, digest: str, masked: Sequence[str]
) -> list[str]:
    """Populations, rules, defects, selections and the file, a sentence or two each. ``masked`` questions were left out
    because their key is disputed.
    """
    questions = [question for instance in instances for question in instance.questions]
    return [
        _population(questions),
        _scored(questions),
        *_sessions(census),
        *_defects(census),
        *_selection(config, census),
        *_disputed(questions, config, masked),
        *_source(config, digest),
        "Without a judge LongMemEval's answers get text scores of ours (word F1, containment of the key); the official "
        "score is an LLM judge's. Keys of preference questions are rubrics, which text scores can't measure.",
    ]


def _population(questions: Sequence[Question]) -> str:
    by_type = Counter(question.question_type for question in questions)
    types = ", ".join(f"{name} {count:,}" for name, count in sorted(by_type.items()))
    abstentions = sum(question.details["abstention"] for question in questions)
    return f"LongMemEval: {len(questions):,} questions, each with its own history ({types}; {abstentions} abstain)."


def _scored(questions: Sequence[Question]) -> str:
    scored = sum(question.scored_by_evidence for question in questions)
    abstentions = sum(question.details["abstention"] for question in questions)
    return (
        f"The verbatim-evidence score covers {scored:,} of them; left out are {abstentions:,} abstentions and "
        f"{len(questions) - scored - abstentions:,} without a marked turn."
    )


def _sessions(census: Census) -> list[str]:
    lines = [
        "Sessions are shown in the order of their dates, those of one minute in the file's order, and numbered: the "
        f"official session ids give evidence away. Histories that were in another order: {census.unsorted:,}."
    ]
    if census.with_later_sessions:
        lines.append(
            f"{census.with_later_sessions} histories hold sessions dated after their question. They stay: some hold "
            "the evidence."
        )
    return [
        *lines,
        f"LongMemEval's {census.sessions:,} sessions are taken as they are: sessions that begin with the assistant "
        f"{census.assistant_first_sessions:,}, turns without text {census.blank_turns:,}, histories that use a session "
        f"id twice {census.repeated_ids:,}.",
    ]


def _defects(census: Census) -> list[str]:
    if not census.defects:
        return []
    kinds = Counter(defect.partition(":")[0] for defect in census.defects)
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return [f"LongMemEval's evidence labels have defects: {counts}. Questions are scored on the turns that are marked."]


def _selection(config: LongMemEvalConfig, census: Census) -> list[str]:
    lines = []
    if config.split != "all":
        lines.append(f"Only the {config.split} part of the frozen split into 60 and 440 questions is used.")
    if config.sample_seed is not None:
        lines.append(f"A sample of {config.questions} questions, stratified by type, seed {config.sample_seed}.")
    elif config.questions is not None:
        lines.append(f"The first {config.questions} questions of the file at most, which has them in order of type.")
    if config.max_history_tokens is not None:
        lines.append(
            f"max_history_tokens is on: {census.sessions_left_out:,} of {census.sessions:,} sessions are left out, so "
            f"that histories have {config.max_history_tokens:,} tokens where their evidence sessions allow it. These "
            "figures don't compare with those of whole histories."
        )
    return lines


def _disputed(questions: Sequence[Question], config: LongMemEvalConfig, masked: Sequence[str]) -> list[str]:
    if config.disputed == "mask":
        return [
            f"disputed: mask is on: {len(masked)} questions whose key others doubt are left out"
            f"{_by_whom(masked)}, so these figures don't compare with published ones."
        ]
    kept = [question.question_id for question in questions if question.question_id in DISPUTED]
    if not kept:
        return []
    listed = _by_whom(kept) if config.disputed == "list" else ""
    return [f"Others doubt the key of {len(kept)} of the questions{listed}; `disputed` lists them or leaves them out."]


def _by_whom(question_ids: Sequence[str]) -> str:
    return f" ({', '.join(f'{name}: {DISPUTED[name]}' for name in question_ids)})" if question_ids else ""


def _source(config: LongMemEvalConfig, digest: str) -> list[str]:
    if config.path is not None:
        return [f"The data is a file of your own, {config.path}, SHA-256 {digest}."]
    if config.variant == EVIDENCE_ONLY:
        return [
            "Variant evidence_only_8 is derived: evidence sessions alone, without dates and without marked turns. It "
            "serves development and compares with nothing."
        ]
    if config.variant == "s_cleaned_54":
        return [
            "Variant s_cleaned_54 holds 54 of the 500 questions, not a random sample of them: no single-session-"
            "assistant question is among them."
        ]
    return []
