"""LoCoMo's public files: the official ten conversations, and an audit of their answer keys."""

from __future__ import annotations

from flexmem.benchmarks.data import DataFile

LOCOMO10 = DataFile(
    name="locomo/locomo10.json",
    addresses=(
        "https://raw.githubusercontent.com/snap-research/LoCoMo/"
        "3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376/data/locomo10.json",
    ),
    sha256="79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
    size=2_805_274,
    licence="CC BY-NC 4.0",
)

AUDIT = DataFile(
    name="locomo/locomo_audit_errors.json",
    addresses=(
        "https://raw.githubusercontent.com/dial481/locomo-audit/9493fb4b4af4256ed17a18e8fd0b3cfdeec29539/errors.json",
    ),
    sha256="f298ef46263fada20688a1d672be37d4f488c6da3b19343eea55ae5c1b5fe55e",
    size=150_552,
    licence="CC BY-NC 4.0",
)
