"""What a benchmark's instances are made of, as one digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from flexmem.benchmarks.protocol import BenchmarkConfig


def options_digest(data: Sequence[object], config: BenchmarkConfig, *, without: Sequence[str] = ("path",)) -> str:
    """SHA-256 over ``data``, digests of what is read (as JSON has them), and all options but those ``without``, which
    say where it lies. Manifests keep it, and a folder refuses a run of another one: what there was so far must keep
    its value.
    """
    options = config.model_dump(mode="json", exclude=set(without))
    return hashlib.sha256(json.dumps([data, options], sort_keys=True).encode()).hexdigest()
