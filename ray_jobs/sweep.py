"""Run a sweep as a Ray job: ``ray job submit --working-dir . -- python ray_jobs/sweep.py CONFIG --out FOLDER``.

The same command again resumes. The last line of output is a JSON object that says how the sweep ended; the exit code
is 0 when it is complete, 1 when it is not, 2 when it could not start.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import typer

from flexmem.cli.run import execute


def main() -> int:
    """Parse, run, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path, help="the sweep's YAML")
    parser.add_argument("--out", type=Path, help="output folder")
    parser.add_argument("--workers", type=int, help="episode workers; default one a CPU")
    arguments = parser.parse_args()
    try:
        return execute(arguments.config, arguments.out, arguments.workers, as_json=True)
    except typer.Exit as ended:
        return int(ended.exit_code)


if __name__ == "__main__":
    sys.exit(main())
