"""Entities by rule: names, ids, paths, dates, numbers (docs/methods.md A.8)."""

from __future__ import annotations

import re

# A run of path or number characters is looked at once, from its start: a ruler of dashes, or a row of single digits,
# must
# not cost its length squared. A pattern with a group consumes the whole run, and the group is the entity, if any.
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_PATTERNS = [
    re.compile(r"https?://[^\s'\"<>)\]]+"),
    re.compile(r"(?<![\w./-])[\w.-]*+/[\w./-]*\w"),  # paths
    re.compile(
        rf"\b\d{{1,2}} {_MONTH},? \d{{4}}\b|\b{_MONTH} \d{{1,2}},? \d{{4}}\b|\b\d{{4}}[-/]\d{{2}}[-/]\d{{2}}\b", re.I
    ),
    re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\b"),  # dotted names
    re.compile(r"(?<!\w)(?=(\d[\d,.]*\d{2}\b)?)\d[\d,.]*+"),  # numbers of three digits or more
    re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][a-z]+(?:\s+[A-Z][a-z]+)*\b", re.M),  # capitalised runs inside a sentence
]


def find_entities(text: str, limit: int) -> tuple[str, ...]:
    """The first ``limit`` distinct entities, kinds taken in turn of their order here, each kind in order of
    occurrence.
    """
    found: dict[str, None] = {}
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            entity = (match.group(1) or "" if pattern.groups else match.group()).rstrip(".,;:")
            if 1 < len(entity) <= 80:
                found.setdefault(entity)
    return tuple(found)[:limit]
