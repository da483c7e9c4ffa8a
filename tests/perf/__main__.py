"""``python tests/perf [PREFIX]``: run the benchmarks whose names begin with PREFIX, print a table, write
``bench.json``.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import Measurement, print_table, write_json

MODULES = {
    "render.": "bench_render",
    "bm25.": "bench_bm25",
    "engine.": "bench_engine",
    "index.": "bench_index",
    "llm.": "bench_limiter",
}


def main() -> int:
    """Run, print, write; exit code 2 where no benchmark has that name."""
    prefix = sys.argv[1] if len(sys.argv) > 1 else ""
    measurements: list[Measurement] = []
    for start, module in MODULES.items():
        if start.startswith(prefix) or prefix.startswith(start):
            found = importlib.import_module(module).benchmarks()
            measurements += [one for one in found if one.name.startswith(prefix)]
    if not measurements:
        print(f"no benchmark's name begins with {prefix!r}; known groups: {', '.join(MODULES)}", file=sys.stderr)
        return 2
    print_table(measurements)
    write_json(measurements, Path("bench.json"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
