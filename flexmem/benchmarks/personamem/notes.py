"""What a report must say about PersonaMem's data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from flexmem.benchmarks.personamem.config import PersonaMemConfig
from flexmem.benchmarks.personamem.loader import IDENTICAL, Census
from flexmem.benchmarks.protocol import Instance, Question


def describe(
    instances: Sequence[Instance], config: PersonaMemConfig, census: Census, *, unpinned: Sequence[tuple[str, str]]
) -> list[str]:
    """Populations, the length leak, defects, selections and the files, a sentence or two each. ``unpinned`` are names
    and digests of files whose digest nobody has pinned, those of the user's own included.
    """
    questions = [question for instance in instances for question in instance.questions]
    personas = {question.details["persona"] for question in questions}
    by_type = Counter(question.question_type for question in questions)
    types = ", ".join(f"{name} {count:,}" for name, count in sorted(by_type.items()))
    return [
        f"PersonaMem {config.size}: {len(questions):,} questions about {len(personas)} personas in {len(instances)} "
        f"histories ({types}). Histories of a persona have their beginnings in common, so intervals that take them for "
        "independent are too narrow.",
        "PersonaMem has no evidence labels: neither the verbatim-evidence score nor answer recall covers it.",
        "The length of the options tells much: arms always_longest and length_rule (the longest, the shortest in "
        "suggest_new_ideas) and chance answer without memory and model. Figures are to be read against them.",
        *_identical(questions),
        *_selection(config, census),
        *(f"No digest of {name} is pinned; what was read has SHA-256 {digest}." for name, digest in unpinned),
    ]


def _identical(questions: Sequence[Question]) -> list[str]:
    count = sum(defect.startswith(IDENTICAL) for question in questions for defect in question.evidence_defects)
    if not count:
        return []
    return [f"{count} of the questions have two identical options; only the letter of the key counts as right."]


def _selection(config: PersonaMemConfig, census: Census) -> list[str]:
    lines = []
    if config.sample_seed is not None:
        lines.append(f"A sample of {config.questions} questions, stratified by type, seed {config.sample_seed}.")
    elif config.questions is not None:
        lines.append(f"The first {config.questions} questions of the file at most.")
    if config.max_history_tokens is not None:
        lines.append(
            f"max_history_tokens is on: of {census.sessions:,} sessions the {census.sessions_left_out:,} oldest are "
            f"left out, so that histories have {config.max_history_tokens:,} tokens where their newest session allows "
            "it. These figures don't compare with those of whole histories."
        )
    return lines
