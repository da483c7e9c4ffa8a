"""Data digests stay what they were: folders of earlier runs hold them, and refuse to go on with others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.registry import make_benchmark

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize(
    ("name", "options", "digest"),
    [
        ("locomo", {}, "99373fc09a1ba776a80ca6b447ff11e5b4a46b4e935fa244c3d5168de903abc0"),
        ("locomo", {"mask_audited": True}, "2e8120c6eebcb100ce53e66df3b2672488ca8d612bc05d0234a997f4c2bb3b7a"),
        ("locomo", {"max_history_tokens": 5_000}, "c2bfbb56ff8bab713350d261c9f4d7447b9e68ab03b961368556b0ee5fcd94a7"),
        ("locomo", {"path": "locomo/small.json"}, "60ed30d8caf82e70ac991ce58d5f56211448b30c135702f72ab5f61813e43e36"),
        ("longmemeval", {}, "4f83aa1254d58958299ee622ede80ec2a17d6adfa21ca1c4930d747882d75dab"),
        ("longmemeval", {"variant": "m"}, "fe0b4ccd95a70ff53f30d013e389996c62675ade8409ff8b19d982e945c92250"),
        (
            "longmemeval",
            {"variant": "evidence_only_8"},
            "3ee6c3197b1b03dd8ccb5e4e99610e24e171d14517a37d18c7f47ad299c643ec",
        ),
        (
            "longmemeval",
            {"path": "longmemeval/small.json"},
            "f9552f8c68eddfe11cf6f50c3e0a1abe0bdca7f3497583b0628a69b3ee80ff03",
        ),
        ("personamem", {}, "f2be8972dd5b920b63e12e5e594ca1048e44175b2f2441c3627bb282410bdf89"),
        ("personamem", {"path": "personamem"}, "ab3566768b4d8c5575b58aa1c731a1c15d6d1674f8663563c1f92f8f185d9702"),
    ],
)
def test_a_data_digest_stays_what_it_was(name: str, options: dict[str, Any], digest: str) -> None:
    if "path" in options:
        options = {**options, "path": str(FIXTURES / options["path"])}
    assert make_benchmark(name, options).data_digest() == digest
