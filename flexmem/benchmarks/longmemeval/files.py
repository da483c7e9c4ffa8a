"""LongMemEval's public files, and two smaller ones that have no address of their own.

Pinned are digests that several public projects give independently for these revisions.
"""

from __future__ import annotations

from collections.abc import Mapping

from flexmem.benchmarks.data import DataFile

_ORIGINAL = "https://huggingface.co/datasets/xiaowu0162/longmemeval/resolve/2ec2a557f339b6c0369619b1ed5793734cc87533"
_CLEANED = (
    "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/98d7416c24c778c2fee6e6f3006e7a073259d48f"
)

S = DataFile(
    name="longmemeval/longmemeval_s.json",
    addresses=(f"{_ORIGINAL}/longmemeval_s",),
    sha256="08d8dad4be43ee2049a22ff5674eb86725d0ce5ff434cde2627e5e8e7e117894",
    size=278_025_796,
    licence="MIT",
)
M = DataFile(
    name="longmemeval/longmemeval_m.json",
    addresses=(f"{_ORIGINAL}/longmemeval_m",),
    sha256="fb5413e3b077c62927daab794836991a2fcfa61ceacab57dc679fb02daaff2d9",
    size=2_745_274_681,
    licence="MIT",
)
ORACLE = DataFile(  # the cleaned release ships the very same bytes
    name="longmemeval/longmemeval_oracle.json",
    addresses=(f"{_CLEANED}/longmemeval_oracle.json", f"{_ORIGINAL}/longmemeval_oracle"),
    sha256="821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c",
    size=15_388_478,
    licence="MIT",
)
S_CLEANED = DataFile(
    name="longmemeval/longmemeval_s_cleaned.json",
    addresses=(f"{_CLEANED}/longmemeval_s_cleaned.json",),
    sha256="d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
    size=277_383_467,
    licence="MIT",
)
M_CLEANED = DataFile(
    name="longmemeval/longmemeval_m_cleaned.json",
    addresses=(f"{_CLEANED}/longmemeval_m_cleaned.json",),
    sha256="9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f",
    size=2_737_100_077,
    licence="MIT",
)
S_CLEANED_54 = DataFile(  # 54 of the 500 questions of S_CLEANED, put together from public repositories
    name="longmemeval/longmemeval_s_cleaned_54.json",
    addresses=(),
    sha256="d70c96753896c3e15837770fe8f9415d86b2997a121436e2c62188068a4ff824",
    size=27_814_751,
    licence="MIT",
)
EVIDENCE_ONLY_8 = DataFile(  # 8 further questions with their evidence sessions alone; derived
    name="longmemeval/derived_evidence_only_8.json",
    addresses=(),
    sha256="ca97695bd7f727add980837508690cc4e029801d68766b8a95a09833ad940802",
    size=130_257,
    licence="MIT",
)

BY_VARIANT: Mapping[str, DataFile] = {
    "s": S,
    "m": M,
    "oracle": ORACLE,
    "s_cleaned": S_CLEANED,
    "m_cleaned": M_CLEANED,
    "oracle_cleaned": ORACLE,
    "s_cleaned_54": S_CLEANED_54,
    "evidence_only_8": EVIDENCE_ONLY_8,
}
FILES = (S, M, ORACLE, S_CLEANED, M_CLEANED, S_CLEANED_54, EVIDENCE_ONLY_8)
