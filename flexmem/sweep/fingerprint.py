"""Fingerprints: what an episode or a build is made of, as a digest and field by field.

Concurrency, retries, paths and devices are no part of one. Fields have digests of their own, so that a mismatch can be
explained.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from flexmem.benchmarks.protocol import Instance, Question

CODE_VERSION = 1
"""Raised when the same configuration would give other results: a changed rule of a method, of cutting or of scoring."""


def digest(value: Any) -> str:
    """BLAKE2b-128 of a JSON-able value in canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def instance_digest(instance: Instance) -> str:
    """Digest of a history as methods see it: its units."""
    return digest([unit.digest for unit in instance.units])


def question_digest(question: Question) -> str:
    """Digest of a question with its gold."""
    return digest(
        [
            question.question_id,
            question.text,
            question.answer,
            question.question_type,
            question.evidence,
            question.scored_by_evidence,
            question.asked_at,
            dict(question.details),
        ]
    )


def build_key(fields: Mapping[str, Any]) -> str:
    """Key of a build: code, instance, method, embedder, memory model, repeat."""
    return digest({"build": fields})


def episode_key(fields: Mapping[str, Any]) -> str:
    """Key of an episode: its build's fields with question, budget and reader."""
    return digest({"episode": fields})
