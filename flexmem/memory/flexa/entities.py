"""Entities by rule: names, ids, paths, dates, numbers (docs/methods.md A.8)."""

from __future__ import annotations

import re

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_PATTERNS = [
    re.compile(r"https?://[^\s'\"<>)\]]+"),
    re.compile(r"(?<![\w.])(?:[\w.-]+)?/[\w./-]*\w"),  # paths
    re.compile(
        rf"\b\d{{1,2}} {_MONTH},? \d{{4}}\b|\b{_MONTH} \d{{1,2}},? \d{{4}}\b|\b\d{{4}}[-/]\d{{2}}[-/]\d{{2}}\b", re.I
    ),
    re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\b"),  # dotted names
    re.compile(r"\b\d[\d,.]*\d{2}\b|\b\d{3,}\b"),  # numbers of three digits or more
    re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][a-z]+(?:\s+[A-Z][a-z]+)*\b", re.M),  # capitalised runs inside a sentence
]


def find_entities(text: str, limit: int) -> tuple[str, ...]:
    """The first ``limit`` distinct entities, kinds taken in turn of their order here, each kind in order of
    occurrence.
    """
    found: dict[str, None] = {}
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            entity = match.group().rstrip(".,;:")
            if len(entity) > 1 and len(entity) <= 80:
                found.setdefault(entity)
    return tuple(found)[:limit]
