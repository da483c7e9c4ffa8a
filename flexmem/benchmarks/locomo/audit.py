"""The public audit of LoCoMo's answer keys: which questions have a wrong one.

Of its 156 findings 57 concern only the cited evidence; the other 99 make the answer key itself wrong, so that no reader
can score above 93.6 % of categories 1-4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from flexmem.benchmarks.locomo.schema import AuditRecord, ConversationRecord
from flexmem.benchmarks.protocol import DataError

_ONLY_EVIDENCE = "WRONG_CITATION"
_PLACE = re.compile(r"locomo_(\d+)_qa(\d+)")


def wrong_keys(
    findings: Iterable[AuditRecord], conversations: Sequence[ConversationRecord]
) -> frozenset[tuple[str, int]]:
    """(sample id, question's position) of every question whose answer key the audit found wrong.

    Raises:
        DataError: a finding speaks of another question than stands at its place: the audit is of the official file.
    """
    found = set()
    for finding in findings:
        if finding.error_type == _ONLY_EVIDENCE:
            continue
        place = _PLACE.fullmatch(finding.question_id)
        conversation, position = (int(place[1]), int(place[2])) if place else (-1, -1)
        if _question_at(conversations, conversation, position) != finding.question:
            raise DataError(
                f"{finding.question_id}: the audit's question does not stand at its place in this file. The audit is "
                "of the official file: switch mask_audited off for another one."
            )
        found.add((conversations[conversation].sample_id, position))
    return frozenset(found)


def _question_at(conversations: Sequence[ConversationRecord], conversation: int, position: int) -> str | None:
    if not 0 <= conversation < len(conversations) or not 0 <= position < len(conversations[conversation].questions):
        return None
    return conversations[conversation].questions[position].question
