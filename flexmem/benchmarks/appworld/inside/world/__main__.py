"""``python -m world make ROOT`` makes the world; ``solve ROOT PROGRAM…`` runs programs in it; ``calls ROOT`` tells what
solutions call and see. Answers are JSON on the last line of the standard output.
"""

from __future__ import annotations

import argparse
import json
import os
import sys


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="world")
    parser.add_argument("command", choices=("make", "solve", "calls"))
    parser.add_argument("root", help="AppWorld's root: the folder that holds, or will hold, `data`")
    parser.add_argument("programs", nargs="*", help="of solve: right, near_miss, no_op")
    options = parser.parse_args()
    root = os.path.abspath(options.root)
    os.environ["APPWORLD_ROOT"] = root
    from appworld import update_root

    update_root(root)
    from world import making

    if options.command == "make":
        answer = making.make(root)
    elif options.command == "solve":
        answer = making.solve(root, options.programs)
    else:
        answer = making.calls(root)
    print(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # AppWorld's exit handlers may hang


if __name__ == "__main__":
    main()
