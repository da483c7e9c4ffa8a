"""What a report must say about LoCoMo's data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from flexmem.benchmarks.locomo.config import ADVERSARIAL, LocomoConfig
from flexmem.benchmarks.locomo.evidence import kinds
from flexmem.benchmarks.protocol import Instance, Question


def describe(instances: Sequence[Instance], config: LocomoConfig, *, digest: str, masked: int) -> list[str]:
    """Populations, defects and masks, one sentence or two each. ``masked`` questions were left out because of the
    audit, before any other filter.
    """
    questions = [question for instance in instances for question in instance.questions]
    lines = [_population(instances, questions), _scored(questions)]
    defects = Counter(kind for question in questions for kind in kinds(question.evidence_defects))
    if defects:
        counts = ", ".join(f"{kind} {count}" for kind, count in sorted(defects.items()))
        lines.append(f"LoCoMo's evidence labels have defects: {counts}.")
    if repeats := sum(map(_repeats, instances)):
        lines.append(f"{repeats} of the questions repeat the words of another one of their conversation; all are kept.")
    if config.max_history_tokens is not None:
        lines.append(
            "max_history_tokens is on: of each conversation only the newest sessions are used, "
            f"{config.max_history_tokens:,} tokens where the newest one allows it, and no question with older "
            "evidence. These figures don't compare with those of whole conversations."
        )
    if config.mask_audited:
        lines.append(
            f"mask_audited is on: {masked} questions whose answer key a public audit found wrong are left out, so "
            "these figures don't compare with published ones."
        )
    if config.path is not None:
        lines.append(f"The data is a file of your own, {config.path}, SHA-256 {digest}.")
    if config.path is None and not config.mask_audited:
        lines.append(
            "A public audit found 99 of the 1,540 answer keys of categories 1-4 wrong, which caps a score at about "
            "93.6 %; mask_audited leaves them out."
        )
    return lines


def _population(instances: Sequence[Instance], questions: Sequence[Question]) -> str:
    by_type = Counter(question.question_type for question in questions)
    types = ", ".join(f"{name} {count:,}" for name, count in sorted(by_type.items()))
    return f"LoCoMo: {len(instances)} conversations, {len(questions):,} questions ({types})."


def _scored(questions: Sequence[Question]) -> str:
    scored = sum(question.scored_by_evidence for question in questions)
    adversarial = sum(question.details["category"] == ADVERSARIAL for question in questions)
    return (
        f"The verbatim-evidence score covers {scored:,} of them; left out are {adversarial:,} adversarial questions "
        f"and {len(questions) - scored - adversarial:,} without valid evidence."
    )


def _repeats(instance: Instance) -> int:
    return len(instance.questions) - len({question.text.strip() for question in instance.questions})
